#include <memory>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/train_run.h"

namespace gala {
namespace {

constexpr char kFooter[] =
    "A plan is a TOML file with the sections [model], [data], [train] and\n"
    "[output]; see plans/ and docs/training.md. What --set changes by a plain name\n"
    "stands in its section [parameters]. Progress is kept in FILE.checkpoint, which\n"
    "is removed at the end.\n"
    "\n"
    "Several processes train one network where torchrun starts them, or anybody\n"
    "who sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (and LOCAL_RANK, the\n"
    "GPU of each): they share every batch, and rank 0 writes and speaks for all.\n"
    "\n"
    "Examples:\n"
    "  gala train plans/train_cifar10_wrn16_2.toml --data-path cifar10\n"
    "  gala train plans/train_cifar10_wrn16_2.toml --device cuda --out my.safetensors\n"
    "  gala train plans/train_cifar10_wrn16_2.toml --resume     go on after a stop\n"
    "  gala train plans/train_domainbed_resnet18.toml --set env=1 --set trial=0\n"
    "  torchrun --no-python --nproc-per-node 2 \\\n"
    "           gala train plans/train_cifar10_wrn16_2.toml --data-path cifar10";

}  // namespace

void add_train_command(CLI::App& program) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = program.add_subcommand("train", "Train a network as a plan says");
  command->add_option("plan", flags->plan, "TOML file")->required()->type_name("PLAN.toml");
  command
      ->add_option("--set", flags->settings,
                   "a parameter of the plan, or one of its keys as section.key; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--resume", flags->resume, "go on from the checkpoint, if there is one");
  command->add_option("--out", flags->out, "weights to write [the plan's output.weights]");
  command->add_option("--data-path", flags->data_path, "folder of the data [the plan's path=...]");
  command->add_flag("--quiet", flags->quiet, "no progress, no warnings");
  command->add_option("--device", flags->device, "cpu, cuda or cuda:N")
      ->capture_default_str()
      ->group("Machine");
  command->add_option("--threads", flags->threads, "0: as many as there are")
      ->check(whole_number(0, 4096))
      ->type_name("N")
      ->capture_default_str()
      ->group("Machine");
  command
      ->add_option("--wait", flags->wait,
                   "seconds for which processes that train together wait for each other")
      ->capture_default_str()
      ->group("Machine");
  command->footer(kFooter);
  command->callback([flags] {
    const int code = run_training(*flags);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
