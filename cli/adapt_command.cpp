#include <fmt/format.h>

#include <memory>

#include "cli/adapt_run.h"
#include "cli/command.h"
#include "gala/base/error.h"

namespace gala {
namespace {

constexpr char kFooter[] =
    "Specs are written name:key=value,key=value; `gala list` shows them all.\n"
    "\n"
    "Examples:\n"
    "  gala adapt --model resnet18:classes=7 --weights source.safetensors --data folder:path=photos\n"
    "  gala adapt --weights wrn.safetensors --data arrays:images=fog.npy,labels=labels.npy \\\n"
    "             --loss shot --norm batch --batch-size 200 --trace trace.jsonl\n"
    "  gala adapt ... --select all --guard rollback:to=healthy     adapt everything, with a net\n"
    "  gala adapt ... --save-state run.state                       stop with Ctrl-C, then go on:\n"
    "  gala adapt ... --save-state run.state --resume run.state\n"
    "  gala adapt ... --loss entropy --select norm_affine --norm batch     this is Tent";

/// The flags whose text is an enum or a list, before they are understood.
struct RawFlags {
  AdaptFlags flags;
  std::string partition, head, predict = "adapting", precision = "float32";
};

template <class T>
T parse_flag(std::string_view flag, const std::string& text) {
  T value{};
  if (!parse_value(text, value)) {
    fail<ConfigError>("{} {}: unknown (expected {})", flag, text, accepted_values<T>());
  }
  return value;
}

enum class Head { kAdapt, kFreeze };
constexpr std::array<std::string_view, 2> enum_names(Head) { return {"adapt", "freeze"}; }

AdaptFlags understand(const RawFlags& raw) {
  AdaptFlags flags = raw.flags;
  if (!raw.partition.empty()) {
    flags.adapter.partition = parse_flag<Granularity>("--partition", raw.partition);
  }
  if (!raw.head.empty()) flags.adapter.head = parse_flag<Head>("--head", raw.head) == Head::kAdapt;
  flags.adapter.predict = parse_flag<PredictWith>("--predict", raw.predict);
  flags.adapter.seed = static_cast<std::uint64_t>(flags.model.seed);
  if (flags.batch_size < 1) fail<ConfigError>("--batch-size must be at least 1, not {}", flags.batch_size);
  if (flags.threads < 0) fail<ConfigError>("--threads must not be negative, not {}", flags.threads);
  if (flags.save_every < 0) {
    fail<ConfigError>("--save-every must not be negative, not {}", flags.save_every);
  }
  if (flags.save_every > 0 && flags.save_state.empty()) {
    fail<ConfigError>("--save-every needs --save-state");
  }
  return flags;
}

void add_method_flags(CLI::App& command, RawFlags& raw) {
  AdapterOptions& adapter = raw.flags.adapter;
  command.add_option("--loss", adapter.loss, "unsupervised loss")->capture_default_str()->group("Method");
  command.add_option("--select", adapter.select, "which layers move")->capture_default_str()->group("Method");
  command.add_option("--optimizer", adapter.optimizer, "how they move")->capture_default_str()->group("Method");
  command.add_option("--norm", raw.flags.model.norm, "statistics of norm layers: source, batch, blend, running")
      ->capture_default_str()->group("Method");
  command.add_option("--partition", raw.partition, "tensor, module or block [the selector's own]")->group("Method");
  command.add_option("--include", adapter.include, "only parameters that fit a pattern")->group("Method");
  command.add_option("--exclude", adapter.exclude, "no parameters that fit a pattern")->group("Method");
  command.add_option("--head", raw.head, "adapt or freeze the classifier [the loss's own]")->group("Method");
  command.add_option("--inner-steps", adapter.inner_steps, "optimizer steps a batch")->capture_default_str()->group("Method");
  command.add_flag("--episodic", adapter.episodic, "back to the source before every batch")->group("Method");
  command.add_option("--adapt-every", adapter.adapt_every, "adapt on every n-th batch")->capture_default_str()->group("Method");
  command.add_option("--predict", raw.predict, "answer with the adapting forward, or after the update")
      ->capture_default_str()->group("Method");
  command.add_flag("--shadow", adapter.shadow, "adapt beside, answer with the source model")->group("Safety");
  command.add_option("--guard", adapter.guard, "what to do about collapse: off, warn, stop, rollback")
      ->capture_default_str()->group("Safety");
}

}  // namespace

void add_adapt_command(CLI::App& program) {
  auto raw = std::make_shared<RawFlags>();
  AdaptFlags& flags = raw->flags;
  CLI::App* command = program.add_subcommand("adapt", "Adapt a model to data while it answers");
  flags.model.add_to(*command);
  command->add_option("--data", flags.data, "what to answer, such as folder:path=DIR")->required();
  command->add_option("--stream", flags.stream, "in which order [single, or continual for several domains]");
  command->add_option("--batch-size", flags.batch_size, "images a batch")->capture_default_str();
  command->add_option("--seed", flags.model.seed, "of everything that is drawn")->capture_default_str();
  add_method_flags(*command, *raw);
  const auto output = [&](const char* name, std::string& target, const char* help) {
    command->add_option(name, target, help)->group("Output");
  };
  output("--trace", flags.trace, "JSON lines, one object a step");
  output("--predictions", flags.predictions, "CSV: index,prediction,confidence[,label]");
  output("--save-weights", flags.save_weights, "the adapted weights, as safetensors");
  output("--save-state", flags.save_state, "everything needed to go on, at the end or when stopped");
  output("--resume", flags.resume, "go on from such a file");
  command->add_option("--save-every", flags.save_every, "also save the state every n batches")->group("Output");
  command->add_flag("--profile", flags.profile, "where the time went")->group("Output");
  command->add_flag("--quiet", flags.quiet, "no progress, no warnings")->group("Output");
  command->add_option("--device", flags.model.device, "cpu, cuda or cuda:N")->capture_default_str()->group("Machine");
  command->add_option("--precision", raw->precision, "float32 or tf32")->capture_default_str()->group("Machine");
  command->add_option("--threads", flags.threads, "0: as many as there are")->capture_default_str()->group("Machine");
  command->add_flag("--deterministic", flags.deterministic, "the same bytes every time (no times in the trace)")
      ->group("Machine");
  command->add_flag("--skip-unreadable", flags.skip_unreadable, "leave broken images out and count them")
      ->group("Machine");
  command->footer(kFooter);
  command->callback([raw] {
    const int code = run_adaptation(understand(*raw));
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
