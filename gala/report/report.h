#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gala/report/page.h"
#include "gala/report/printers.h"

namespace gala {

/// How a report is printed.
enum class ReportFormat { kHtml, kMarkdown, kLatex, kCsv, kJson, kSvg };
constexpr std::array<std::string_view, 6> enum_names(ReportFormat) {
  return {"html", "md", "latex", "csv", "json", "svg"};
}

struct Report {
  std::string text;
  std::vector<std::string> remarks = {};  ///< what of the input is not in it, as sentences
};

/// The report of a store (a folder) or of a trace that `gala adapt --trace` wrote. Reads only.
/// `choice` is for formats that print one variant of a table, or draw one stream. Throws ConfigError or FormatError when
/// there is nothing of the kind.
Report make_report(const std::filesystem::path& input, ReportFormat format,
                   const PrintChoice& choice = {});

/// The figures of runs beyond those of a store: by their number in the page, which holds their
/// cosines under their keys.
std::vector<Figure> trace_figures(const std::vector<AdaptTrace>& traces);

/// Layers of a trace: how often each was chosen, how far it went.
Table trace_table(const AdaptTrace& trace);

}  // namespace gala
