#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/adapt_run.h"
#include "cli/command.h"
#include "cli/help.h"
#include "gala/base/error.h"

namespace gala {
namespace {

constexpr char kFooter[] =
    "Specs are written name:key=value,key=value; `gala list` shows them all. A\n"
    "pattern is a name in which * stands for any characters and ? for one.\n"
    "\n"
    "Examples:\n"
    "  gala adapt --model resnet18:classes=7 --weights source.safetensors \\\n"
    "             --data folder:path=photos\n"
    "  gala adapt --weights wrn.safetensors --loss shot --norm batch \\\n"
    "             --data arrays:images=fog.npy,labels=labels.npy \\\n"
    "             --batch-size 200 --trace trace.jsonl\n"
    "Adapt everything, with a net:\n"
    "  gala adapt ... --select all --guard rollback:to=healthy\n"
    "Stop with Ctrl-C, then go on:\n"
    "  gala adapt ... --save-state run.state\n"
    "  gala adapt ... --save-state run.state --resume run.state\n"
    "This is Tent:\n"
    "  gala adapt ... --loss entropy --select norm_affine --norm batch";

/// The flags whose text is an enum or a list, before they are understood.
struct RawFlags {
  AdaptFlags flags;
  std::string partition, head, predict = "adapting";
};

enum class Head { kAdapt, kFreeze };
constexpr std::array<std::string_view, 2> enum_names(Head) {
  return {"adapt", "freeze"};
}

AdaptFlags understand(const RawFlags& raw) {
  AdaptFlags flags = raw.flags;
  if (!raw.partition.empty()) {
    flags.adapter.partition = parse_flag<Granularity>("--partition", raw.partition);
  }
  if (!raw.head.empty()) flags.adapter.head = parse_flag<Head>("--head", raw.head) == Head::kAdapt;
  flags.adapter.predict = parse_flag<PredictWith>("--predict", raw.predict);
  flags.adapter.seed = static_cast<std::uint64_t>(flags.model.seed);
  flags.adapter.profile = flags.profile;
  if (flags.save_every > 0 && flags.save_state.empty()) {
    fail<ConfigError>("--save-every needs --save-state FILE");
  }
  return flags;
}

/// More threads than this only wait for each other.
std::int64_t most_threads() {
  return 4 * std::max<std::int64_t>(2, std::thread::hardware_concurrency());
}

/// Adds flags to one group of the help page.
class FlagGroup {
 public:
  FlagGroup(CLI::App& command, std::string name) : command_(command), name_(std::move(name)) {}

  template <class T>
  CLI::Option* value(const char* flag, T& target, const char* type, const char* help) {
    CLI::Option* option = command_.add_option(flag, target, help)->group(name_)->type_name(type);
    if constexpr (!std::same_as<T, std::vector<std::string>>) option->capture_default_str();
    return option;
  }
  void yes(const char* flag, bool& target, const char* help) {
    command_.add_flag(flag, target, help)->group(name_);
  }

 private:
  CLI::App& command_;
  std::string name_;
};

void add_method_flags(CLI::App& command, RawFlags& raw) {
  AdapterOptions& adapter = raw.flags.adapter;
  FlagGroup method(command, "Method");
  method.value("--loss", adapter.loss, "SPEC", "unsupervised loss");
  method.value("--select", adapter.select, "SPEC", "which layers move");
  method.value("--optimizer", adapter.optimizer, "SPEC", "how they move");
  method.value("--norm", raw.flags.model.norm, "SPEC",
               "statistics of norm layers: source, batch, blend or running");
  method.value("--partition", raw.partition, "NAME",
               "what a layer is: tensor, module or block [the selector's own]");
  method.value("--include", adapter.include, "PATTERN", "only parameters that fit one [all]");
  method.value("--exclude", adapter.exclude, "PATTERN", "no parameters that fit one [none]");
  method.value("--head", raw.head, "NAME", "adapt or freeze the classifier [the loss's own]");
  method.value("--inner-steps", adapter.inner_steps, "N", "optimizer steps a batch")
      ->check(whole_number(1));
  method.value("--adapt-every", adapter.adapt_every, "N", "adapt on every N-th batch, answer all")
      ->check(whole_number(1));
  method.yes("--episodic", adapter.episodic, "go back to the source before every batch");
  method.value("--predict", raw.predict, "NAME",
               "answer with the adapting forward pass, or with another one after the update");
  FlagGroup safety(command, "Safety");
  safety.yes("--shadow", adapter.shadow,
             "adapt beside: answers come from the source model, and how many would differ is told");
  safety.value("--guard", adapter.guard, "SPEC",
               "what to do about collapse: off, warn, stop or rollback");
}

void add_output_flags(CLI::App& command, AdaptFlags& flags) {
  FlagGroup output(command, "Output");
  output.value("--trace", flags.trace, "FILE", "JSON lines, one object a step");
  output.value("--predictions", flags.predictions, "FILE",
               "CSV: index,prediction,confidence[,label][,file]; no finite answer is -1 with "
               "confidence 0");
  output.value("--save-weights", flags.save_weights, "FILE",
               "the adapted weights at the end, as safetensors (with --shadow too)");
  output.value("--save-state", flags.save_state, "FILE",
               "everything needed to go on, at the end and when stopped");
  output.value("--save-every", flags.save_every, "N", "save the state every N batches too [never]")
      ->default_str("")
      ->check(whole_number(1));
  output.value("--resume", flags.resume, "FILE", "go on from a saved state, with the same flags");
  output.yes("--profile", flags.profile, "tell where the time went");
  output.yes("--quiet", flags.quiet, "no progress, no warnings");
}

void add_machine_flags(CLI::App& command, AdaptFlags& flags) {
  FlagGroup machine(command, "Machine");
  machine.value("--device", flags.model.device, "NAME", "cpu, cuda or cuda:N");
  machine.value("--precision", flags.model.precision, "NAME",
                "of the network's products: float32, tf32 (on cuda) or bf16");
  machine.value("--layout", flags.model.layout, "NAME",
                "of the maps in memory: contiguous, channels_last, fastest (by trial), or auto "
                "(channels_last on cuda)");
  machine.value("--threads", flags.threads, "N", "0: as many as there are")
      ->check(whole_number(0, most_threads()));
  machine.yes("--deterministic", flags.deterministic,
              "the same bytes every time (no times in the trace)");
  machine.yes("--skip-unreadable", flags.skip_unreadable, "leave broken images out and count them");
}

}  // namespace

void add_adapt_command(CLI::App& program) {
  auto raw = std::make_shared<RawFlags>();
  AdaptFlags& flags = raw->flags;
  CLI::App* command = program.add_subcommand("adapt", "Adapt a model to data while it answers");
  flags.model.add_to(*command);
  command->add_option("--data", flags.data, "what to answer, such as folder:path=DIR")
      ->required()
      ->type_name("SPEC");
  command
      ->add_option("--stream", flags.stream,
                   "in which order [single, or continual for several domains]")
      ->type_name("SPEC");
  command->add_option("--batch-size", flags.batch_size, "images a batch")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1));
  command->add_option("--seed", flags.model.seed, "for everything that is drawn")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(0));
  add_method_flags(*command, *raw);
  add_output_flags(*command, flags);
  add_machine_flags(*command, flags);
  command->footer(kFooter);
  command->callback([raw] {
    const int code = run_adaptation(understand(*raw));
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
