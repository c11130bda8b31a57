#include "gala/protocol/source_model.h"

#include "gala/model/weights.h"
#include "gala/protocol/method.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

template <class Part>
nlohmann::json section_of(const Part& part) {
  nlohmann::json json = nlohmann::json::object();
  Part::visit(
      [&](const char* name, auto member, const char*) { json[name] = format_value(part.*member); });
  return json;
}

/// A training plan that a run names, and how to carry it out.
struct Training {
  TrainPlan plan;
  std::string command;
};

Training read_training(const RunRequest& request, const fs::path& folder) {
  const fs::path path = folder / request.train;
  Problems problems;
  std::vector<PlanSetting> settings;
  std::string command = fmt::format("gala train {}", path.string());
  if (!request.train_set.empty()) {
    for (const auto& [name, value] : Spec::parse("set:" + request.train_set).options) {
      settings.push_back({name, value});
      command += fmt::format(" --set {}={}", name, value);
    }
  }
  Training training{read_train_plan(path, problems, settings), command};
  problems.throw_if_any(path.string());
  return training;
}

/// What a weight file says of its training; null when it says nothing.
nlohmann::json identity_in(const nlohmann::json& metadata) {
  const auto record = metadata.find("training");
  if (record == metadata.end() || !record->contains("plan")) return nullptr;
  std::vector<PlanSetting> settings;
  const nlohmann::json parameters = record->value("parameters", nlohmann::json::object());
  for (const auto& [name, value] : parameters.items()) {
    settings.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  Problems problems;
  const TrainPlan plan = parse_train_plan(record->at("plan"), problems, settings);
  if (!problems.empty()) return nullptr;
  return training_identity(plan);
}

/// "train.seed is 1 and should be 0", of the first value that differs.
std::string difference(const nlohmann::json& found, const nlohmann::json& wanted) {
  for (const auto& [section, values] : wanted.items()) {
    for (const auto& [name, value] : values.items()) {
      const nlohmann::json other =
          found.value(section, nlohmann::json::object()).value(name, nlohmann::json(nullptr));
      if (other != value) {
        return fmt::format("{}.{} is {} and should be {}", section, name, other.dump(),
                           value.dump());
      }
    }
  }
  return "their plans differ";
}

/// Where a set lies is no matter, but the folder's own name says which set it is.
std::string with_last_folder(const std::string& data) {
  Spec spec = Spec::parse(data);
  if (const std::string* path = spec.find("path")) {
    fs::path folder = fs::path(*path).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    spec.set("path", folder.filename().string());
  }
  return spec.to_string();
}

/// What a request says of its weights, whether they are there or not.
struct Origin {
  fs::path weights;
  std::string network;    ///< may be for the file to say
  nlohmann::json wanted;  ///< the training plan they must come from, or null
  std::string missing;    ///< what to do about a file that is not there; else empty
};

Origin find_origin(const RunRequest& request, const fs::path& folder, const fs::path& root) {
  Origin origin;
  origin.network = request.model;
  std::string command;
  if (!request.weights.empty()) origin.weights = root / request.weights;
  if (!request.train.empty()) {
    const Training training = read_training(request, folder);
    origin.wanted = training_identity(training.plan);
    command = training.command;
    if (origin.network.empty()) origin.network = training.plan.model.network;
    if (origin.weights.empty()) origin.weights = root / training.plan.output.weights;
  }
  if (!origin.weights.empty() && !fs::exists(origin.weights)) {
    origin.missing = fmt::format("{} is missing", origin.weights.string());
    if (!command.empty()) origin.missing += fmt::format("; to make it: {}", command);
  }
  return origin;
}

}  // namespace

nlohmann::json training_identity(const TrainPlan& plan) {
  nlohmann::json json = {{"model", section_of(plan.model)},
                         {"data", section_of(plan.data)},
                         {"train", section_of(plan.train)},
                         {"output", section_of(plan.output)}};
  json["output"].erase("weights");
  json["train"].erase("checkpoint_every");
  for (const char* name : {"train", "evaluation"}) {
    const std::string data = json["data"][name];
    if (!data.empty()) json["data"][name] = with_last_folder(data);
  }
  json["model"]["init"] = fs::path(plan.model.init).filename().string();
  return json;
}

std::string missing_weights(const RunRequest& request, const fs::path& folder,
                            const fs::path& root) {
  try {
    return find_origin(request, folder, root).missing;
  } catch (const Error& error) {
    return error.what();
  }
}

SourceModel find_source(const RunRequest& request, const fs::path& folder, const fs::path& root,
                        std::int64_t classes) {
  const auto [weights, asked_for, wanted, missing] = find_origin(request, folder, root);
  SourceModel source;
  source.weights = weights;
  source.missing = missing;
  std::string network = asked_for;
  nlohmann::json metadata;
  const bool there = !source.weights.empty() && source.missing.empty();
  if (there) {
    metadata = read_weight_metadata(source.weights);
    if (network.empty()) network = metadata.value("model", "");
  }
  if (network.empty()) {
    if (!source.missing.empty()) fail<ConfigError>("{}", source.missing);
    if (source.weights.empty()) {
      fail<ConfigError>("model, weights or train must say what network is run");
    }
    fail<ConfigError>("{} does not name its network; give model", source.weights.string());
  }
  Spec spec = Spec::parse(network);
  if (!spec.find("classes")) spec.set("classes", std::to_string(classes));
  const auto model = make_from_registry(model_registry(), spec);
  source.network = model->spec();
  const nlohmann::json found = there ? identity_in(metadata) : nlohmann::json();
  if (!wanted.is_null() && there && found != wanted) {
    fail<ConfigError>("{} was not trained by {}: {}", source.weights.string(), request.train,
                      found.is_null() ? "it does not say how it was" : difference(found, wanted));
  }
  const Preprocessing usual = model->preprocessing();
  if (there) load_weights(*model, source.weights);  // says when they do not fit
  source.classes = model->class_names();
  if (!wanted.is_null() || !found.is_null()) {
    source.identity = {{"plan", wanted.is_null() ? found : wanted}};
  } else if (there || (source.weights.empty() && model->brings_weights())) {
    source.identity = {{"weights", weight_hash(*model)}};
  } else if (!source.weights.empty()) {
    source.identity = {{"weights", "unknown"}};
  } else {
    source.identity = {{"random", request.seed}};
  }
  if (request.known_by == KnownBy::kWeights && source.identity.contains("plan")) {
    source.identity["weights"] = there ? weight_hash(*model) : "unknown";
  }
  if (model->preprocessing() != usual) {
    source.identity["preprocessing"] = model->preprocessing().to_json();
  }
  return source;
}

std::unique_ptr<Model> open_source(const SourceModel& source, std::uint64_t seed) {
  if (source.weights.empty()) return make_model(source.network, seed);
  auto model = make_from_registry(model_registry(), source.network);
  load_weights(*model, source.weights);
  return model;
}

}  // namespace gala
