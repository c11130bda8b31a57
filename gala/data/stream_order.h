#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gala/data/stream.h"

namespace gala {

enum class SampleOrder { kFile, kShuffled };
constexpr std::array<std::string_view, 2> enum_names(SampleOrder) {
  return {"file", "shuffled"};
}
enum class LastBatch { kKeep, kDrop };
constexpr std::array<std::string_view, 2> enum_names(LastBatch) {
  return {"keep", "drop"};
}
enum class Borders { kCut, kCross };
constexpr std::array<std::string_view, 2> enum_names(Borders) {
  return {"cut", "cross"};
}
enum class GradualForm { kCotta, kSymmetric };
constexpr std::array<std::string_view, 2> enum_names(GradualForm) {
  return {"cotta", "symmetric"};
}
enum class Correlation { kSorted, kDirichlet };
constexpr std::array<std::string_view, 2> enum_names(Correlation) {
  return {"sorted", "dirichlet"};
}

inline constexpr const char* kSamplesHelp = "order of the pictures in a domain";
inline constexpr const char* kLastHelp = "keep or drop a batch that is not full";
inline constexpr const char* kBordersHelp =
    "cut batches at the border of domains or let them cross";
inline constexpr const char* kResetHelp = "go back to the source model at each border";
inline constexpr const char* kOrderHelp =
    "names of domains, with commas; none: as the data set has them";
inline constexpr const char* kVisitsHelp =
    "how often the whole order comes; what is drawn is drawn anew each time";

struct SingleOptions {
  SampleOrder order = SampleOrder::kFile;
  LastBatch last = LastBatch::kKeep;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("order", &SingleOptions::order, kSamplesHelp);
    option("last", &SingleOptions::last, kLastHelp);
  }
};

struct ContinualOptions {
  std::string order;
  SampleOrder samples = SampleOrder::kFile;
  Borders borders = Borders::kCut;
  LastBatch last = LastBatch::kKeep;
  bool reset = false;
  std::int64_t visits = 1;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("order", &ContinualOptions::order, kOrderHelp);
    option("samples", &ContinualOptions::samples, kSamplesHelp);
    option("borders", &ContinualOptions::borders, kBordersHelp);
    option("last", &ContinualOptions::last, kLastHelp);
    option("reset", &ContinualOptions::reset, kResetHelp);
    option("visits", &ContinualOptions::visits, kVisitsHelp);
  }
};

struct GradualOptions {
  GradualForm form = GradualForm::kCotta;
  std::string order;
  SampleOrder samples = SampleOrder::kFile;
  Borders borders = Borders::kCut;
  LastBatch last = LastBatch::kKeep;
  bool reset = false;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("form", &GradualOptions::form,
           "cotta: 5,4,3,2,1, then 1,2,3,4,5,4,3,2,1 for each further corruption; symmetric: "
           "1,2,3,4,5,4,3,2,1 for all");
    option("order", &GradualOptions::order,
           "names of corruptions, with commas; none: as they come");
    option("samples", &GradualOptions::samples, kSamplesHelp);
    option("borders", &GradualOptions::borders, kBordersHelp);
    option("last", &GradualOptions::last, kLastHelp);
    option("reset", &GradualOptions::reset, kResetHelp);
  }
};

struct MixedOptions {
  LastBatch last = LastBatch::kKeep;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("last", &MixedOptions::last, kLastHelp);
  }
};

struct CorrelatedOptions {
  Correlation by = Correlation::kSorted;
  double delta = 0.1;
  std::int64_t slots = 100;
  std::string order;
  Borders borders = Borders::kCut;
  LastBatch last = LastBatch::kKeep;
  bool reset = false;
  std::int64_t visits = 1;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("by", &CorrelatedOptions::by,
           "sorted: class after class; dirichlet: each class spread over time slots by a draw");
    option("delta", &CorrelatedOptions::delta, "of dirichlet: smaller is more correlated");
    option("slots", &CorrelatedOptions::slots, "of dirichlet: time slots in a domain");
    option("order", &CorrelatedOptions::order, kOrderHelp);
    option("borders", &CorrelatedOptions::borders, kBordersHelp);
    option("last", &CorrelatedOptions::last, kLastHelp);
    option("reset", &CorrelatedOptions::reset, kResetHelp);
    option("visits", &CorrelatedOptions::visits, kVisitsHelp);
  }
};

// Each fills items, segments and flags of a stream whose domains are set. Every order depends on
// the seed and the place of the segment alone.
void lay_out_single(const SingleOptions& options, std::uint64_t seed, Stream& stream);
void lay_out_continual(const ContinualOptions& options, std::uint64_t seed, Stream& stream);
void lay_out_gradual(const GradualOptions& options, std::uint64_t seed, Stream& stream);
void lay_out_mixed(const MixedOptions& options, std::uint64_t seed, Stream& stream);
void lay_out_correlated(const CorrelatedOptions& options, std::uint64_t seed, Stream& stream);

}  // namespace gala
