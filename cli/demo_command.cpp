#include <memory>

#include "cli/command.h"
#include "cli/demo_run.h"
#include "cli/help.h"

namespace gala {

void add_demo_command(CLI::App& program) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* command =
      program.add_subcommand("demo", "A model fails under shifting data, and adapts");
  command
      ->add_option("--assets", flags->assets,
                   "folder with the demo's model and images [the program's own]")
      ->type_name("DIR");
  command->add_option("--out", flags->out, "folder for the results")
      ->capture_default_str()
      ->type_name("DIR");
  command->add_option("--loss", flags->loss, "unsupervised loss")
      ->capture_default_str()
      ->type_name("SPEC");
  command->add_option("--images", flags->images, "images of each corruption, at most 2000")
      ->check(whole_number(1, 2000))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--quiet", flags->quiet, "no progress");
  command->footer(
      "A small network, trained on clean CIFAR-10, meets noise, blur, snow, fog and\n"
      "compression, one after the other. Four copies answer the same 100 images at a\n"
      "time: as it came, with the statistics of the batch, adapting every layer, and\n"
      "adapting the layer that gala chooses. Every number is measured while you watch;\n"
      "labels are used for scoring alone.\n"
      "\n"
      "Example:\n"
      "  gala demo --loss shot");
  command->callback([flags] {
    const int code = run_demo(*flags);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
