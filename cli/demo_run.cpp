#include "cli/demo_run.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/line_file.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/adapter.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/interrupt.h"
#include "gala/base/stopwatch.h"
#include "gala/data/loader.h"
#include "gala/model/weights.h"

namespace gala {
namespace {

constexpr char kCorruptions[] = "gaussian_noise,motion_blur,snow,fog,jpeg_compression";
constexpr std::int64_t kBatchSize = 100;
constexpr char kWeights[] = "wrn16_2_cifar10.safetensors";
constexpr char kImages[] = "cifar10_test_2000.png";

/// One of the copies that answer side by side.
struct Contender {
  std::string name, label, norm, select;
  std::unique_ptr<Model> model = nullptr;
  std::unique_ptr<Adapter> adapter = nullptr;
  std::unique_ptr<Scores> scores = nullptr;
  double milliseconds = 0;
  std::int64_t first_collapse = 0;  ///< batch at which the guard first saw it; 0: never
};

std::filesystem::path find_assets(const std::string& given) {
  std::vector<std::filesystem::path> places = {given};
  if (given.empty()) {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    places = {program.parent_path() / "../share/gala/assets", GALA_SOURCE_ASSETS};
  }
  for (const auto& place : places) {
    if (std::filesystem::exists(place / kWeights) && std::filesystem::exists(place / kImages)) {
      return place;
    }
  }
  fail<ConfigError>("the demo's files {} and {} are not in {} (name their folder with --assets)",
                    kWeights, kImages, places.front().string());
}

Stream open_stream(const DemoFlags& flags, const std::filesystem::path& assets) {
  Spec spec = Spec::parse("cifar10c:generate=yes,severity=5");
  spec.set("path", (assets / kImages).string());
  spec.set("corruption", kCorruptions);
  Stream stream = make_stream(Spec::parse("continual"), open_data(spec), /*seed=*/0);
  if (flags.images < 1 || flags.images > stream.segments[0].size) {
    fail<ConfigError>("--images must be from 1 to {}, not {}", stream.segments[0].size,
                      flags.images);
  }
  // The first images of each corruption.
  std::vector<StreamItem> items;
  for (StreamSegment& segment : stream.segments) {
    const auto begin = stream.items.begin() + segment.begin;
    items.insert(items.end(), begin, begin + flags.images);
    segment = {segment.name, static_cast<std::int64_t>(items.size()) - flags.images, flags.images};
  }
  stream.items = std::move(items);
  return stream;
}

std::vector<Contender> make_contenders(const DemoFlags& flags, const std::filesystem::path& assets,
                                       std::size_t segments) {
  std::vector<Contender> contenders;
  contenders.push_back({"source", "as it came", "source", "none"});
  contenders.push_back({"batch", "batch statistics", "batch", "none"});
  contenders.push_back({"all", "every layer adapts", "batch", "all"});
  contenders.push_back({"gala", "gala chooses a layer", "batch", "gala"});
  for (Contender& contender : contenders) {
    const std::string spec = read_weights(assets / kWeights).metadata.at("model");
    contender.model = make_model(Spec::parse(spec));
    load_weights(*contender.model, assets / kWeights);
    contender.model->set_norm_mode(NormMode::parse(contender.norm));
    contender.adapter = std::make_unique<Adapter>(
        *contender.model, AdapterOptions{.loss = flags.loss, .select = contender.select});
    contender.scores = std::make_unique<Scores>(segments);
  }
  return contenders;
}

void answer(Contender& contender, const Batch& batch, LineFile& trace) {
  Stopwatch watch;
  const Answer answer = contender.adapter->answer(batch.images);
  contender.milliseconds += watch.lap();
  const std::int64_t correct = contender.scores->add(static_cast<std::size_t>(batch.segment),
                                                     answer.predictions, batch.labels);
  if (answer.health && answer.health->collapsed && contender.first_collapse == 0) {
    contender.first_collapse = answer.health->batch;
  }
  for (const StepRecord& step : answer.steps) {
    nlohmann::ordered_json line = to_json(step, contender.adapter->layers());
    line["correct"] = correct;
    trace.write(line.dump());
  }
}

std::vector<std::vector<std::string>> table(const std::vector<Contender>& contenders,
                                            const Stream& stream) {
  std::vector<std::vector<std::string>> rows = {{"error in %"}};
  for (const StreamSegment& segment : stream.segments) rows[0].push_back(segment.name);
  rows[0].push_back("all");
  rows[0].push_back("ms/batch");
  for (const Contender& contender : contenders) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(contender.label);
    for (std::size_t s = 0; s < stream.segments.size(); ++s) {
      row.push_back(fmt::format("{:.1f}", 100 * (1 - contender.scores->accuracy(s))));
    }
    row.push_back(fmt::format("{:.1f}", 100 * (1 - contender.scores->accuracy())));
    row.push_back(fmt::format(
        "{:.0f}",
        contender.milliseconds / static_cast<double>(contender.adapter->totals().batches)));
  }
  return rows;
}

/// What the numbers say, whatever they are.
std::string verdict(const std::vector<Contender>& contenders, const Stream& stream) {
  const auto error = [](const Contender& contender) {
    return 100 * (1 - contender.scores->accuracy());
  };
  const Contender &batch = contenders[1], &all = contenders[2], &gala = contenders[3];
  const std::size_t last = stream.segments.size() - 1;
  const double all_last = 100 * (1 - all.scores->accuracy(last));
  std::string text =
      all.first_collapse > 0
          ? fmt::format(
                "Adapting every layer collapsed: the guard saw it at batch {}, and the last "
                "domain ends at {:.1f} % error.",
                all.first_collapse, all_last)
          : fmt::format(
                "Adapting every layer did not collapse within the demo: {:.1f} % error overall, "
                "{:.1f} % on the last domain.",
                error(all), all_last);
  text += fmt::format(" GALA ends at {:.1f} % overall, batch statistics alone at {:.1f} %",
                      error(gala), error(batch));
  return text + (gala.first_collapse > 0 ? fmt::format("; the guard saw GALA collapse at batch {}.",
                                                       gala.first_collapse)
                                         : std::string("."));
}

void write_results(const DemoFlags& flags, const std::vector<Contender>& contenders,
                   const Stream& stream, const std::string& text) {
  const std::filesystem::path folder = flags.out;
  nlohmann::ordered_json json;
  json["stream"] = stream.spec.to_string();
  json["corruptions"] = kCorruptions;
  json["loss"] = flags.loss;
  json["batch_size"] = kBatchSize;
  for (const Contender& contender : contenders) {
    nlohmann::ordered_json run;
    run["name"] = contender.name;
    run["select"] = contender.select;
    run["norm"] = contender.norm;
    for (std::size_t s = 0; s < stream.segments.size(); ++s) {
      run["error"][stream.segments[s].name] = 1 - contender.scores->accuracy(s);
    }
    run["error"]["all"] = 1 - contender.scores->accuracy();
    run["first_collapse"] = contender.first_collapse;
    run["milliseconds_a_batch"] =
        contender.milliseconds / static_cast<double>(contender.adapter->totals().batches);
    json["runs"].push_back(run);
  }
  write_atomically(folder / "demo.json", [&](std::ostream& out) { out << json.dump(2) << '\n'; });
  write_atomically(folder / "demo.txt", [&](std::ostream& out) { out << text; });
}

std::string progress_note(const std::vector<Contender>& contenders, const std::string& domain) {
  std::string note = fmt::format("{:<16}", domain);
  for (const Contender& contender : contenders) {
    note += fmt::format("  {} {:.0f}%", contender.name, 100 * (1 - contender.scores->accuracy()));
  }
  return note;
}

}  // namespace

int run_demo(const DemoFlags& flags) {
  catch_interrupts();
  const std::filesystem::path assets = find_assets(flags.assets);
  const Stream stream = open_stream(flags, assets);
  std::vector<Contender> contenders = make_contenders(flags, assets, stream.segments.size());
  std::error_code failed;
  std::filesystem::create_directories(flags.out, failed);
  if (failed) fail<ConfigError>("--out {}: cannot be made: {}", flags.out, failed.message());
  std::vector<LineFile> traces(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].select == "none") continue;
    const auto path = std::filesystem::path(flags.out) / (contenders[i].name + ".trace.jsonl");
    require_writable(path, "--out");
    traces[i].open(path);
  }
  if (!flags.quiet) {
    std::cerr << fmt::format(
        "A network trained on clean photographs meets {} shifts of {} images, {} at a time.\n"
        "Four copies answer side by side; error so far in the bar. No labels are used to adapt.\n",
        stream.segments.size(), flags.images, kBatchSize);
  }
  Loader loader(stream, contenders[0].model->preprocessing(), {.batch_size = kBatchSize});
  {
    Progress progress("batch", loader.batch_count(), 0, flags.quiet);
    while (const std::optional<Batch> batch = loader.next()) {
      for (std::size_t i = 0; i < contenders.size(); ++i) answer(contenders[i], *batch, traces[i]);
      progress.advance(
          batch->number + 1,
          progress_note(contenders,
                        stream.segments[static_cast<std::size_t>(batch->segment)].name));
      if (interrupted()) {
        progress.clear();
        std::cerr << fmt::format("stopped after batch {} of {}\n", batch->number + 1,
                                 loader.batch_count());
        return kInterruptedExit;
      }
    }
  }
  for (LineFile& trace : traces) trace.flush();
  const std::string text = format_table(table(contenders, stream)) + '\n' +
                           wrap(verdict(contenders, stream), line_width(), 0) + '\n';
  write_results(flags, contenders, stream, text);
  std::cout << text
            << fmt::format("\nThe table, the numbers and every step lie in {}/\n", flags.out);
  return 0;
}

}  // namespace gala
