#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <thread>

#include "gala/base/error.h"
#include "gala/data/corruption/corruption.h"
#include "gala/data/corruption/corruption_list.h"
#include "gala/data/corruption/share_out.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gala {
namespace {

using Pictures = nb::ndarray<const std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Results = nb::ndarray<std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Photograph =
    nb::ndarray<const std::uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

std::shared_ptr<const FrostTextures> textures_of(const std::vector<Photograph>& photographs,
                                                 CorruptionSet set) {
  if (photographs.empty()) return nullptr;
  std::vector<FrostTexture> textures;
  for (const Photograph& photograph : photographs) {
    textures.push_back({static_cast<std::int64_t>(photograph.shape(0)),
                        static_cast<std::int64_t>(photograph.shape(1)),
                        {photograph.data(), photograph.data() + photograph.size()}});
  }
  return FrostTextures::from_photographs(textures, static_cast<int>(corruption_side(set)));
}

/// Bytes made before Python may have a word: Ctrl-C is heard between them.
constexpr std::int64_t kChunkBytes = 1024 * 3072;

void apply(const Corruptor& corruptor, const Pictures& input, const Results& output,
           const Indices& indices, int threads) {
  const CorruptionSet set = corruption_set_for(static_cast<std::int64_t>(input.shape(1)),
                                               static_cast<std::int64_t>(input.shape(2)));
  const auto count = static_cast<std::int64_t>(input.shape(0));
  if (set != corruptor.set() || input.shape(3) != 3 || output.size() != input.size() ||
      static_cast<std::int64_t>(indices.size()) != count) {
    fail<ConfigError>("corruption {}: pictures, results and numbers do not fit together",
                      corruption_name(corruptor.corruption()));
  }
  if (threads < 0) fail<ConfigError>("threads cannot be {} (expected 0 or more)", threads);
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t each = corruption_bytes(set);
  const auto picture = [each](auto* first, std::int64_t i) {
    return std::span(first + i * each, static_cast<std::size_t>(each));
  };
  // Some pictures are done before a thread has begun.
  const bool small = set == CorruptionSet::kCifar;
  const std::int64_t chunk = small ? kChunkBytes / each : 8 * kChunkBytes / each;
  const std::int64_t worth_a_thread = small ? 8 : 1;
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, count);
    const auto most = static_cast<int>(std::max<std::int64_t>(1, (end - begin) / worth_a_thread));
    {
      const nb::gil_scoped_release other_threads_may_run;
      share_out(begin, end, std::min(threads == 0 ? all : threads, most), [&](int, std::int64_t i) {
        corruptor.apply(indices.data()[i], picture(input.data(), i), picture(output.data(), i));
      });
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace
}  // namespace gala

NB_MODULE(_corrupt, m) {
  using namespace gala;
  m.doc() = "Corruptions of pictures; errors are those of _core, which is loaded before.";
  nb::class_<Corruptor>(m, "Corruptor", "One corruption at one severity.")
      .def(
          "__init__",
          [](Corruptor* self, const std::string& name, int severity, std::uint64_t seed,
             const std::vector<Photograph>& photographs, std::int64_t side) {
            const CorruptionSet set = corruption_set_for(side, side);
            new (self) Corruptor(parse_corruption(name), severity, seed,
                                 textures_of(photographs, set), set);
          },
          "name"_a, "severity"_a, "seed"_a, "photographs"_a, "side"_a)
      .def("apply", &gala::apply, "input"_a, "output"_a, "indices"_a, "threads"_a);
  m.def("describe_corruptions", [] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const MethodInfo& info : describe_corruptions()) all.emplace_back(info.name, info.summary);
    return all;
  });
  m.attr("BENCHMARK_CORRUPTIONS") = kBenchmarkCorruptions;
}
