#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gala/report/page.h"
#include "gala/report/printers.h"

namespace gala {
namespace {

using Cells = std::vector<std::vector<const Record*>>;

std::string link_to(const Cell& cell, Cells& cells) {
  if (cell.runs.empty()) return "";
  if (cell.runs.size() == 1) return "#run/" + percent_encoded(cell.runs.front()->key);
  // Several numbers may rest on the same runs.
  const auto found = std::find(cells.begin(), cells.end(), cell.runs);
  const auto number = found - cells.begin();
  if (found == cells.end()) cells.push_back(cell.runs);
  return fmt::format("#cell/{}", number);
}

/// What the pointer shows: interval, hyper-parameters, number of runs.
std::string hint(const Cell& cell, const Column& column) {
  std::string text;
  if (cell.interval) {
    text +=
        fmt::format("95 % interval {:.{}f} to {:.{}f} (bootstrap over {}). ", cell.interval->low,
                    column.digits, cell.interval->high, column.digits, cell.samples);
  }
  if (!cell.hyper.empty()) text += fmt::format("Chosen: {}. ", cell.hyper);
  if (!cell.runs.empty()) {
    text += fmt::format("{} run{}.", cell.runs.size(), cell.runs.size() == 1 ? "" : "s");
  }
  if (cell.state == Cell::State::kNotRun) text += cell.note;
  return escape_html(text);
}

std::string paper_html(const Cell& cell, const Column& column) {
  if (!cell.paper) return "";
  std::string text = fmt::format("<span class=\"paper\">paper {:.{}f}", *cell.paper, column.digits);
  if (const auto difference = cell.difference()) {
    const bool better = (*difference > 0) == column.higher_is_better;
    text += fmt::format(" <span class=\"{}\">{}</span>",
                        !column.directed ? "diff"
                        : better         ? "up"
                                         : "down",
                        difference_text(*difference, column.digits));
  }
  return text + "</span>";
}

std::string cell_html(const Cell& cell, const Column& column, bool deviations, Cells& cells) {
  std::string classes = "num";
  if (cell.best) classes += " best";
  if (cell.second) classes += " second";
  if (!cell.has_value()) classes += " none";
  std::string out = fmt::format("<td class=\"{}\"", classes);
  if (cell.has_value() && std::isfinite(cell.value)) {
    out += fmt::format(" data-value=\"{:.12g}\"", cell.value);
  }
  const std::string title = hint(cell, column);
  if (!title.empty()) out += fmt::format(" title=\"{}\"", title);
  out += '>';
  const std::string value = value_text(cell, column);
  const std::string link = link_to(cell, cells);
  out += link.empty() ? fmt::format("<span class=\"value\">{}</span>", value)
                      : fmt::format("<a class=\"value\" href=\"{}\">{}</a>", link, value);
  // Room is kept where others of the column have a deviation, so that numbers stand below each other.
  if (deviations) {
    const std::string deviation = deviation_text(cell);
    out += fmt::format("<span class=\"pm\">{}{}</span>", deviation.empty() ? "" : "±", deviation);
  }
  if (cell.state == Cell::State::kPartial) {
    out += fmt::format("<span class=\"only\">{}</span>", escape_html(cell.note));
  }
  return out + paper_html(cell, column) + "</td>";
}

std::string spans_html(const Table& table) {
  bool any = false;
  std::string out = "<tr>";
  for (std::size_t h = 0; h < table.heads.size(); ++h) out += "<td></td>";
  for (std::size_t c = 0; c < table.columns.size();) {
    std::size_t end = c;
    while (end < table.columns.size() && table.columns[end].over == table.columns[c].over) ++end;
    const std::string& over = table.columns[c].over;
    any = any || !over.empty();
    out += over.empty()
               ? fmt::format("<td colspan=\"{}\"></td>", end - c)
               : fmt::format("<th class=\"over\" scope=\"colgroup\" colspan=\"{}\">{}</th>",
                             end - c, escape_html(over));
    c = end;
  }
  return any ? out + "</tr>" : "";
}

std::string headings_html(const Table& table) {
  std::string out = "<tr>";
  std::size_t number = 0;
  const std::size_t pinned = table.heads.size() - 1;
  for (const std::string& head : table.heads) {
    out += fmt::format(
        "<th scope=\"col\"{}><button type=\"button\" data-column=\"{}\">{}</button></th>",
        number == pinned ? " class=\"pinned\"" : "", number, escape_html(head));
    ++number;
  }
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const char* first = column.higher_is_better ? "descending" : "ascending";
    out += fmt::format(
        "<th scope=\"col\" class=\"num\" data-first=\"{}\"{}><button type=\"button\" "
        "data-column=\"{}\">{}{}</button></th>",
        first, table.sorted_by == c ? fmt::format(" aria-sort=\"{}\"", first) : "", number,
        escape_html(column.name),
        !column.directed          ? ""
        : column.higher_is_better ? " <span aria-label=\"higher is better\" role=\"img\">↑</span>"
                                  : " <span aria-label=\"lower is better\" role=\"img\">↓</span>");
    ++number;
  }
  return out + "</tr>";
}

/// On a narrow screen the last head alone stays in sight: where it is a dash, the one before names the
/// row.
std::string narrow_name(const Row& row) {
  const std::size_t heads = row.heads.size();
  if (heads < 2 || row.heads[heads - 1] != "–") return "";
  return fmt::format("<span class=\"narrow\" aria-hidden=\"true\">{}</span>",
                     escape_html(row.heads[heads - 2]));
}

}  // namespace

std::string table_html(const Table& table, std::vector<std::vector<const Record*>>& cells) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
      "class=\"results\" "
      "data-sortable><thead>{}{}</thead><tbody>",
      escape_html(table.title), spans_html(table), headings_html(table));
  std::vector<bool> deviations(table.columns.size());
  for (const Row& row : table.rows) {
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      deviations[c] = deviations[c] || !deviation_text(row.cells[c]).empty();
    }
  }
  std::vector<std::string> above(table.heads.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Row& row = table.rows[r];
    out += fmt::format("<tr{}>", !row.border ? ""
                                 : r == 0    ? " class=\"border first\""
                                             : " class=\"border\"");
    bool same = !row.border || r > 0;
    for (std::size_t h = 0; h < row.heads.size(); ++h) {
      // The last head names the row and is always said.
      const bool last = h + 1 == row.heads.size();
      same = same && row.heads[h] == above[h];
      out += fmt::format("<td{}><span>{}</span>{}</td>",
                         last   ? " class=\"pinned\""
                         : same ? " class=\"again\""
                                : "",
                         escape_html(row.heads[h]), last ? narrow_name(row) : "");
    }
    above = row.heads;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      out += cell_html(row.cells[c], table.columns[c], deviations[c], cells);
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string percent_encoded(const std::string& text) {
  std::string out;
  for (const char c : clean_text(text)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) -> unsigned {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= bytes.size() - i ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace gala
