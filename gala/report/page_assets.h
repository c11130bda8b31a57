#pragma once
#include <string>

namespace gala {

// What the build makes of web/: the script of report pages with the plotting libraries in it, and
// their style. Without Node these are empty and `page_assets_problem` says what was missing.

std::string page_script();
std::string page_style();
/// The licences of the libraries in the script.
std::string page_licences();
/// Empty when the three are there.
std::string page_assets_problem();

}  // namespace gala
