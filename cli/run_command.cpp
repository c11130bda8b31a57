#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/run_plan.h"

namespace gala {
namespace {

constexpr char kFooter[] =
    "A plan is a TOML file that lays out a grid of runs: see plans/ and\n"
    "docs/reproducing.md. Each run is recorded in the store as soon as it ends, and\n"
    "is not made again. After a stop or a crash the same command goes on; a run that\n"
    "fails does not keep the others from being made.\n"
    "\n"
    "--slurm submits the runs as an array of tasks and returns; what follows it goes\n"
    "to sbatch. While the array is at work the same command without --slurm shows\n"
    "how far it is (docs/scaling.md).\n"
    "\n"
    "Examples:\n"
    "  gala run plans/table2.toml --store mine --dry-run\n"
    "  gala run plans/table2.toml --store mine --device cuda --precision tf32\n"
    "  gala run plans/table1.toml --store mine --only set=PACS --shard 2/8\n"
    "  gala run plans/table1.toml --store mine --slurm --gres=gpu:1 --time=240";

/// A word of the command without the folders of one machine: an absolute path, also behind "--flag=", is
/// its last name.
std::string without_folders(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  const std::filesystem::path value = word.substr(begin);
  if (!value.is_absolute()) return word;
  const std::filesystem::path last = value.has_filename() ? value : value.parent_path();
  return word.substr(0, begin) + last.filename().string();
}

std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// The command as it was typed, for the records.
std::string typed_command() {
  std::string command = "gala";  // where the program lies is no matter
  const std::vector<std::string> words = typed_words();
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + without_folders(words[i]);
  return command;
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = program.add_subcommand("run", "Make the runs of a plan that a store lacks");
  command->add_option("plan", flags->plan, "TOML file")->required()->type_name("PLAN.toml");
  command->add_option("--store", flags->store, "folder of the records")
      ->required()
      ->type_name("DIR");
  command->add_flag("--dry-run", flags->dry_run, "show the runs and an estimate, make none");
  command
      ->add_option("--only", flags->only,
                   "runs with NAME=VALUE only; NAME is a name of the plan, or row; may be given "
                   "several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--shard", flags->shard, "part I of N, for work spread over machines")
      ->type_name("I/N");
  command->add_flag(
      "--apart", flags->apart,
      "record into a file of its own, as is done by itself on a file system that hosts "
      "may share");
  command->add_flag("--slurm", flags->slurm, "submit to Slurm; what follows goes to sbatch")
      ->group("Cluster");
  command->add_option("--shards", flags->shards, "with --slurm: parts the plan is cut into")
      ->capture_default_str()
      ->check(whole_number(1, 100'000))
      ->group("Cluster");
  command
      ->add_option("--root", flags->root, "where relative folders of data and weights begin [here]")
      ->type_name("DIR");
  command->add_flag("--quiet", flags->quiet, "no progress, no warnings");
  command->add_option("--jobs", flags->jobs, "runs at once")
      ->capture_default_str()
      ->check(whole_number(1, 256))
      ->group("Machine");
  command->add_option("--device", flags->device, "cpu, cuda or cuda:N")
      ->capture_default_str()
      ->group("Machine");
  command
      ->add_option("--precision", flags->precision,
                   "of all runs: float32, tf32 (on cuda) or bf16 [as the plan has it]")
      ->type_name("NAME")
      ->group("Machine");
  command
      ->add_option("--layout", flags->layout,
                   "of the maps in memory: contiguous, channels_last, fastest (by trial), or auto "
                   "(channels_last on cuda)")
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Machine");
  command
      ->add_option("--threads", flags->threads,
                   "of each run on the CPU; 0: the cores are shared out")
      ->capture_default_str()
      ->check(whole_number(0, 4096))
      ->group("Machine");
  command
      ->add_flag("--deterministic", flags->deterministic,
                 "the same numbers whenever a run is made on this machine; slower on cuda")
      ->group("Machine");
  command->footer(kFooter);
  command->callback([flags] {
    flags->command = typed_command();
    flags->words = typed_words();
    const int code = run_plan(*flags);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
