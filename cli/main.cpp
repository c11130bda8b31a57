#include <torch/version.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <thread>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/slurm.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/base/host_memory.h"
#include "gala/base/words.h"

namespace {

constexpr char kAbout[] =
    "gala keeps an image classifier working while its data drifts: it adapts to\n"
    "unlabelled images as it answers them, one well-chosen layer at a time.\n";

constexpr char kFooter[] =
    "Examples:\n"
    "  gala list selectors\n"
    "  gala inspect --model resnet18:classes=7 --partition block\n"
    "  gala adapt --model resnet18:classes=7 --weights source.safetensors \\\n"
    "             --data folder:path=photos\n"
    "\n"
    "`gala COMMAND --help` says more. Results go to standard output, everything else\n"
    "to standard error.\n"
    "Exit codes: 0 done; 2 a word or file given is wrong; 130 interrupted;\n"
    "1 anything else.";

void print_error(const std::string& message) {
  std::cerr << (gala::colours() ? "\033[1;31merror:\033[0m " : "error: ") << gala::readable(message)
            << '\n';
}

/// What ended the program, before `end_in_words`, where nothing of it can catch an exception.
std::terminate_handler& end_without_words() {
  static std::terminate_handler handler = nullptr;
  return handler;
}

/// Set by whoever says first why the program ends: one line is enough.
std::atomic_flag& said() {
  static std::atomic_flag flag;
  return flag;
}

/// LibTorch gives the memory of a GPU back in destructors, and where several streams used it asks the GPU for an event
/// there. One that is gone has none, and what a destructor throws ends the program: then with a line and an exit code, too.
[[noreturn]] void end_in_words() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    if (gala::is_of_the_gpu(error) || gala::is_of_a_full_device(error)) {
      if (said().test_and_set()) {
        // Another thread may be at it still.
        std::this_thread::sleep_for(std::chrono::seconds(1));
      } else {
        print_error(gala::in_words(error));
      }
      std::_Exit(1);
    }
  } catch (...) {
    // Not ours, nor LibTorch's.
  }
  if (end_without_words()) end_without_words()();
  std::abort();
}

int run(int argc, char** argv) {
  CLI::App program(kAbout, "gala");
  program.footer(kFooter);
  program.require_subcommand(1);
  program.formatter(std::make_shared<gala::HelpFormatter>());
  program.set_help_flag("-h,--help", "this page");
  program.set_version_flag("--version", "gala " GALA_VERSION " (LibTorch " TORCH_VERSION ")",
                           "the versions of gala and LibTorch");
  gala::add_adapt_command(program);
  gala::add_corrupt_command(program);
  gala::add_data_command(program);
  gala::add_demo_command(program);
  gala::add_inspect_command(program);
  gala::add_list_command(program);
  gala::add_report_command(program);
  gala::add_run_command(program);
  gala::add_store_command(program);
  gala::add_train_command(program);
  // The words behind --slurm are another program's.
  argc = static_cast<int>(gala::split_at_slurm({argv, argv + argc}).own.size());
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return program.exit(success);
  } catch (const CLI::RuntimeError& stopped) {
    return stopped.get_exit_code();
  } catch (const CLI::ParseError& error) {
    print_error(gala::explain(error, program, {argv + 1, argv + argc}));
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
  // A full disk shall be an error that can be told, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  end_without_words() = std::set_terminate(end_in_words);
  gala::keep_freed_memory();
  try {
    return run(argc, argv);
  } catch (const gala::Interrupted& stopped) {
    std::cerr << stopped.what() << '\n';
    return gala::kInterruptedExit;
  } catch (const std::exception& error) {
    said().test_and_set();
    print_error(gala::in_words(error));
    return gala::is_users_mistake(error) ? 2 : 1;
  }
}
