#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/command_files.h"
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
  std::optional<int> quality;
  std::uint64_t seed = 0;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
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

void corrupt(const CorruptFlags& flags) {
  const auto corruptions = parse_corruptions(flags.corruption);
  CorruptionWriterOptions options;
  options.severities = parse_severities(flags.severity);
  options.seed = flags.seed;
  options.threads = flags.threads;
  if (options.severities.size() != 1 && flags.severity != "all") {
    fail<ConfigError>("--severity {}: expected one from 1 to 5, or all", flags.severity);
  }
  if (flags.threads < 1) fail<ConfigError>("--threads {}: expected 1 or more", flags.threads);
  const DataSource source = open_clean(flags.data);
  std::shared_ptr<const Dataset> clean = source.domains.front().data;
  options.set = choose_set(flags, *clean);
  const bool imagenet = options.set == CorruptionSet::kImageNet;
  options.quality = flags.quality.value_or(imagenet ? 85 : 0);
  if (options.quality < 0 || options.quality > 100) {
    fail<ConfigError>("--quality {}: expected 1 to 100, or 0 for none", options.quality);
  }
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
      ->required();
  command
      ->add_option("--corruption", flags->corruption,
                   "names with commas, all (the 15 of the benchmark) or extra (the other 4)")
      ->required();
  command
      ->add_option("--severity", flags->severity,
                   "1 to 5, or all: five severities below each other, as published")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "FILE.npy for one corruption, or a folder for NAME.npy and labels.npy")
      ->required();
  command
      ->add_option(
          "--set", flags->set,
          "whose constants: cifar (32x32), imagenet (cropped to 224x224); auto: by the first "
          "picture's size")
      ->capture_default_str();
  command->add_option(
      "--quality", flags->quality,
      "JPEG quality at the end, 0: none (default: 85 with imagenet, as published, else "
      "0)");
  command->add_option("--seed", flags->seed, "of all that is drawn")->capture_default_str();
  command->add_option("--frost", flags->frost,
                      "folder with frost photographs (none: made textures)");
  command->add_option("--threads", flags->threads, "does not change the result")
      ->capture_default_str();
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
