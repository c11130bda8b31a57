// Stands for the script of report pages, which needs Node to be made and is no data.
#include "gala/report/page_assets.h"

namespace gala {

std::string page_script() {
  return "";
}
std::string page_style() {
  return "";
}
std::string page_licences() {
  return "";
}
std::string page_assets_problem() {
  return "";
}

}  // namespace gala
