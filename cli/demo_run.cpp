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
#include "cli/command_files.h"
#include "cli/demo_page.h"
#include "cli/failures.h"
#include "cli/line_file.h"
#include "cli/scores.h"
#include "cli/text.h"
#include "gala/adapt/answer_loop.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/interrupt.h"
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
  DemoCopy copy = {};               ///< what it answered
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
                                       const Stream& stream) {
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
        *contender.model, MethodOptions{.loss = flags.loss, .select = contender.select});
    contender.scores = std::make_unique<Scores>(stream.segments.size());
    contender.copy = {.name = contender.name,
                      .label = contender.label,
                      .norm = contender.norm,
                      .select = contender.select};
    for (const StreamSegment& segment : stream.segments) {
      contender.copy.domains.push_back({segment.name, 0, 0});
    }
  }
  return contenders;
}

void take_in(Contender& contender, const Answered& answered, LineFile& trace) {
  const Answer& answer = answered.answer;
  const Tally& tally = answered.tally;
  const auto segment = static_cast<std::size_t>(answered.batch.segment);
  contender.milliseconds += answered.times.answer;
  contender.scores->add(segment, tally);
  if (answer.health && answer.health->collapsed && contender.first_collapse == 0) {
    contender.first_collapse = answer.health->batch;
  }
  Score& domain = contender.copy.domains[segment];
  domain.images += tally.images;
  domain.correct += tally.right;
  contender.copy.images.push_back(tally.images);
  contender.copy.correct.push_back(tally.right);
  for (const StepRecord& step : answer.steps) {
    nlohmann::ordered_json line = to_json(step, contender.adapter->layers());
    line["correct"] = tally.right;
    line["images"] = tally.images;
    trace.write(line.dump());
  }
  trace.flush();
}

/// What the copies answered, for table and page.
std::vector<DemoCopy> copies_of(const std::vector<Contender>& contenders) {
  std::vector<DemoCopy> copies;
  for (const Contender& contender : contenders) {
    copies.push_back(contender.copy);
    copies.back().batch_ms =
        contender.milliseconds / static_cast<double>(contender.adapter->totals().batches);
  }
  return copies;
}

std::vector<std::vector<std::string>> terminal_rows(const Table& table) {
  std::vector<std::vector<std::string>> rows = {table.heads};
  for (const Column& column : table.columns) rows[0].push_back(column.name);
  for (const Row& row : table.rows) {
    rows.push_back(row.heads);
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      rows.back().push_back(value_text(row.cells[c], table.columns[c]));
    }
  }
  return rows;
}

constexpr char kPage[] = "report.html";
constexpr char kNumbers[] = "demo.json";
constexpr char kTable[] = "demo.txt";

std::filesystem::path trace_path(const DemoFlags& flags, const Contender& contender) {
  return std::filesystem::path(flags.out) / (contender.name + ".trace.jsonl");
}

/// Makes the folder, and nothing before it is known that nothing is lost.
void check_files(const DemoFlags& flags, const std::filesystem::path& assets,
                 const std::vector<Contender>& contenders) {
  CommandFiles files;
  files.reads("--assets", assets / kWeights);
  files.reads_data("--assets", {"cifar10", {{"path", (assets / kImages).string()}}});
  for (const Contender& contender : contenders) {
    if (contender.select != "none") files.writes("--out", trace_path(flags, contender));
  }
  for (const char* name : {kPage, kNumbers, kTable}) {
    files.writes("--out", std::filesystem::path(flags.out) / name);
  }
  files.check_clashes();
  std::error_code failed;
  std::filesystem::create_directories(flags.out, failed);
  if (failed) fail<ConfigError>("--out {}: cannot be made: {}", flags.out, failed.message());
  files.check();
}

/// The page, or the reason why there is none: the demo's numbers are good without it.
std::string write_page(const DemoFlags& flags, const std::vector<DemoCopy>& copies,
                       const std::string& verdict) {
  const std::filesystem::path path = std::filesystem::path(flags.out) / kPage;
  try {
    const std::string page = demo_page(copies, flags.loss, verdict);
    write_atomically(path, [&](std::ostream& out) { out << page; });
    return fmt::format("The page to look at is {}\n", path.string());
  } catch (const ConfigError& error) {
    return fmt::format("There is no page to look at: {}\n", error.what());
  }
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
                   const Stream& stream, const std::string& text, Failures& failures) {
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
  const auto write = [&](const char* name, const std::string& content) {
    failures.attempt(
        [&] { write_atomically(folder / name, [&](std::ostream& out) { out << content; }); });
  };
  write(kNumbers, json.dump(2) + '\n');
  write(kTable, text);
}

std::string progress_note(const std::vector<Contender>& contenders, const std::string& domain) {
  std::string note = fmt::format("{:<16}", domain);
  for (const Contender& contender : contenders) {
    note += fmt::format("  {} {:.0f}%", contender.name, 100 * (1 - contender.scores->accuracy()));
  }
  return note;
}

/// Lets the copies answer side by side; false when the user stopped it.
bool answer_all(std::vector<Contender>& contenders, const Stream& stream, Loader& loader,
                std::vector<LineFile>& traces, bool quiet) {
  std::vector<Adapter*> adapters;
  for (const Contender& contender : contenders) adapters.push_back(contender.adapter.get());
  Progress progress("batch", loader.batch_count(), 0, quiet);
  const auto take = [&](const Answered& answered) {
    take_in(contenders[answered.adapter], answered, traces[answered.adapter]);
    if (answered.adapter + 1 < contenders.size()) return true;
    const std::int64_t done = answered.batch.number + 1;
    const auto segment = static_cast<std::size_t>(answered.batch.segment);
    progress.advance(done, progress_note(contenders, stream.segments[segment].name));
    if (!interrupted()) return true;
    progress.clear();
    std::cerr << fmt::format("stopped after batch {} of {}\n", done, loader.batch_count());
    return false;
  };
  return for_each_answer([&] { return loader.next(); }, adapters, take);
}

}  // namespace

int run_demo(const DemoFlags& flags) {
  catch_interrupts();
  const std::filesystem::path assets = find_assets(flags.assets);
  const Stream stream = open_stream(flags, assets);
  std::vector<Contender> contenders = make_contenders(flags, assets, stream);
  check_files(flags, assets, contenders);
  std::vector<LineFile> traces(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].select == "none") continue;
    contenders[i].copy.trace = trace_path(flags, contenders[i]);
    traces[i].open(contenders[i].copy.trace);
  }
  if (!flags.quiet) {
    std::cerr << fmt::format(
        "A network trained on clean photographs meets {} shifts of {} images, {} at a time.\n"
        "Four copies answer side by side; error so far in the bar. No labels are used to adapt.\n",
        stream.segments.size(), flags.images, kBatchSize);
  }
  Loader loader(stream, contenders[0].model->preprocessing(), {.batch_size = kBatchSize});
  if (!answer_all(contenders, stream, loader, traces, flags.quiet)) return kInterruptedExit;
  const std::vector<DemoCopy> copies = copies_of(contenders);
  const std::string said = verdict(contenders, stream);
  const std::string text =
      format_table(terminal_rows(demo_table(copies))) + '\n' + wrap(said, line_width(), 0) + '\n';
  std::cout << text;
  Failures failures;  // the table is said before they are
  write_results(flags, contenders, stream, text, failures);
  if (!failures.any()) {
    std::cout << fmt::format("\nThe table, the numbers and every step lie in {}/\n", flags.out);
  }
  failures.attempt([&] { std::cout << write_page(flags, copies, said); });
  failures.throw_if_any();
  return 0;
}

}  // namespace gala
