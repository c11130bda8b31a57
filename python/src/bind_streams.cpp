#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "gala/base/error.h"
#include "gala/data/stream.h"
#include "python/src/bind.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gala::python {
namespace {

/// A domain as far as its order goes: how many pictures it has, and their labels.
class LabelledRows final : public Dataset {
 public:
  LabelledRows(std::int64_t size, std::vector<std::int64_t> labels, std::int64_t classes)
      : size_(size), labels_(std::move(labels)) {
    if (!labels_.empty()) {
      check_fit();
      const std::int64_t most = *std::max_element(labels_.begin(), labels_.end()) + 1;
      if (classes > 0 && most > classes) {
        fail<ConfigError>("label {} is out of range for {} classes", most - 1, classes);
      }
      set_classes(classes > 0 ? classes : most, {});
    }
  }
  std::int64_t size() const override { return size_; }
  std::int64_t label(std::int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<std::size_t>(index)];
  }
  void read(std::int64_t, Image&) const override { fail("an order has no pictures"); }
  std::string item_name(std::int64_t index) const override { return fmt::format("[{}]", index); }
  void hash_item(std::int64_t, Sha256&) const override { fail("an order has no pictures"); }

 private:
  void check_fit() const {
    if (static_cast<std::int64_t>(labels_.size()) != size_) {
      fail<ConfigError>("{} labels for {} pictures", labels_.size(), size_);
    }
    for (const std::int64_t label : labels_) {
      if (label < 0 || label > 0x7fffffff) {
        fail<ConfigError>("label {} is out of range (expected 0 to 2147483647)", label);
      }
    }
  }

  std::int64_t size_;
  std::vector<std::int64_t> labels_;
};

/// Name, size, labels (or nothing), classes, family, severity.
using DomainRow = std::tuple<std::string, std::int64_t, std::optional<std::vector<std::int64_t>>,
                             std::int64_t, std::string, int>;

Stream order_of(const std::string& spec, const std::vector<DomainRow>& rows, std::uint64_t seed) {
  DataSource source;
  for (const auto& [name, size, labels, classes, family, severity] : rows) {
    if (size < 1) fail<ConfigError>("domain {} holds no pictures", name);
    try {
      source.domains.push_back({.name = name,
                                .data = std::make_shared<LabelledRows>(
                                    size, labels.value_or(std::vector<std::int64_t>{}), classes),
                                .family = family,
                                .severity = severity});
    } catch (const ConfigError& problem) {
      fail<ConfigError>("domain {}: {}", name, problem.what());
    }
  }
  if (source.domains.empty()) fail<ConfigError>("a stream needs a domain");
  return make_stream(spec.empty() ? default_stream(source) : Spec::parse(spec), source, seed);
}

/// A new array of NumPy that owns its values.
template <class Value>
nb::ndarray<nb::numpy, Value> to_numpy(std::vector<Value> values,
                                       std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<Value>(std::move(values));
  const nb::capsule owner(
      kept, [](void* held) noexcept { delete static_cast<std::vector<Value>*>(held); });
  return nb::ndarray<nb::numpy, Value>(kept->data(), shape, owner);
}

nb::ndarray<nb::numpy, std::int32_t> column(const Stream& stream, std::int32_t StreamItem::*part) {
  std::vector<std::int32_t> values;
  values.reserve(stream.items.size());
  for (const StreamItem& item : stream.items) values.push_back(item.*part);
  return to_numpy(std::move(values), {stream.items.size()});
}

using Segment = std::tuple<std::string, std::int64_t, std::int64_t>;
using Option = std::tuple<std::string, std::string, std::string, std::string>;
using Description = std::tuple<std::string, std::string, std::vector<Option>>;

std::vector<Description> describe_streams() {
  std::vector<Description> all;
  for (const MethodInfo& info :
       describe_registry<Stream, const DataSource&, std::uint64_t>(stream_registry())) {
    std::vector<Option> options;
    for (const OptionInfo& option : info.options) {
      options.emplace_back(option.name, option.type, option.default_value, option.help);
    }
    all.emplace_back(info.name, info.summary, std::move(options));
  }
  return all;
}

}  // namespace

void bind_streams(nb::module_& m) {
  nb::class_<Stream>(m, "StreamOrder", "Which pictures come in which order.")
      .def(
          "__init__",
          [](Stream* self, const std::string& spec, const std::vector<DomainRow>& domains,
             std::uint64_t seed) {
            Stream order = [&] {
              const nb::gil_scoped_release other_threads_may_run;
              return order_of(spec, domains, seed);
            }();
            new (self) Stream(std::move(order));
          },
          "spec"_a, "domains"_a, "seed"_a)
      .def_prop_ro("spec", [](const Stream& self) { return self.spec.to_string(); })
      // A new array each time, which owns itself.
      .def_prop_ro(
          "domain", [](const Stream& self) { return column(self, &StreamItem::domain); },
          nb::rv_policy::reference)
      .def_prop_ro(
          "index", [](const Stream& self) { return column(self, &StreamItem::index); },
          nb::rv_policy::reference)
      .def_prop_ro("segments",
                   [](const Stream& self) {
                     std::vector<Segment> segments;
                     for (const StreamSegment& segment : self.segments) {
                       segments.emplace_back(segment.name, segment.begin, segment.size);
                     }
                     return segments;
                   })
      .def_ro("reset_at_borders", &Stream::reset_at_borders)
      .def(
          "batches",
          [](const Stream& self, std::int64_t size) {
            std::vector<std::int64_t> rows;
            for (const BatchSpan& span : self.batches(size)) {
              rows.insert(rows.end(), {span.begin, span.size, span.segment});
            }
            const std::size_t count = rows.size() / 3;
            return to_numpy(std::move(rows), {count, 3});
          },
          "size"_a);
  m.def("describe_streams", &describe_streams);
}

}  // namespace gala::python
