#include "gala/protocol/resolve.h"

#include <algorithm>

#include "gala/data/class_check.h"
#include "gala/data/data_paths.h"
#include "gala/data/stream.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// Puts the relative folders of a spec below `root`.
Spec with_root(Spec spec, std::span<const std::string_view> paths, const fs::path& root) {
  for (const std::string_view name : paths) {
    const std::string* value = spec.find(name);
    if (value && !value->empty()) spec.set(name, (root / *value).lexically_normal().string());
  }
  return spec;
}

/// What a protocol spec opened.
struct OpenBed {
  RunDefaults defaults;
  std::shared_ptr<const TestBed> bed;
  std::string hash;
};

/// The name a network has in tables.
std::string backbone_name(const Spec& network) {
  const auto option = [&](const char* name) {
    const std::string* value = network.find(name);
    return value ? *value : std::string("?");
  };
  if (network.name == "wide_resnet") {
    return fmt::format("WRN-{}-{}", option("depth"), option("width"));
  }
  if (network.name.starts_with("resnext")) return "ResNeXt-" + network.name.substr(7);
  if (network.name.starts_with("resnet")) return "ResNet-" + network.name.substr(6);
  return network.name;
}

/// "entropy+consistency"
std::string names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.name);
  return fmt::format("{}", fmt::join(names, "+"));
}

/// The run's stream, with borders as `restart_at_borders` wants them.
Spec decide_stream(const RunRequest& request, const RunDefaults& defaults) {
  const auto streams =
      describe_registry<Stream, const DataSource&, std::uint64_t>(stream_registry());
  Spec spec = written_out(Spec::parse(request.stream.empty() ? defaults.stream : request.stream),
                          streams, Stream::kKind);
  if (request.restart_at_borders) {
    if (!spec.find("reset")) {
      fail<ConfigError>("restart_at_borders: the stream {} has no borders", spec.name);
    }
    spec.set("reset", "yes");
  }
  return spec;
}

/// Opens beds, sources and networks once and keeps them.
class Resolver {
 public:
  Resolver(const ExperimentPlan& plan, fs::path root) : plan_(plan), root_(std::move(root)) {}

  ReadyRun resolve(const PlannedRun& planned);
  /// Notes what is wrong with a run that could not be resolved.
  void note(const PlannedRun& planned, const std::string& problem);
  /// Adds everything noted, each thing once: a grid has many runs with the same mistake.
  void explain(Problems& problems) const;

 private:
  struct Mistake {
    std::string text;
    std::string run;  ///< the first that has it; empty where it is not a run's own
    std::int64_t others = 0;
  };
  void note(const std::string& text, const std::string& run);

  const OpenBed& open_bed(const std::string& protocol);
  const SourceModel& open_model(const RunRequest& request, std::int64_t classes);
  Model& prototype(const Spec& network);

  const ExperimentPlan& plan_;
  fs::path root_;
  std::map<std::string, OpenBed> beds_;
  std::map<std::string, SourceModel> sources_;
  std::map<std::string, std::unique_ptr<Model>> prototypes_;
  std::map<std::string, std::string> failures_;  ///< what could not be opened, and why
  std::map<std::string, std::string> source_failures_;
  std::vector<Mistake> mistakes_;
};

const OpenBed& Resolver::open_bed(const std::string& text) {
  if (const auto failed = failures_.find(text); failed != failures_.end()) {
    throw ConfigError(failed->second);
  }
  const auto found = beds_.find(text);
  if (found != beds_.end()) return found->second;
  try {
    const auto protocol = make_protocol(below_root(Spec::parse(text), root_));
    auto bed = std::make_shared<TestBed>(protocol->open());
    std::string hash = bed->hash();
    return beds_[text] = {protocol->defaults(), std::move(bed), std::move(hash)};
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    failures_[text] = error.what();
    throw;
  }
}

const SourceModel& Resolver::open_model(const RunRequest& request, std::int64_t classes) {
  const std::string name =
      fmt::format("{}|{}|{}|{}|{}|{}|{}", request.model, request.weights, request.train,
                  request.train_set, format_value(request.known_by), classes,
                  request.weights.empty() && request.train.empty() ? request.seed : 0);
  const auto found = sources_.find(name);
  if (found != sources_.end()) return found->second;
  if (const auto failed = source_failures_.find(name); failed != source_failures_.end()) {
    throw ConfigError(failed->second);
  }
  try {
    return sources_[name] = find_source(request, plan_.path.parent_path(), root_, classes);
  } catch (const Error& error) {
    source_failures_[name] = error.what();
    throw;
  }
}

Model& Resolver::prototype(const Spec& network) {
  std::unique_ptr<Model>& model = prototypes_[network.to_string()];
  if (!model) model = make_from_registry(model_registry(), network);
  return *model;
}

ReadyRun Resolver::resolve(const PlannedRun& planned) {
  const RunRequest& request = planned.request;
  if (request.protocol.empty()) fail<ConfigError>("protocol is missing");
  const OpenBed& open = open_bed(request.protocol);
  for (const Domain& domain : open.bed->target.domains) {
    if (!domain.data->labelled()) {
      fail<ConfigError>("{} has no labels: nothing could be scored", domain.name);
    }
  }
  ReadyRun run;
  run.name = planned.describe();
  run.bed = open.bed;
  run.data_hash = open.hash;
  run.trace = request.trace;
  run.source = open_model(request, open.bed->target.classes());
  Model& network = prototype(run.source.network);
  check_classes(open.bed->target, network);
  const Method method = decide_method(request, open.defaults, network);
  run.idle = method.idle;

  const Spec stream_spec = decide_stream(request, open.defaults);
  const Stream stream =
      make_stream(stream_spec, open.bed->target, static_cast<std::uint64_t>(request.seed));
  run.warnings = class_warnings(open.bed->target, stream, run.source.classes);
  const std::int64_t batch_size =
      request.batch_size == 0 ? open.defaults.batch_size : request.batch_size;
  if (batch_size < 1) {
    fail<ConfigError>("batch_size cannot be {} (expected 1 or more)", batch_size);
  }
  const std::vector<BatchSpan> batches = stream.batches(batch_size);
  run.batches = static_cast<std::int64_t>(batches.size());
  for (const BatchSpan& batch : batches) run.images += batch.size;

  static_cast<MethodOptions&>(run.spec) = method.options;
  if (!method.options.source_data.empty()) {
    const Spec data = Spec::parse(method.options.source_data);
    run.spec.source_data = without_paths(data, data_paths(data.name)).to_string();
    run.source_data = with_root(data, data_paths(data.name), root_).to_string();
  }
  run.spec.protocol = open.bed->protocol.to_string();
  run.spec.model = run.source.network.to_string();
  run.spec.training = run.source.identity;
  run.spec.data = open.bed->data.to_string();
  run.spec.stream = stream_spec.to_string();
  run.spec.batch_size = batch_size;
  run.spec.restart_at_borders = stream.reset_at_borders;
  run.spec.precision = format_value(request.precision);
  run.key = run_key(run.spec, run.data_hash);

  run.labels = planned.labels;
  run.labels.benchmark = Spec::parse(request.protocol).name;
  run.labels.environment = open.bed->environment;
  if (run.labels.dataset.empty()) run.labels.dataset = open.bed->dataset;
  if (run.labels.backbone.empty()) run.labels.backbone = backbone_name(run.source.network);
  if (!planned.values.contains("trial")) {
    // What is repeated with another seed is another trial.
    run.labels.trial = open.bed->environment.empty() ? request.seed : open.bed->trial;
  }
  run.labels.loss = run.idle ? "" : names_of(parse_specs(run.spec.loss));
  if (run.idle) run.labels.hyper.clear();
  return run;
}

void Resolver::note(const std::string& text, const std::string& run) {
  const auto found = std::find_if(mistakes_.begin(), mistakes_.end(),
                                  [&](const Mistake& mistake) { return mistake.text == text; });
  if (found == mistakes_.end()) {
    mistakes_.push_back({text, run});
  } else {
    ++found->others;
  }
}

void Resolver::note(const PlannedRun& planned, const std::string& problem) {
  const auto is_shared = [&](const auto& failures) {
    return std::any_of(failures.begin(), failures.end(),
                       [&](const auto& failure) { return failure.second == problem; });
  };
  note(problem, is_shared(failures_) || is_shared(source_failures_) ? "" : planned.describe());
  if (!failures_.contains(planned.request.protocol)) return;
  // Where the data is missing the weights may be too.
  const std::string missing = missing_weights(planned.request, plan_.path.parent_path(), root_);
  if (!missing.empty()) note(missing, "");
}

void Resolver::explain(Problems& problems) const {
  for (const auto& [text, run, others] : mistakes_) {
    if (run.empty()) {
      problems.add(text);
    } else if (others == 0) {
      problems.add(fmt::format("{}: {}", run, text));
    } else {
      problems.add(fmt::format("{}, and {} more: {}", run, others, text));
    }
  }
}

}  // namespace

Spec below_root(Spec spec, const fs::path& root) {
  const auto paths = protocol_paths(spec.name);
  return with_root(std::move(spec), paths, root);
}

std::vector<ReadyRun> resolve(const ExperimentPlan& plan, const fs::path& root,
                              Problems& problems) {
  Resolver resolver(plan, root);
  std::vector<ReadyRun> runs;
  std::map<std::string, std::size_t> by_key;
  std::map<Labels, std::string> places;
  for (const PlannedRun& planned : plan.runs) {
    try {
      ReadyRun run = resolver.resolve(planned);
      const auto [place, free] = places.emplace(run.labels, run.key);
      if (!free && place->second != run.key) {
        fail<ConfigError>(
            "has the place of another run in the table: put what differs into the row's name, "
            "group, "
            "trial or hyper");
      }
      const auto [found, fresh] = by_key.emplace(run.key, runs.size());
      if (fresh) {
        runs.push_back(std::move(run));
        continue;
      }
      ReadyRun& first = runs[found->second];
      first.trace = first.trace || run.trace;
      if (run.labels != first.labels) first.places.push_back(run.labels);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      resolver.note(planned, error.what());
    }
  }
  resolver.explain(problems);
  return runs;
}

}  // namespace gala
