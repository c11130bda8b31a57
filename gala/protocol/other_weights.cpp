#include "gala/protocol/other_weights.h"

#include <fmt/format.h>

#include <map>

#include "gala/model/weights.h"

namespace gala {
namespace {

/// The hash of a file's weights, each file read once.
class Hashes {
 public:
  const std::string& of(const ReadyRun& run) {
    const auto [found, fresh] = hashes_.try_emplace(run.source.weights.string());
    if (fresh) {
      found->second =
          weight_hash(*open_source(run.source, static_cast<std::uint64_t>(run.spec.seed)));
    }
    return found->second;
  }

 private:
  std::map<std::string, std::string> hashes_;
};

}  // namespace

std::vector<std::string> other_weights(std::span<const ReadyRun> runs,
                                       const std::vector<Record>& records) {
  std::map<std::string, const Record*> recorded;
  for (const Record& record : records) recorded[record.key] = &record;
  Hashes hashes;
  std::map<std::string, std::int64_t> others;  // by file
  for (const ReadyRun& run : runs) {
    const SourceModel& source = run.source;
    const auto found = recorded.find(run.key);
    // Without a plan the hash is in the key, and with one where that was asked for.
    const bool in_key = !source.identity.contains("plan") || source.identity.contains("weights");
    if (found == recorded.end() || in_key || source.weights.empty() || !source.missing.empty()) {
      continue;
    }
    const std::string then = found->second->provenance.value("weight_hash", "");
    if (!then.empty() && then != hashes.of(run)) ++others[source.weights.filename().string()];
  }
  std::vector<std::string> sentences;
  for (const auto& [file, count] : others) {
    sentences.push_back(fmt::format(
        "{} of the recorded runs were made with other weights than {} has now: both were trained "
        "by "
        "the same plan and seed, which is all that the key of a run knows. They stay as they are; "
        "to have all runs with the weights at hand, give them a store of their own (--store), or "
        "say known_by = \"weights\" in the plan",
        count, file));
  }
  return sentences;
}

}  // namespace gala
