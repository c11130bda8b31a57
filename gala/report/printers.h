#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gala/report/tables.h"

namespace gala {

/// Which tables are printed, and which variant of each; which stream is drawn. Empty is all, or the
/// first.
struct PrintChoice {
  std::string rule = {}, norm = {};
  std::vector<std::string> tables = {};  ///< by id
  std::string chart = {};                ///< a stream and a loss, as `time_figure` names them
  std::vector<std::string> compare =
      {};  ///< two rows: they are compared, and nothing else is printed
};

/// Markdown, a heading a table. Tables of which nothing was run are one line.
std::string to_markdown(const std::vector<TableSet>& tables, const PrintChoice& choice = {});

/// LaTeX for a document that uses booktabs. Tables of which nothing was run are a comment.
std::string to_latex(const std::vector<TableSet>& tables, const PrintChoice& choice = {});

/// Every cell of every variant as one line; RFC 4180, UTF-8. Numbers have their full precision;
/// what is not there is empty.
std::string to_csv(const std::vector<TableSet>& tables);

/// Every variant of every table.
nlohmann::ordered_json to_json(const std::vector<TableSet>& tables);
nlohmann::ordered_json to_json(const Table& table);

/// Text that Markdown, LaTeX or HTML shows as it is, on one line.
std::string escape_markdown(const std::string& text);
std::string escape_latex(const std::string& text);
std::string escape_html(const std::string& text);

/// The text with everything that is not valid UTF-8, or a control character, replaced by "�"; line
/// breaks become spaces.
std::string clean_text(const std::string& text);

/// "value", "partial", "not run", "not applicable".
std::string state_name(Cell::State state);

}  // namespace gala
