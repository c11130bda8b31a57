#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/registry.h"
#include "gala/data/dataset.h"

namespace gala {

/// One picture of a stream: item `index` of domain `domain`.
struct StreamItem {
  std::int32_t domain = 0;
  std::int32_t index = 0;
  bool operator==(const StreamItem&) const = default;
};

/// Consecutive positions of a stream between two borders.
struct StreamSegment {
  std::string name;  ///< "fog", or "fog (visit 3)" in a stream that recurs
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// Consecutive positions that are answered together.
struct BatchSpan {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int32_t segment = 0;  ///< of the first position
  bool operator==(const BatchSpan&) const = default;
};

/// Which pictures come in which order. Borders and labels are for whoever scores the answers; what
/// adapts sees images alone.
struct Stream {
  static constexpr std::string_view kKind = "stream";

  Spec spec;  ///< as `written_out` writes it
  std::vector<Domain> domains;
  std::vector<StreamItem> items;
  std::vector<StreamSegment> segments;  ///< cover all positions, in order
  bool cut_at_borders = true;           ///< no batch holds pictures of two segments
  bool drop_last = false;               ///< batches that are not full are left out
  bool reset_at_borders = false;  ///< whoever runs it begins each segment with the source model

  std::int64_t size() const { return static_cast<std::int64_t>(items.size()); }
  std::int64_t label(std::int64_t position) const;
  std::string item_name(std::int64_t position) const;

  /// The batches in order. Throws ConfigError when batch_size < 1 or no batch is full and
  /// `drop_last`.
  std::vector<BatchSpan> batches(std::int64_t batch_size) const;
};

/// The streams that can be named in a spec.
std::span<const RegistryEntry<Stream, const DataSource&, std::uint64_t>> stream_registry();
/// Lays out a stream over the domains of `source`. Throws ConfigError when they do not fit.
Stream make_stream(const Spec& spec, const DataSource& source, std::uint64_t seed);
/// `single` for one domain, `continual` for several.
Spec default_stream(const DataSource& source);

}  // namespace gala
