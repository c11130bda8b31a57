#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "cli/command.h"
#include "gala/base/error.h"
#include "gala/base/spec.h"

namespace {

constexpr char kAbout[] =
    "gala keeps an image classifier working while its data drifts: it adapts to unlabelled images as\n"
    "it answers them, one well-chosen layer at a time.";

constexpr char kFooter[] =
    "Examples:\n"
    "  gala list selectors\n"
    "  gala inspect --model resnet18:classes=7 --partition block\n"
    "  gala adapt --model resnet18:classes=7 --weights source.safetensors --data folder:path=photos\n"
    "\n"
    "Exit codes: 0 done; 2 a word or file given is wrong; 130 interrupted; 1 anything else.";

void print_error(const std::string& message) {
  const bool colour = isatty(STDERR_FILENO) && !std::getenv("NO_COLOR");
  std::cerr << (colour ? "\033[1;31merror:\033[0m " : "error: ") << message << '\n';
}

/// What the parser says, with the nearest flag for a word it does not know.
std::string explain(const CLI::ParseError& error, const CLI::App& program) {
  std::string message = error.what();
  const CLI::App* command = &program;
  for (const CLI::App* used : program.get_subcommands()) command = used;
  if (error.get_name() == "ExtrasError") {
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options()) known.push_back(option->get_name());
    for (const CLI::App* sub : command->get_subcommands({})) known.push_back(sub->get_name());
    for (const std::string& word : command->remaining()) {
      const std::string near = gala::nearest(word, known);
      if (!near.empty()) message += " (did you mean " + near + "?)";
    }
  }
  const std::string name = command == &program ? "" : command->get_name() + " ";
  return message + "\nSee gala " + name + "--help.";
}

int run(int argc, char** argv) {
  CLI::App program(kAbout, "gala");
  program.footer(kFooter);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  gala::add_adapt_command(program);
  gala::add_corrupt_command(program);
  gala::add_data_command(program);
  gala::add_inspect_command(program);
  gala::add_list_command(program);
  gala::add_train_command(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return program.exit(success);
  } catch (const CLI::RuntimeError& stopped) {
    return stopped.get_exit_code();
  } catch (const CLI::ParseError& error) {
    print_error(explain(error, program));
    return 2;
  }
  std::cout.flush();
  if (!std::cout) {
    print_error("standard output could not be written");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const gala::ConfigError& error) {
    print_error(error.what());
    return 2;
  } catch (const gala::FormatError& error) {
    print_error(error.what());
    return 2;
  } catch (const std::exception& error) {
    // LibTorch's messages carry a stack trace below their first line.
    const std::string message = error.what();
    print_error(message.substr(0, message.find("\nException raised from")));
    return 1;
  }
}
