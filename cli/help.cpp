#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"
#include "gala/base/options.h"
#include "gala/base/spec.h"

namespace gala {
namespace {

constexpr std::size_t kColumn = 26;  ///< where the texts begin

/// The subcommand that was named, or the program itself.
const CLI::App& command_of(const CLI::App& program) {
  const auto used = program.get_subcommands();
  return used.empty() ? program : *used.back();
}

bool is_flag(const std::string& word) {
  return word.starts_with('-');
}

std::string unknown_command(const CLI::App& program, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  if (words.empty()) return fmt::format("no command given (known: {})", fmt::join(known, ", "));
  return fmt::format("unknown command \"{}\"{}", words[0], suggestion(words[0], known));
}

std::string unknown_word(const CLI::App& command) {
  const std::vector<std::string> left = command.remaining();
  const auto flag = std::find_if(left.begin(), left.end(), is_flag);
  if (flag == left.end()) return fmt::format("unexpected word \"{}\"", left.front());
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) known.push_back(option->get_name());
  const std::string word = flag->substr(0, flag->find('='));
  const std::string near = nearest(word, known);
  return fmt::format("unknown flag {}{}", word, near.empty() ? "" : ": did you mean " + near + "?");
}

}  // namespace

HelpFormatter::HelpFormatter() {
  column_width(kColumn);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string name =
      "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const std::string text = wrap(make_option_desc(option), line_width(), kColumn);
  // A name that reaches into the texts gets a line of its own.
  const bool fits = name.size() + 2 <= kColumn;
  return name +
         (fits ? std::string(kColumn - name.size(), ' ') : "\n" + std::string(kColumn, ' ')) +
         text + "\n";
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  return " " + option->get_type_name() + (option->get_expected_max() > 1 ? " ..." : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) text += " (required)";
  if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
  return text;
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        std::int64_t value = 0;
        const bool held = parse_value(text, value);
        if (held && value >= least && value <= most) return "";
        const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
          return c >= '0' && c <= '9';
        });
        // Of a number beyond 64 bits the bound must be told, however far off it is.
        const bool told = most < INT64_MAX || (digits && !held);
        const std::string bound = told ? fmt::format(" to {}", most) : "";
        return fmt::format("expected a whole number from {}{}, not {}", least, bound,
                           text.empty() ? "\"\"" : text);
      },
      "");
}

std::string explain(const CLI::ParseError& error, const CLI::App& program,
                    const std::vector<std::string>& words) {
  const CLI::App& command = command_of(program);
  const std::vector<std::string> left = command.remaining();
  const bool unknown_flag = std::any_of(left.begin(), left.end(), is_flag);
  std::string message = error.what();
  if (unknown_flag || dynamic_cast<const CLI::ExtrasError*>(&error)) {
    // An unknown flag is named first: it may be the reason why another one seems to be missing.
    if (!left.empty() && (unknown_flag || &command != &program)) message = unknown_word(command);
  } else if (&command == &program) {
    message = unknown_command(program, words);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const std::string flag = message.substr(0, message.find(':'));
    const CLI::Option* option = command.get_option_no_throw(flag);
    const int most = option ? option->get_expected_max() : 1;
    message = flag + (message.find("missing") != std::string::npos ? " needs a value"
                      : most > 1 ? fmt::format(" takes {} words at most", most)
                                 : " is given more than once");
  }
  const std::string name = &command == &program ? "" : command.get_name() + " ";
  return fmt::format("{} (see gala {}--help)", message, name);
}

}  // namespace gala
