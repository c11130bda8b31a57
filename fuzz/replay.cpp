// gala_replay TARGET ROUNDS FOLDER...: gives a target the files of the folders, and then so many damaged copies of
// each. No fuzzer: the same copies at every call, with any compiler, in seconds.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <vector>

#include "fuzz/scratch.h"
#include "gala/base/random.h"

namespace gala::fuzz {
namespace {

const std::map<std::string, Target*>& targets() {
  static const std::map<std::string, Target*> all = {{"spec", spec},
                                                     {"plan", plan},
                                                     {"train_plan", train_plan},
                                                     {"record", record},
                                                     {"trace", trace},
                                                     {"idx", idx},
                                                     {"cifar", cifar},
                                                     {"npy", npy},
                                                     {"png", png},
                                                     {"jpeg", jpeg},
                                                     {"zip", zip},
                                                     {"safetensors", safetensors},
                                                     {"pickle", pickle},
                                                     {"checkpoint", checkpoint},
                                                     {"state", state},
                                                     {"exported", exported},
                                                     {"exported_graph", exported_graph}};
  return all;
}

std::size_t below(Random& random, std::size_t limit) {
  return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(limit)));
}

/// Changes a few places: a bit, a number of one to eight bytes, a digit, a piece that is left out or comes twice, a
/// piece of another file, an early end.
std::string damaged(std::string file, const std::string& other, Random& random) {
  constexpr std::uint64_t kNumbers[] = {0,          1,          0x7f,       0x80,   0xff,
                                        0x7fff,     0xffff,     0x7fffffff, ~0U,    0x80000000,
                                        1ULL << 62, 1ULL << 63, ~0ULL,      100000, 0x10000};
  const std::size_t changes = 1 + below(random, 4);
  for (std::size_t i = 0; i < changes && !file.empty(); ++i) {
    const std::size_t at = below(random, file.size());
    const std::size_t length = 1 + below(random, std::min<std::size_t>(file.size() - at, 64));
    switch (below(random, 7)) {
      case 0:
        file[at] = static_cast<char>(file[at] ^ (1 << below(random, 8)));
        break;
      case 1: {
        const std::uint64_t number = kNumbers[below(random, std::size(kNumbers))];
        const auto* bytes = reinterpret_cast<const char*>(&number);
        std::copy_n(bytes, std::min<std::size_t>(length, 8), file.begin() + std::ptrdiff_t(at));
        break;
      }
      case 2: {
        const std::size_t digit = file.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        file.replace(digit, 1, std::to_string(kNumbers[below(random, std::size(kNumbers))]));
        break;
      }
      case 3:
        file.erase(at, length);
        break;
      case 4:
        file.insert(at, file.substr(at, length));
        break;
      case 5: {
        const std::size_t from = below(random, other.size() + 1);
        file.insert(at, other.substr(from, length));
        break;
      }
      default:
        file.resize(at);
    }
  }
  return file;
}

std::vector<std::filesystem::path> files_in(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void give(Target* target, const std::string& bytes) {
  // Memory of exactly this size, so that a look beyond its end shows.
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  target(exact);
}

int run(const std::string& name, std::uint64_t rounds, const std::vector<std::string>& folders) {
  const auto found = targets().find(name);
  if (found == targets().end()) {
    std::cerr << "no target " << name << '\n';
    return 2;
  }
  const auto paths = files_in(folders);
  if (paths.empty()) {
    std::cerr << "no files\n";
    return 2;
  }
  std::vector<std::string> files;
  for (const auto& path : paths) files.push_back(read(path));
  for (std::size_t f = 0; f < files.size(); ++f) {
    give(found->second, files[f]);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      Random random(1, "replay " + name, {f, round});
      const std::string bytes = damaged(files[f], files[below(random, files.size())], random);
      try {
        give(found->second, bytes);
      } catch (const std::exception& error) {
        std::cerr << paths[f] << ", round " << round << ": " << error.what() << '\n';
        return 1;
      }
    }
  }
  std::cout << name << ": " << files.size() << " files, " << rounds << " damaged copies of each\n";
  return 0;
}

}  // namespace
}  // namespace gala::fuzz

int main(int count, char** words) {
  std::uint64_t rounds = 0;
  if (count < 4 ||
      std::from_chars(words[2], words[2] + std::string_view(words[2]).size(), rounds).ec !=
          std::errc()) {
    std::cerr << "gala_replay TARGET ROUNDS FOLDER...\n";
    return 2;
  }
  return gala::fuzz::run(words[1], rounds, {words + 3, words + count});
}
