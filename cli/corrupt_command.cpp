#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/command_files.h"
#include "cli/help.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/data/corrupted.h"
#include "gala/data/corruption/corruption_writer.h"
#include "gala/data/imagenet_crop.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

struct CorruptFlags {
  std::string data, corruption, severity, out, frost;
  std::string set = "auto";
  std::optional<std::int64_t> quality;
  std::uint64_t seed = 0;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u));
  bool quiet = false;
};

DataSource open_clean(const std::string& text) {
  DataSource source = open_data(Spec::parse(text));
  if (source.domains.size() != 1) {
    std::vector<std::string> names;
    for (const Domain& domain : source.domains) names.push_back(domain.name);
    fail<ConfigError>("--data {}: has {} domains ({}); choose one", text, names.size(),
                      fmt::join(names, ", "));
  }
  return source;
}

/// The set that is asked for, or else whose constants the first picture's size calls for.
CorruptionSet choose_set(const CorruptFlags& flags, const Dataset& clean) {
  CorruptionSet set{};
  if (parse_value(flags.set, set)) return set;
  if (flags.set != "auto") {
    fail<ConfigError>("--set cannot be \"{}\" (expected auto|{})", flags.set,
                      accepted_values<CorruptionSet>());
  }
  Image first;
  clean.read(0, first);
  const std::int64_t shorter = std::min(first.height, first.width);
  if (first.height == 32 && first.width == 32) return CorruptionSet::kCifar;
  if (shorter >= kImageNetSide && !first.pixels.empty()) return CorruptionSet::kImageNet;
  fail<ConfigError>(
      "{}: {}x{} {} have no constants: CIFAR's are for pictures of 32x32, ImageNet's for 224x224, "
      "to "
      "which larger ones are cropped (--set imagenet does that to any)",
      clean.item_name(0), first.height, first.width, first.pixels.empty() ? "floats" : "pixels");
}

/// What was chosen, in words.
std::string describe_set(CorruptionSet set, int quality) {
  const std::string jpeg =
      quality > 0 ? fmt::format("; JPEG of quality {} at the end", quality) : "";
  if (set == CorruptionSet::kCifar) return "constants of CIFAR-10-C, 32x32" + jpeg;
  return "constants of ImageNet-C; short side 256, the middle 224x224 (pictures of that size as "
         "they are)" +
         jpeg;
}

/// One file for each corruption, in their order; then, in a folder, that of the labels.
std::vector<fs::path> choose_paths(const CorruptFlags& flags,
                                   const std::vector<Corruption>& corruptions) {
  const fs::path out = flags.out;
  if (out.extension() == ".npy") {
    if (corruptions.size() != 1) {
      fail<ConfigError>("--out {}: a file holds one corruption, {} are asked for; give a folder",
                        flags.out, corruptions.size());
    }
    return {out};
  }
  std::vector<fs::path> paths;
  for (Corruption corruption : corruptions) {
    paths.push_back(out / fmt::format("{}.npy", corruption_name(corruption)));
  }
  paths.push_back(out / "labels.npy");
  return paths;
}

/// Nothing is made before it is known that nothing is lost.
void check_files(const CorruptFlags& flags, const Spec& data, const std::vector<fs::path>& paths) {
  CommandFiles files;
  files.reads_data("--data", data);
  files.reads("--frost", flags.frost);
  for (const fs::path& path : paths) files.writes("--out", path);
  files.check_clashes();
  const fs::path out = flags.out;
  if (out.extension() == ".npy") return files.check();
  std::error_code problem;
  fs::create_directories(out, problem);
  if (problem || !fs::is_directory(out)) {
    fail<ConfigError>("--out {}: the folder cannot be made{}", flags.out,
                      problem ? ": " + problem.message() : "");
  }
  files.check();
}

/// One severity, or all of them: the rows of a file are what the published files have.
std::vector<int> severities_of(const std::string& text) {
  int one = 0;
  if (text == "all") return parse_severities(text);
  if (!parse_value(text, one) || one < 1 || one > 5) {
    fail<ConfigError>("--severity {}: expected one from 1 to 5, or all",
                      text.empty() ? "\"\"" : text);
  }
  return {one};
}

void corrupt(const CorruptFlags& flags) {
  const auto corruptions = parse_corruptions(flags.corruption);
  for (std::size_t i = 0; i < corruptions.size(); ++i) {
    if (std::find(corruptions.begin(), corruptions.begin() + static_cast<std::ptrdiff_t>(i),
                  corruptions[i]) != corruptions.begin() + static_cast<std::ptrdiff_t>(i)) {
      fail<ConfigError>("--corruption {}: {} is given twice", flags.corruption,
                        corruption_name(corruptions[i]));
    }
  }
  CorruptionWriterOptions options;
  options.severities = severities_of(flags.severity);
  options.seed = flags.seed;
  options.threads = flags.threads;
  const DataSource source = open_clean(flags.data);
  std::shared_ptr<const Dataset> clean = source.domains.front().data;
  options.set = choose_set(flags, *clean);
  const bool imagenet = options.set == CorruptionSet::kImageNet;
  options.quality = static_cast<int>(flags.quality.value_or(imagenet ? 85 : 0));
  if (imagenet) clean = std::make_shared<ImageNetCrop>(clean);
  if (!flags.frost.empty()) options.textures = read_frost_textures(flags.frost, options.set);
  const auto paths = choose_paths(flags, corruptions);
  check_files(flags, source.spec, paths);
  std::cout << describe_set(options.set, options.quality) << '\n';

  const auto repeats = static_cast<int>(options.severities.size());
  const std::int64_t rows = clean->size() * repeats;
  Progress progress("corrupt", rows * static_cast<std::int64_t>(corruptions.size()), 0,
                    flags.quiet);
  for (std::size_t i = 0; i < corruptions.size(); ++i) {
    const std::string name(corruption_name(corruptions[i]));
    const std::int64_t before = rows * static_cast<std::int64_t>(i);
    options.progress = [&](std::int64_t done) { progress.advance(before + done, name); };
    write_corrupted(paths[i], *clean, corruptions[i], options);
    progress.clear();
    std::cout << fmt::format("{}  {} images\n", paths[i].string(), with_commas(rows));
  }
  if (fs::path(flags.out).extension() == ".npy") return;
  const fs::path& labels = paths.back();
  if (clean->labelled()) {
    write_labels(labels, *clean, repeats);
    std::cout << fmt::format("{}  {} labels\n", labels.string(), with_commas(rows));
  } else {
    warn("the data has no labels: " + labels.string() + " is not written", flags.quiet);
  }
}

}  // namespace

void add_corrupt_command(CLI::App& program) {
  auto flags = std::make_shared<CorruptFlags>();
  CLI::App* command =
      program.add_subcommand("corrupt", "Write a set with the published corruptions");
  command
      ->add_option("--data", flags->data,
                   "the clean set, such as cifar10:path=DIR or folder:path=DIR")
      ->required()
      ->type_name("SPEC");
  command
      ->add_option("--corruption", flags->corruption,
                   "names with commas, all (the 15 of the benchmark) or extra (the other 4)")
      ->required()
      ->type_name("NAMES");
  command
      ->add_option("--severity", flags->severity,
                   "1 to 5, or all: five severities below each other, as published")
      ->required()
      ->type_name("N");
  command
      ->add_option("--out", flags->out,
                   "FILE.npy for one corruption, or a folder for NAME.npy and labels.npy")
      ->required()
      ->type_name("PATH");
  command
      ->add_option(
          "--set", flags->set,
          "whose constants: cifar (32x32), imagenet (cropped to 224x224); auto: by the first "
          "picture's size")
      ->capture_default_str()
      ->type_name("NAME");
  command
      ->add_option(
          "--quality", flags->quality,
          "JPEG quality at the end, from 1 to 100, 0: none [85 with imagenet, as published, "
          "else 0]")
      ->check(whole_number(0, 100))
      ->type_name("N");
  command->add_option("--seed", flags->seed, "of all that is drawn")
      ->check(whole_number(0))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--frost", flags->frost, "folder with frost photographs [made textures]")
      ->type_name("DIR");
  command->add_option("--threads", flags->threads, "does not change the result")
      ->check(whole_number(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--quiet", flags->quiet, "no progress");
  command->footer(
      "Examples:\n"
      "  gala corrupt --data cifar10:path=DIR --corruption fog --severity 5 --out f.npy\n"
      "  gala corrupt --data cifar10:path=DIR --corruption all --severity all --out D\n"
      "  gala corrupt --data folder:path=val --corruption all --severity 5 --out D");
  command->callback([flags] {
    catch_interrupts();
    try {
      corrupt(*flags);
    } catch (const Interrupted& stopped) {
      std::cerr << stopped.what() << " (the files named above are whole)\n";
      throw CLI::RuntimeError(kInterruptedExit);
    }
  });
}

}  // namespace gala
