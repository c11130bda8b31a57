#include "gala/protocol/perform.h"

#include <ATen/ATen.h>

#include "gala/adapt/answer_loop.h"
#include "gala/adapt/source_images.h"
#include "gala/base/interrupt.h"
#include "gala/base/stopwatch.h"
#include "gala/data/augment.h"
#include "gala/data/class_check.h"
#include "gala/data/loader.h"
#include "gala/device/device_memory.h"
#include "gala/model/weights.h"
#include "gala/protocol/gather.h"

namespace gala {
namespace {

/// The loader's batches, until the user asks to stop.
NextBatch batches_of(Loader& loader) {
  return [&loader] {
    std::optional<Batch> batch = loader.next();
    if (batch && interrupted()) throw Interrupted("stopped");
    return batch;
  };
}

Score score_of(const std::string& name, const Tally& tally) {
  return {name, tally.images, tally.right};
}

/// One run at work.
class Performance {
 public:
  Performance(const ReadyRun& run, const Machine& machine, SourceCache& cache,
              const std::function<void()>& progress);
  Performed perform();

 private:
  LoaderOptions loader_options() const;
  std::unique_ptr<const Transform> make_transform(bool augmented) const;
  void adapt(Performed& performed);
  std::vector<Score> score(const DataSource& source, bool augmented) const;
  std::vector<Score> score_source(const std::string& norm);
  std::vector<Score> validate(Adapter& adapter) const;

  const ReadyRun& run_;
  const Machine& machine_;
  SourceCache& cache_;
  const std::function<void()>& progress_;
  std::unique_ptr<Model> model_;
  std::string weight_hash_;
};

Performance::Performance(const ReadyRun& run, const Machine& machine, SourceCache& cache,
                         const std::function<void()>& progress)
    : run_(run),
      machine_(machine),
      cache_(cache),
      progress_(progress),
      model_(open_source(run.source, static_cast<std::uint64_t>(run.spec.seed))),
      weight_hash_(weight_hash(*model_)) {
  check_classes(run.bed->target, *model_);
  model_->to(machine.device);
  Precision precision{};
  parse_value(run.spec.precision, precision);
  model_->set_precision(precision);
  const std::int64_t size = model_->preprocessing().size;
  set_layout(*model_, machine.layout, {run.spec.batch_size, 3, size, size});
}

LoaderOptions Performance::loader_options() const {
  LoaderOptions options;
  options.batch_size = run_.spec.batch_size;
  options.threads = machine_.loader_threads;
  options.device = machine_.device;
  return options;
}

/// Plain, or with the random variation of training.
std::unique_ptr<const Transform> Performance::make_transform(bool augmented) const {
  if (!augmented) return std::make_unique<EvaluationTransform>(model_->preprocessing());
  return std::make_unique<DomainBedAugment>(model_->preprocessing(),
                                            static_cast<std::uint64_t>(run_.spec.seed));
}

/// The images of each domain as the network now is, in its norm mode; nothing moves.
std::vector<Score> Performance::score(const DataSource& source, bool augmented) const {
  const Stream stream = make_stream(default_stream(source), source, /*seed=*/0);
  const auto transform = make_transform(augmented);
  Loader loader(stream, *transform, loader_options());
  std::vector<Tally> tallies(source.domains.size());
  for_each_answer(batches_of(loader), *model_, [&](const Answered& answered) {
    tally_by_domain(answered.batch, answered.answer.predictions, tallies);
    return true;
  });
  std::vector<Score> scores;
  for (std::size_t d = 0; d < tallies.size(); ++d) {
    scores.push_back(score_of(source.domains[d].name, tallies[d]));
  }
  return scores;
}

/// The source's hold-outs under the source model, remembered for the runs that begin alike.
std::vector<Score> Performance::score_source(const std::string& norm) {
  const NormMode mode = NormMode::parse(norm);
  // Neither statistics of the network's own nor plain images depend on what makes a batch.
  const bool alike = mode.kind == NormKind::kSource && !run_.bed->augmented;
  const std::string name =
      fmt::format("{} {} {} {} {} {} {} {} {}", model_->spec().to_string(), weight_hash_,
                  run_.data_hash, norm, alike ? 0 : run_.spec.batch_size, run_.bed->augmented,
                  run_.bed->augmented ? run_.spec.seed : 0, run_.spec.precision,
                  model_->preprocessing().to_json().dump());
  return cache_.get(name, [&] {
    model_->set_norm_mode(mode);
    return score(*run_.bed->source, run_.bed->augmented);
  });
}

void Performance::adapt(Performed& performed) {
  Record& record = performed.record;
  const Stream stream = make_stream(Spec::parse(run_.spec.stream), run_.bed->target,
                                    static_cast<std::uint64_t>(run_.spec.seed));
  Adapter adapter(
      *model_, run_.spec,
      {.run = run_.key,
       .source_images = open_source_images(run_.source_data, *model_, run_.spec.batch_size)});
  Gatherer gatherer(stream, adapter, run_.trace);
  Loader loader(stream, model_->preprocessing(), loader_options());
  const auto take = [&](const Answered& answered) {
    gatherer.take(answered);
    progress_();
    return true;
  };
  for_each_answer(batches_of(loader), adapter, take, {.restart = stream.reset_at_borders});
  gatherer.fill(adapter, record);
  if (run_.trace) performed.trace = gatherer.trace().compressed(run_.key, adapter.layers());

  const TestBed& bed = *run_.bed;
  if (bed.held_out) record.held_out = score(*bed.held_out, false).front();
  if (bed.source) record.source->after = score(*bed.source, bed.augmented);
  if (bed.source && bed.validates) record.validation = validate(adapter);
  performed.capture_problem = adapter.capture_problem();
}

/// Adapts to each hold-out of the source, from the source model anew.
std::vector<Score> Performance::validate(Adapter& adapter) const {
  std::vector<Score> scores;
  for (const Domain& domain : run_.bed->source->domains) {
    adapter.reset();
    const DataSource alone{run_.bed->source->spec, {domain}};
    const Stream stream = make_stream(Spec::parse("single:order=shuffled"), alone,
                                      static_cast<std::uint64_t>(run_.spec.seed));
    const auto transform = make_transform(run_.bed->augmented);
    Loader loader(stream, *transform, loader_options());
    Tally tally;
    for_each_answer(batches_of(loader), adapter, [&](const Answered& answered) {
      tally += answered.tally;
      return true;
    });
    scores.push_back(score_of(domain.name, tally));
  }
  return scores;
}

Performed Performance::perform() {
  Stopwatch watch;
  forget_peak(machine_.device);
  Performed performed;
  Record& record = performed.record;
  record.key = run_.key;
  record.spec = run_.spec;
  record.data_hash = run_.data_hash;
  record.labels = run_.labels;
  if (run_.bed->source) {
    record.source.emplace();
    record.source->augmented = run_.bed->augmented;
    record.source->before = score_source("source");
    if (run_.spec.norm != "source") {
      record.source->before_in_norm = score_source(run_.spec.norm);
    }
  }
  model_->set_norm_mode(NormMode::parse(run_.spec.norm));
  adapt(performed);
  record.provenance = machine_.provenance();
  record.provenance["layout"] =
      format_value(model_->memory_format() == at::MemoryFormat::ChannelsLast ? Layout::kChannelsLast
                                                                             : Layout::kContiguous);
  record.provenance["weight_hash"] = weight_hash_;
  record.provenance["weights"] = run_.source.weights.filename().string();
  record.cost.total = watch.lap();
  record.cost.peak_memory = peak_memory(machine_.device, record.cost.memory_of);
  return performed;
}

}  // namespace

std::vector<Score> SourceCache::get(const std::string& name,
                                    const std::function<std::vector<Score>()>& make) {
  {
    const std::lock_guard guard(mutex_);
    if (const auto found = scores_.find(name); found != scores_.end()) return found->second;
  }
  // Not under the lock: two runs that need the same scores at once may both work them out.
  std::vector<Score> made = make();
  const std::lock_guard guard(mutex_);
  return scores_[name] = std::move(made);
}

Performed perform(const ReadyRun& run, const Machine& machine, SourceCache& cache,
                  const std::function<void()>& progress) {
  return Performance(run, machine, cache, progress).perform();
}

}  // namespace gala
