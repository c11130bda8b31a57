#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gala {

/// Help pages that fit the terminal: the value's kind beside the flag, the default behind the text,
/// long texts wrapped under themselves.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

/// A check for flags that take a whole number from `least` to `most`: text that is none is refused,
/// and so is one beyond 64 bits.
CLI::Validator whole_number(std::int64_t least, std::int64_t most = INT64_MAX);

/// What was wrong with the words given, in one line: the word, what is near to it, where help is.
std::string explain(const CLI::ParseError& error, const CLI::App& program,
                    const std::vector<std::string>& words);

}  // namespace gala
