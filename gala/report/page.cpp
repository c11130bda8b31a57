#include "gala/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "gala/base/error.h"
#include "gala/base/hash.h"
#include "gala/protocol/trace.h"
#include "gala/report/page_assets.h"
#include "gala/report/printers.h"

namespace gala {
namespace {

using Cells = std::vector<std::vector<const Record*>>;

/// The digest as a policy names it.
std::string script_digest(const std::string& script) {
  Sha256 hash;
  hash.update(script);
  const std::string hex = hash.hex();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return "sha256-" + base64(bytes);
}

std::string verdicts_html(const std::vector<Verdict>& verdicts) {
  if (verdicts.empty()) return "";
  const bool any = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.kind != Verdict::Kind::kNotRun;
  });
  if (!any) {
    return "<p class=\"note\">None of the paper’s benchmarks is among these runs: "
           "there is nothing to compare with its numbers.</p>";
  }
  std::string out = "<ul class=\"verdicts\">";
  for (const Verdict& verdict : verdicts) {
    const char* kind = verdict.kind == Verdict::Kind::kAgrees    ? "agrees"
                       : verdict.kind == Verdict::Kind::kDiffers ? "differs"
                                                                 : "open";
    out += fmt::format(
        "<li class=\"{}\"><h3>{}{}</h3><p>{}</p></li>", kind, escape_html(verdict.benchmark),
        verdict.mark.empty()
            ? ""
            : fmt::format("<span class=\"mark\">{}</span>", escape_html(verdict.mark)),
        escape_html(verdict.sentence));
  }
  return out + "</ul>";
}

std::string facts_html(const std::vector<std::pair<std::string, std::string>>& facts) {
  if (facts.empty()) return "";
  std::string out = "<dl class=\"facts\">";
  for (const auto& [name, value] : facts) {
    out += fmt::format("<div class=\"fact\"><dt>{}</dt><dd>{}</dd></div>", escape_html(name),
                       escape_html(value));
  }
  return out + "</dl>";
}

std::string notes_html(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string out = "<ul class=\"notes\">";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>", escape_html(note));
  return out + "</ul>";
}

bool underlines(const Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(),
                       [](const Cell& cell) { return cell.second; });
  });
}

std::string variant_html(const Table& table, bool shown, Cells& cells) {
  std::string caption = escape_html(table.caption);
  if (!table.norm.empty()) {
    caption += fmt::format(" Norm mode of the adapting runs: {}.", escape_html(table.norm));
  }
  if (!table.rule.empty()) {
    caption += fmt::format(" Hyper-parameters: {}.", escape_html(rule_words(table.rule)));
  }
  // What other formats do not mark stands in no caption of theirs.
  if (underlines(table)) caption += " The second best is underlined.";
  return fmt::format(
      "<div data-variant data-rule=\"{}\" data-norm=\"{}\"{}><p class=\"caption\">{}</p>{}{}</div>",
      escape_html(table.rule), escape_html(table.norm), shown ? "" : " hidden", caption,
      table_html(table, cells), notes_html(table.notes));
}

std::string set_html(const TableSet& set, Cells& cells) {
  std::string out = "<div data-variants>";
  for (std::size_t i = 0; i < set.variants.size(); ++i) {
    out += variant_html(set.variants[i], i == 0, cells);
  }
  return out + "</div>";
}

/// A menu for rule or norm mode, where the tables leave a choice. `none`, where given, begins it: what each table
/// shows by itself.
std::string switch_html(const std::vector<TableSet>& tables, const char* name, const char* label,
                        std::string Table::*member, const char* none = nullptr) {
  std::vector<std::string> values;
  for (const TableSet& set : tables) {
    std::vector<std::string> own;
    for (const Table& table : set.variants) {
      if (std::find(own.begin(), own.end(), table.*member) == own.end())
        own.push_back(table.*member);
    }
    if (own.size() < 2) continue;
    for (const std::string& value : own) {
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
  if (values.empty()) return "";
  std::string out = fmt::format("<label>{} <select data-switch=\"{}\" disabled>", label, name);
  if (none) out += fmt::format("<option value=\"\">{}</option>", none);
  for (const std::string& value : values) {
    out += fmt::format("<option value=\"{}\">{}</option>", escape_html(value),
                       escape_html(rule_words(value)));
  }
  return out + "</select></label>";
}

bool was_run(const TableSet& set) {
  return std::any_of(set.variants.begin(), set.variants.end(),
                     [](const Table& table) { return table.measured() > 0; });
}

std::string tables_html(const PageContent& content, Cells& cells) {
  if (content.tables.empty()) return "";
  std::string out = "<section id=\"tables\"><h2>Tables</h2>";
  const std::string switches =
      switch_html(content.tables, "rule", "Hyper-parameters chosen", &Table::rule) +
      switch_html(content.tables, "norm", "Norm mode", &Table::norm, "each table's own");
  if (!switches.empty()) out += "<div class=\"switches\">" + switches + "</div>";
  std::string not_run;
  for (const TableSet& set : content.tables) {
    if (was_run(set)) {
      out += fmt::format("<h3>{}</h3>{}", escape_html(set.variants.front().title),
                         set_html(set, cells));
    } else {
      not_run += fmt::format("<details><summary>{}</summary>{}</details>",
                             escape_html(set.variants.front().title), set_html(set, cells));
    }
  }
  if (!not_run.empty()) {
    out += "<h3>Not run</h3><p class=\"caption\">Tables of the paper without a number of ours.</p>";
  }
  return out + not_run + "</section>";
}

std::string figures_html(const std::vector<Figure>& figures) {
  if (figures.empty()) return "";
  std::string out = "<section id=\"figures\"><h2>Figures</h2>";
  for (const Figure& figure : figures) {
    out += fmt::format(
        "<figure id=\"figure-{0}\" data-figure=\"{0}\"><figcaption><h3>{1}</h3><p "
        "class=\"caption\">{2}"
        "</p></figcaption><div class=\"charts\"></div></figure>",
        figure.id, escape_html(figure.title), escape_html(figure.caption));
  }
  return out + "</section>";
}

std::string overview_html(const PageContent& content, Cells& cells) {
  std::string out = fmt::format("<section id=\"overview\"><h1>{}</h1><p class=\"lead\">{}</p>",
                                escape_html(content.title), escape_html(content.lead));
  out += facts_html(content.facts) + verdicts_html(content.verdicts);
  if (content.with_summary) {
    const Table summary = summary_table(content.tables);
    if (!summary.rows.empty()) {
      out += fmt::format(
                 "<h3>{}</h3><p class=\"caption\">{} Below each number stands the paper’s, and the "
                 "difference.</p>{}",
                 escape_html(summary.title), escape_html(summary.caption),
                 table_html(summary, cells)) +
             notes_html(summary.notes);
    }
  }
  return out + notes_html(content.notes) + "</section>";
}

std::string packed(const nlohmann::ordered_json& data) {
  return base64(gzip(data.dump()));
}

/// The page's data, packed, with as many series as let a page whose other parts take `so_far` bytes
/// stay below two megabytes. Traces do not count: a store has few of them, and whoever asked for one
/// wants to see it.
std::string data_text(const PageContent& content, const Cells& cells, std::size_t so_far) {
  constexpr double kPage = 1.9e6, kLeast = 2e5, kMost = 4e6;
  nlohmann::ordered_json data = page_data(content, cells);
  const double runs = static_cast<double>(packed(data).size());
  const double left = kPage - static_cast<double>(so_far) - runs;
  double room = kMost;
  for (;;) {
    set_series(data, content, static_cast<std::size_t>(room));
    const double taken = static_cast<double>(packed(data).size()) - runs;
    if (taken <= left || room <= kLeast) break;
    // How well series pack differs from store to store, so it is taken from what was just tried.
    room = std::max(kLeast, 0.95 * room * left / taken);
  }
  add_traces(data, content);
  return packed(data);
}

std::string head_html(const std::string& title, const std::string& script) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; "
      "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      script_digest(script), escape_html(title), page_style());
}

}  // namespace

std::string make_page(const PageContent& content) {
  if (const std::string problem = page_assets_problem(); !problem.empty()) {
    fail<ConfigError>("HTML pages cannot be made: {}. --format md, latex, csv, json and svg work",
                      problem);
  }
  Cells cells;
  const std::string overview = overview_html(content, cells);
  const std::string tables = tables_html(content, cells);
  const std::string figures = figures_html(content.figures);
  const bool runs = !content.records->empty();
  const std::string script = page_script();
  std::string out = head_html(content.title, script);
  out +=
      "<body>\n<a class=\"skip\" href=\"#main\">To the content</a>\n<header class=\"top\"><a "
      "class=\"brand\" href=\"#overview\">gala</a><nav aria-label=\"Parts of the report\">";
  if (!tables.empty()) out += "<a href=\"#tables\">Tables</a>";
  if (!figures.empty()) out += "<a href=\"#figures\">Figures</a>";
  if (runs) out += "<a href=\"#runs\">Runs</a>";
  out +=
      "</nav><button type=\"button\" id=\"theme\" hidden>Theme</button></header>\n<main "
      "id=\"main\">";
  out += "<p class=\"problem\" id=\"problem\" role=\"alert\" hidden></p><div id=\"report\">";
  out += overview + tables + figures;
  if (runs) {
    out +=
        "<section id=\"runs\"><h2>Runs</h2><p class=\"note\">Every run has a page of its own.</p>"
        "<div id=\"run-list\"></div></section>";
  }
  out +=
      "</div><div id=\"other\" hidden></div></main>\n<footer><p>Made by gala. This page is "
      "complete "
      "in itself: it asks nothing of any other machine.</p><details><summary>Licences of the "
      "plotting libraries in this page</summary><pre tabindex=\"0\">";
  // Line breaks matter here, so lines are escaped one by one.
  std::string licences = page_licences();
  for (std::size_t begin = 0; begin < licences.size();) {
    const std::size_t end = std::min(licences.find('\n', begin), licences.size());
    out += escape_html(licences.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  out +=
      "</pre></details></footer>\n<noscript><p class=\"problem\">Plots and run pages need "
      "JavaScript; the tables do not.</p></noscript>\n";
  out += fmt::format("<script type=\"text/plain\" id=\"gala-data\">{}</script>\n",
                     data_text(content, cells, out.size() + script.size()));
  return out + "<script>" + script + "</script>\n</body>\n</html>\n";
}

}  // namespace gala
