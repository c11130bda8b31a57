#pragma once
#include <CLI/CLI.hpp>

namespace gala {

// Each command lies in a file of its own and adds itself to the program: its flags, its help, and
// the callback that does the work. Results go to standard output, talk to standard error. A callback
// throws ConfigError or FormatError for the user's mistakes; main turns them into exit codes.

void add_adapt_command(CLI::App& program);
void add_corrupt_command(CLI::App& program);
void add_data_command(CLI::App& program);
void add_demo_command(CLI::App& program);
void add_inspect_command(CLI::App& program);
void add_list_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_run_command(CLI::App& program);
void add_store_command(CLI::App& program);
void add_train_command(CLI::App& program);

/// Exit code of a run that the user stopped, as shells report it.
inline constexpr int kInterruptedExit = 130;

}  // namespace gala
