// Which parameters may move, and the layers they are in.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>

#include "gala/base/spec.h"
#include "gala/layer/filter.h"
#include "gala/layer/layout.h"
#include "gala/model/exported/places.h"
#include "python/src/bind.h"

namespace nb = nanobind;

namespace gala::python {
namespace {

/// The block of every parameter, by its name and size; 0 for the head.
std::vector<int> blocks_of(const std::vector<std::string>& names,
                           const std::vector<std::int64_t>& counts,
                           const std::vector<bool>& in_head) {
  std::deque<Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Parameter& added = parameters.emplace_back();
    added.name = names[i];
    added.module = exported::module_of_parameter(names[i]);
    added.block = in_head[i] ? 0 : 1;
    added.value.count = counts[i];
  }
  exported::assign_blocks(parameters);
  std::vector<int> blocks;
  for (const Parameter& parameter : parameters) blocks.push_back(parameter.block);
  return blocks;
}

/// Where each tensor begins in a buffer, and the size of the whole.
nb::tuple lay_out(const std::vector<std::int64_t>& counts) {
  ArenaLayout layout;
  for (const std::int64_t count : counts) layout.add("", {count}, {1});
  std::vector<std::int64_t> begins;
  for (const ArenaLayout::Entry& entry : layout.entries) begins.push_back(entry.range.begin);
  return nb::make_tuple(begins, layout.size);
}

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("matches_pattern", [](const std::string& name, const std::string& pattern) {
    return matches_pattern(name, pattern);
  });
  m.def("nearest", [](const std::string& word, const std::vector<std::string>& candidates) {
    return nearest(word, candidates);
  });
  m.def("suggestion", [](const std::string& word, const std::vector<std::string>& candidates) {
    return suggestion(word, candidates);
  });
  m.def("module_of_parameter", exported::module_of_parameter);
  m.def("blocks_of", blocks_of);
  m.def("lay_out", lay_out);
}

}  // namespace gala::python
