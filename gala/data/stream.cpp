#include "gala/data/stream.h"

#include <algorithm>
#include <array>
#include <limits>

#include "gala/data/stream_order.h"

namespace gala {
namespace {

/// The registry line of a stream: an options struct and the function that lays it out.
template <class Options, void (*lay_out)(const Options&, std::uint64_t, Stream&)>
constexpr RegistryEntry<Stream, const DataSource&, std::uint64_t> stream_entry(
    std::string_view name, std::string_view summary) {
  return {name, summary,
          [](const Spec& spec, const DataSource& source, std::uint64_t seed) {
            const Options options = parse_options<Options>(spec, Stream::kKind);
            auto stream = std::make_unique<Stream>();
            stream->spec = spec;
            stream->domains = source.domains;
            lay_out(options, seed, *stream);
            return stream;
          },
          &describe_options<Options>};
}

constexpr auto kStreams = std::to_array<RegistryEntry<Stream, const DataSource&, std::uint64_t>>({
    stream_entry<SingleOptions, lay_out_single>("single", "one domain"),
    stream_entry<ContinualOptions, lay_out_continual>("continual", "domains one after the other"),
    stream_entry<GradualOptions, lay_out_gradual>(
        "gradual", "corruptions one after the other, each swelling and ebbing in severity"),
    stream_entry<MixedOptions, lay_out_mixed>("mixed", "pictures of all domains, shuffled"),
    stream_entry<CorrelatedOptions, lay_out_correlated>(
        "correlated", "domains one after the other, neighbours in time alike in class"),
});

}  // namespace

std::int64_t Stream::label(std::int64_t position) const {
  const StreamItem& item = items[static_cast<std::size_t>(position)];
  return domains[static_cast<std::size_t>(item.domain)].data->label(item.index);
}

std::string Stream::item_name(std::int64_t position) const {
  const StreamItem& item = items[static_cast<std::size_t>(position)];
  return domains[static_cast<std::size_t>(item.domain)].data->item_name(item.index);
}

std::vector<BatchSpan> Stream::batches(std::int64_t batch_size) const {
  if (batch_size < 1)
    fail<ConfigError>("the batch size cannot be {} (expected 1 or more)", batch_size);
  std::vector<BatchSpan> spans;
  const auto cut = [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += batch_size) {
      const std::int64_t size = std::min(batch_size, end - begin);
      if (size == batch_size || !drop_last) spans.push_back({begin, size, 0});
    }
  };
  if (cut_at_borders) {
    for (const StreamSegment& segment : segments) cut(segment.begin, segment.begin + segment.size);
  } else {
    cut(0, size());
  }
  std::size_t segment = 0;
  for (BatchSpan& span : spans) {
    while (segments[segment].begin + segments[segment].size <= span.begin) ++segment;
    span.segment = static_cast<std::int32_t>(segment);
  }
  if (spans.empty()) {
    fail<ConfigError>(
        "stream {}: no batch of {} pictures can be filled, and last=drop leaves out the "
        "rest",
        spec.to_string(), batch_size);
  }
  return spans;
}

std::span<const RegistryEntry<Stream, const DataSource&, std::uint64_t>> stream_registry() {
  return kStreams;
}

Stream make_stream(const Spec& spec, const DataSource& source, std::uint64_t seed) {
  for (const Domain& domain : source.domains) {
    if (domain.data->size() > std::numeric_limits<std::int32_t>::max()) {
      fail<ConfigError>("domain {}: {} pictures are too many", domain.name, domain.data->size());
    }
  }
  Stream stream = std::move(*make_from_registry<Stream, const DataSource&, std::uint64_t>(
      stream_registry(), spec, source, seed));
  stream.spec = written_out(
      spec, describe_registry<Stream, const DataSource&, std::uint64_t>(stream_registry()),
      Stream::kKind);
  return stream;
}

Spec default_stream(const DataSource& source) {
  return {source.domains.size() == 1 ? "single" : "continual", {}};
}

}  // namespace gala
