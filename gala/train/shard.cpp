#include "gala/train/shard.h"

#include <ATen/ATen.h>

#include <cstring>

#include "gala/base/json.h"

namespace gala {
namespace {

/// A transform that draws as it would for the image's place in the whole batch.
class PartTransform : public Transform {
 public:
  PartTransform(std::unique_ptr<const Transform> whole, std::int64_t part, std::int64_t view,
                std::int64_t first)
      : whole_(std::move(whole)),
        part_(static_cast<std::uint64_t>(part)),
        view_(static_cast<std::uint64_t>(view)),
        first_(static_cast<std::uint64_t>(first)) {}

  std::int64_t size() const override { return whole_->size(); }
  void apply(const Image& image, std::uint64_t step, std::uint64_t slot, TransformScratch& scratch,
             float* out) const override {
    whole_->apply(image, step, slot / part_ * view_ + first_ + slot % part_, scratch, out);
  }

 private:
  std::unique_ptr<const Transform> whole_;
  std::uint64_t part_;   ///< images of a view that this process has
  std::uint64_t view_;   ///< images of a view in the whole batch
  std::uint64_t first_;  ///< of them, the first that this process has
};

/// Moves the beginnings of segments to where their sizes put them.
void lay_out(Stream& stream) {
  std::int64_t begin = 0;
  for (StreamSegment& segment : stream.segments) {
    segment.begin = begin;
    begin += segment.size;
  }
}

/// The stream without what is in it.
Stream empty_like(const Stream& whole) {
  Stream result;
  result.spec = whole.spec;
  result.domains = whole.domains;
  result.cut_at_borders = whole.cut_at_borders;
  result.drop_last = whole.drop_last;
  result.reset_at_borders = whole.reset_at_borders;
  return result;
}

}  // namespace

void check_shares(const TrainPlan& plan, const Training& training, int processes) {
  const std::int64_t batch = plan.train.batch_size;
  if (plan.data.sampling == Sampling::kPerDomain) {
    const auto domains = static_cast<std::int64_t>(training.train.domains.size());
    if (batch * domains % processes == 0) return;
    fail<ConfigError>(
        "{} images of each of {} domains cannot be shared by {} processes (expected a multiple of "
        "the "
        "processes in all)",
        batch, domains, processes);
  }
  if (batch % processes == 0) return;
  fail<ConfigError>("{} images cannot be shared by {} processes (expected a multiple of {})", batch,
                    processes, processes);
}

Curriculum share_of(Curriculum whole, const ProcessGroup& processes) {
  const std::int64_t view = whole.batch_size / whole.views, part = view / processes.size();
  const std::int64_t first = part * processes.rank();
  if (part * processes.size() != view) {
    fail("{} images cannot be shared by {} processes", view, processes.size());
  }
  Stream stream = empty_like(whole.stream);
  for (const StreamSegment& segment : whole.stream.segments) {
    stream.segments.push_back({segment.name, 0, 0});
  }
  for (const BatchSpan& span : whole.stream.batches(whole.batch_size)) {
    if (span.size < whole.batch_size) continue;
    for (std::int64_t at = span.begin; at < span.begin + span.size; at += view) {
      const auto begin = whole.stream.items.begin() + at + first;
      stream.items.insert(stream.items.end(), begin, begin + part);
    }
    stream.segments[static_cast<std::size_t>(span.segment)].size += part * whole.views;
  }
  lay_out(stream);
  whole.stream = std::move(stream);
  whole.batch_size = part * whole.views;
  whole.transform = std::make_unique<PartTransform>(std::move(whole.transform), part, view, first);
  return whole;
}

Stream batches_of(const Stream& whole, std::int64_t batch_size, const ProcessGroup& processes) {
  Stream stream = empty_like(whole);
  std::int64_t number = 0;
  for (const BatchSpan& span : whole.batches(batch_size)) {
    if (number++ % processes.size() != processes.rank()) continue;
    const auto begin = whole.items.begin() + span.begin;
    stream.items.insert(stream.items.end(), begin, begin + span.size);
    stream.segments.push_back({fmt::format("batch {}", number), 0, span.size});
  }
  stream.cut_at_borders = true;
  lay_out(stream);
  return stream;
}

State from_first(const State& state, ProcessGroup& processes) {
  nlohmann::json head = {{"values", state.values}, {"tensors", nlohmann::json::array()}};
  std::string bytes;
  for (const auto& [name, tensor] : state.tensors) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    head["tensors"].push_back({{"name", name},
                               {"type", static_cast<int>(plain.scalar_type())},
                               {"sizes", plain.sizes().vec()}});
    bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
  }
  const nlohmann::json told = nlohmann::json::parse(processes.from_first(head.dump()));
  bytes = processes.from_first(bytes);
  State result;
  result.values = told.at("values");
  std::size_t place = 0;
  for (const auto& entry : told.at("tensors")) {
    const at::Tensor tensor = at::empty(entry.at("sizes").get<std::vector<std::int64_t>>(),
                                        static_cast<at::ScalarType>(entry.at("type").get<int>()));
    std::memcpy(tensor.mutable_data_ptr(), bytes.data() + place, tensor.nbytes());
    place += tensor.nbytes();
    result.tensors[entry.at("name")] = tensor;
  }
  return result;
}

void check_agreement(const nlohmann::json& settings, ProcessGroup& processes) {
  const nlohmann::json first = nlohmann::json::parse(processes.from_first(settings.dump()));
  std::string problem;
  for (const auto& [name, value] : settings.items()) {
    const nlohmann::json theirs = first.contains(name) ? first[name] : nlohmann::json();
    if (theirs != value && problem.empty()) {
      problem = fmt::format("rank {} has {} {}, rank 0 has {}", processes.rank(), name,
                            value.dump(), theirs.dump());
    }
  }
  // Everybody hears of it, and nobody is left waiting.
  for (const std::string& found : processes.gather(problem)) {
    if (!found.empty()) fail<ConfigError>("the processes do not train the same: {}", found);
  }
}

}  // namespace gala
