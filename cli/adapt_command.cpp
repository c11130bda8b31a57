#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/adapt_run.h"
#include "cli/command.h"
#include "cli/help.h"
#include "gala/base/error.h"
#include "gala/method/recipe.h"

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
    "A method by its name, and the same with another choice of layers:\n"
    "  gala adapt ... --method roid\n"
    "  gala adapt ... --method roid --select gala";

/// "--inner-steps" for inner_steps.
std::string flag_name(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

/// Takes from the recipe what no flag names.
void take_recipe(const CLI::App& command, AdaptFlags& flags) {
  if (flags.recipe.empty()) return;
  const MethodOptions named = recipe(flags.recipe);
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    if (command.count(flag_name(name)) == 0) flags.method.*member = named.*member;
  });
}

void check(AdaptFlags& flags) {
  flags.model.seed = flags.method.seed;
  if (!flags.method.norm.empty()) flags.model.norm = flags.method.norm;
  if (flags.save_every > 0 && flags.save_state.empty()) {
    fail<ConfigError>("--save-every needs --save-state FILE");
  }
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
  /// One of the names of an enum.
  template <class T>
  void choice(const std::string& flag, T& target, const char* help) {
    const auto read = [&target, flag](const std::string& text) {
      target = parse_flag<T>(flag, text);
    };
    command_.add_option_function<std::string>(flag, read, help)
        ->group(name_)
        ->type_name("NAME")
        ->default_str(format_value(target));
  }
  void yes(const char* flag, bool& target, const char* help) {
    command_.add_flag(flag, target, help)->group(name_);
  }

 private:
  CLI::App& command_;
  std::string name_;
};

/// A flag for every option of the method, of the kind that its type asks for.
void add_method_flags(CLI::App& command, AdaptFlags& flags) {
  MethodOptions& method = flags.method;
  FlagGroup(command, "Method")
      .value("--method", flags.recipe, "NAME",
             "a method by its name (gala list methods); the flags below go over it")
      ->default_str("");
  MethodOptions::visit(
      [&]<class T>(const std::string& name, T MethodOptions::*member, const char* help) {
        T& value = method.*member;
        const std::string flag = flag_name(name);
        FlagGroup group(command, name == "shadow" || name == "guard" ? "Safety" : "Method");
        if constexpr (std::same_as<T, bool>) {
          group.yes(flag.c_str(), value, help);
        } else if constexpr (std::same_as<T, std::string>) {
          CLI::Option* option = group.value(flag.c_str(), value, "SPEC", help);
          if (name == "norm") option->default_str(ModelFlags().norm);
          if (name == "source_data") option->default_str("");
        } else if constexpr (std::same_as<T, std::vector<std::string>>) {
          group.value(flag.c_str(), value, "PATTERN", help);
        } else if constexpr (std::same_as<T, std::int64_t>) {
          group.value(flag.c_str(), value, "N", help)->check(whole_number(name == "seed" ? 0 : 1));
        } else {
          group.choice(flag, value, help);
        }
      });
}

void add_output_flags(CLI::App& command, AdaptFlags& flags) {
  FlagGroup output(command, "Output");
  output.value("--trace", flags.trace, "FILE", "JSON lines, one object a step");
  output.value("--events", flags.events, "FILE", "what the guard found, JSON lines");
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
  auto kept = std::make_shared<AdaptFlags>();
  AdaptFlags& flags = *kept;
  CLI::App* command = program.add_subcommand("adapt", "Adapt a model to data while it answers");
  flags.model.add_to(*command);
  command->add_option("--data", flags.data, "what to answer, such as folder:path=DIR")
      ->required()
      ->type_name("SPEC");
  command
      ->add_option("--stream", flags.stream,
                   "in which order [single, or continual for several domains]")
      ->type_name("SPEC");
  command->add_option("--batch-size", flags.batch_size, "images per batch")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1));
  add_method_flags(*command, flags);
  add_output_flags(*command, flags);
  add_machine_flags(*command, flags);
  command->footer(kFooter);
  command->callback([kept, command] {
    take_recipe(*command, *kept);
    check(*kept);
    const int code = run_adaptation(*kept);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace gala
