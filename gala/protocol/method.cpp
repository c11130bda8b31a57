#include "gala/protocol/method.h"

#include <algorithm>

#include "gala/data/stream_order.h"

namespace gala {
namespace {

/// A value in the spelling of its type.
std::string respelled(const std::string& text, const OptionInfo& option, const Spec& spec,
                      std::string_view kind) {
  const auto as = [&]<class T>(T value) {
    if (!parse_value(text, value)) {
      fail<ConfigError>("{} {}: option {} cannot be \"{}\" (expected {})", kind, spec.name,
                        option.name, text, option.type);
    }
    return format_value(value);
  };
  if (option.type == accepted_values<double>()) return as(double{});
  if (option.type == accepted_values<std::int64_t>()) return as(std::int64_t{});
  if (option.type == accepted_values<bool>()) return as(bool{});
  return text;
}

std::vector<std::string> patterns(const std::string& text) {
  return text.empty() ? std::vector<std::string>{} : split_names(text);
}

std::optional<Granularity> parse_partition(const std::string& text) {
  Granularity granularity{};
  if (text.empty()) return std::nullopt;
  if (!parse_value(text, granularity)) {
    fail<ConfigError>("partition cannot be \"{}\" (expected {})", text,
                      accepted_values<Granularity>());
  }
  return granularity;
}

/// Makes every part as the adapter will, but leaves the network alone.
void check_fit(const AdapterOptions& options, Model& network) {
  const auto selector = make_selector(Spec::parse(options.select), options.seed);
  ParameterFilter filter{
      .head = *options.head, .include = options.include, .exclude = options.exclude};
  selector->restrict(filter);
  const auto adapted = adapted_parameters(network, filter, *options.partition);
  selector->attach(make_partition(adapted, *options.partition));
  Guard(options.guard, network.classes());
  if (options.inner_steps < 1) {
    fail<ConfigError>("inner_steps must be at least 1, not {}", options.inner_steps);
  }
  if (options.adapt_every < 1) {
    fail<ConfigError>("adapt_every must be at least 1, not {}", options.adapt_every);
  }
}

std::string guard_spec(const std::string& text) {
  const Spec spec = Spec::parse(text);
  const GuardOptions options = parse_options<GuardOptions>(spec, "guard");
  if (!options.events.empty()) {
    fail<ConfigError>("guard: a plan's runs keep their events in the records, not in {}",
                      options.events);
  }
  Spec whole = options_to_spec(spec.name, options);
  std::erase_if(whole.options, [](const auto& option) { return option.first == "events"; });
  return whole.to_string();
}

/// Options that came after the first records, by method: at their default a spec does not name them, so
/// that runs keep their keys.
constexpr std::pair<std::string_view, std::string_view> kLater[] = {{"random", "draws"}};

bool stays_unwritten(const Spec& spec, const OptionInfo& option, const std::string& value) {
  return value == option.default_value &&
         std::find(std::begin(kLater), std::end(kLater),
                   std::pair<std::string_view, std::string_view>{spec.name, option.name}) !=
             std::end(kLater);
}

}  // namespace

Spec written_out(const Spec& spec, const std::vector<MethodInfo>& known, std::string_view kind) {
  std::vector<std::string> names;
  for (const MethodInfo& method : known) {
    names.emplace_back(method.name);
    if (method.name != spec.name) continue;
    Spec whole{spec.name, {}};
    std::vector<std::string> options;
    for (const OptionInfo& option : method.options) {
      const std::string* given = spec.find(option.name);
      options.push_back(option.name);
      std::string value = given ? respelled(*given, option, spec, kind) : option.default_value;
      if (stays_unwritten(spec, option, value)) continue;
      whole.options.emplace_back(option.name, std::move(value));
    }
    for (const auto& [name, value] : spec.options) {
      if (std::find(options.begin(), options.end(), name) == options.end()) {
        fail<ConfigError>("{} {} has no option \"{}\"{}", kind, spec.name, name,
                          suggestion(name, options));
      }
    }
    return whole;
  }
  fail<ConfigError>("unknown {} \"{}\"{}", kind, spec.name, suggestion(spec.name, names));
}

Method decide_method(const RunRequest& request, const RunDefaults& defaults, Model& network) {
  const auto losses = describe_registry<Loss>(loss_registry());
  const auto optimizers = describe_registry<Optimizer>(optimizer_registry());
  const auto selectors = describe_registry<Selector, std::uint64_t>(selector_registry());
  const auto seed = static_cast<std::uint64_t>(request.seed);

  Method method;
  const Spec select = written_out(Spec::parse(request.select), selectors, Selector::kKind);
  const auto selector = make_selector(select, seed);
  method.idle = selector->idle();
  const RunRequest plain;
  const RunRequest& wish = method.idle ? plain : request;
  const std::string optimizer = wish.optimizer.empty() ? defaults.optimizer : wish.optimizer;
  const Spec loss = written_out(Spec::parse(wish.loss), losses, Loss::kKind);
  std::string partition = wish.partition;
  if (partition.empty() && !method.idle) partition = defaults.partition;

  AdapterOptions& options = method.options;
  options.loss = loss.to_string();
  options.select = select.to_string();
  options.optimizer = written_out(Spec::parse(optimizer), optimizers, Optimizer::kKind).to_string();
  make_optimizer(Spec::parse(options.optimizer));
  options.guard = guard_spec(request.guard);
  options.partition = parse_partition(partition).value_or(selector->default_granularity());
  options.head =
      wish.head == HeadRule::kAuto ? make_loss(loss)->adapts_head() : wish.head == HeadRule::kAdapt;
  // In a partition of blocks the head is in none.
  if (*options.partition == Granularity::kBlock) options.head = false;
  options.include = patterns(wish.include);
  options.exclude = patterns(wish.exclude);
  options.inner_steps = wish.inner_steps;
  options.adapt_every = wish.adapt_every;
  options.episodic = wish.episodic;
  options.predict = wish.predict;
  options.seed = seed;
  check_fit(options, network);

  method.norm = NormMode::parse(request.norm.empty() ? defaults.norm : request.norm).to_string();
  method.batch_size = request.batch_size == 0 ? defaults.batch_size : request.batch_size;
  if (method.batch_size < 1) {
    fail<ConfigError>("batch_size cannot be {} (expected 1 or more)", method.batch_size);
  }
  return method;
}

}  // namespace gala
