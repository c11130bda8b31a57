#pragma once
#include <array>
#include <string>

#include "gala/select/draws.h"
#include "gala/select/selector.h"

namespace gala {

enum class RandomDraws { kSeed, kRun };
constexpr std::array<std::string_view, 2> enum_names(RandomDraws) {
  return {"seed", "run"};
}

/// One layer a step, drawn evenly. By default the draws depend on the seed alone: runs that share a seed
/// and have as many layers draw the same ones, whatever their data and loss. With draws=run they depend
/// on the name of the run as well (AdapterSetup::run), so that rows of a table are independent.
class RandomSelector : public Selector {
 public:
  struct Options {
    RandomDraws draws = RandomDraws::kSeed;
    template <class Visitor>
    static void visit(Visitor&& option) {
      option("draws", &Options::draws, "one sequence for a seed, or one for a seed and run");
    }
  };
  RandomSelector(const Options& options, std::uint64_t seed);
  bool reads_values() const override { return false; }
  void name_run(const std::string& run) override;
  std::vector<double> select(const Proposal& proposal) override;
  void reset() override { draws_.begin(); }
  void remember(Archive& archive) override { draws_.remember(archive); }

 private:
  Options options_;
  Draws draws_;
};

}  // namespace gala
