#include "gala/train/plan.h"

#include "gala/base/input_file.h"
#include "gala/train/plan_parameters.h"

namespace gala {
namespace {

/// A TOML value as a member of an options struct; false when it is of another type.
template <class T>
bool read_value(const toml::node& node, T& value) {
  if constexpr (std::same_as<T, bool>) {
    return node.is_boolean() && (value = node.as_boolean()->get(), true);
  } else if constexpr (std::same_as<T, std::string>) {
    return node.is_string() && (value = node.as_string()->get(), true);
  } else if constexpr (NamedEnum<T>) {
    return node.is_string() && parse_value(node.as_string()->get(), value);
  } else if constexpr (std::integral<T>) {
    return node.is_integer() && (value = node.as_integer()->get(), true);
  } else {
    if (!node.is_number()) return false;
    const double number = *node.value<double>();
    return std::isfinite(number) && (value = number, true);
  }
}

template <class Part>
void read_section(const toml::table& plan, const char* section, Part& part, Problems& problems) {
  const toml::node* node = plan.get(section);
  if (!node) return;
  const toml::table* table = node->as_table();
  if (!table) {
    return problems.add(
        fmt::format("{}{} must be a section: [{}]", place_of(*node), section, section));
  }
  std::vector<std::string> known;
  Part::visit([&]<class T>(const char* key, T Part::*member, const char*) {
    known.emplace_back(key);
    const toml::node* value = table->get(key);
    if (!value || read_value(*value, part.*member)) return;
    const bool quoted = std::same_as<T, std::string> || NamedEnum<T>;
    const std::string accepted =
        std::same_as<T, bool> ? std::string("true or false") : accepted_values<T>();
    problems.add(fmt::format("{}{}.{} cannot be {} (expected {}{})", place_of(*value), section, key,
                             shown(*value), accepted, quoted ? ", in quotes" : ""));
  });
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    problems.add(fmt::format("{}[{}] has no key \"{}\"{}", place_of(value), section, name,
                             suggestion(name, known)));
  }
}

void check_section_names(const toml::table& plan, Problems& problems) {
  const std::vector<std::string> known = {"parameters", "model", "data", "train", "output"};
  for (const auto& [key, value] : plan) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    problems.add(fmt::format("{}a plan has no {} \"{}\"{}", place_of(value),
                             value.is_table() ? "section" : "key", name, suggestion(name, known)));
  }
}

void check_values(const TrainPlan& plan, Problems& problems) {
  const auto require = [&](bool holds, std::string_view key, std::string_view expected,
                           const auto& value) {
    if (!holds) problems.add(fmt::format("{} must be {}, not {}", key, expected, value));
  };
  if (plan.model.network.empty()) problems.add("model.network is missing");
  if (plan.data.train.empty()) problems.add("data.train is missing");
  const TrainPlan::TrainPart& train = plan.train;
  const bool per_domain = plan.data.sampling == Sampling::kPerDomain;
  require(train.epochs >= 1 && train.epochs <= 1'000'000, "train.epochs", "from 1 to 1000000",
          train.epochs);
  constexpr std::int64_t kMostSteps = 100'000'000;
  require(
      per_domain ? train.steps >= 1 && train.steps <= kMostSteps : train.steps == 0, "train.steps",
      per_domain ? "from 1 to 100000000" : "left out unless sampling is per_domain", train.steps);
  require(train.batch_size >= 1, "train.batch_size", "at least 1", train.batch_size);
  require(train.warmup_epochs >= 0 && train.warmup_epochs <= static_cast<double>(train.epochs),
          "train.warmup_epochs", "from 0 to train.epochs", train.warmup_epochs);
  require(!per_domain || train.warmup_epochs == 0, "train.warmup_epochs",
          "0 with sampling per_domain, which has no epochs", train.warmup_epochs);
  require(train.label_smoothing >= 0 && train.label_smoothing < 1, "train.label_smoothing",
          "from 0 to below 1", train.label_smoothing);
  require(train.seed >= 0, "train.seed", "at least 0", train.seed);
  require(train.evaluate_every >= 0, "train.evaluate_every", "at least 0", train.evaluate_every);
  require(train.checkpoint_every >= 0, "train.checkpoint_every", "at least 0",
          train.checkpoint_every);
  require(train.consistency >= 0, "train.consistency", "at least 0", train.consistency);
  if (train.evaluate_every > 0 && plan.data.evaluation.empty()) {
    problems.add("train.evaluate_every needs data.evaluation");
  }
  if (train.keep == Keep::kBest && (train.evaluate_every < 1 || plan.data.evaluation.empty())) {
    problems.add("train.keep = \"best\" needs data.evaluation and train.evaluate_every");
  }
  if (train.consistency > 0 && (plan.data.augmentation != Augmentation::kAugMix || per_domain)) {
    problems.add("train.consistency needs data.augmentation = \"augmix\" and sampling shuffled");
  }
}

}  // namespace

TrainPlan parse_train_plan(std::string text, Problems& problems,
                           std::span<const PlanSetting> settings) {
  TrainPlan plan;
  plan.text = std::move(text);
  toml::table table;
  try {
    table = toml::parse(std::string_view(plan.text));
  } catch (const toml::parse_error& error) {
    problems.add(fmt::format("line {}: {}", error.source().begin.line, error.description()));
    return plan;
  } catch (const Error& error) {
    problems.add(error.what());
    return plan;
  }
  plan.parameters = fill_in_parameters(table, settings, problems);
  check_section_names(table, problems);
  read_section(table, "model", plan.model, problems);
  read_section(table, "data", plan.data, problems);
  read_section(table, "train", plan.train, problems);
  read_section(table, "output", plan.output, problems);
  check_values(plan, problems);
  return plan;
}

TrainPlan read_train_plan(const std::filesystem::path& path, Problems& problems,
                          std::span<const PlanSetting> settings) {
  return parse_train_plan(read_text(path), problems, settings);
}

void TrainPlan::set_data_path(const std::string& path) {
  for (std::string* set : {&data.train, &data.evaluation}) {
    if (set->empty()) continue;
    Spec spec = Spec::parse(*set);
    if (!spec.find("path")) continue;
    spec.set("path", path);
    *set = spec.to_string();
  }
}

}  // namespace gala
