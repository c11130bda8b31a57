#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/command_files.h"
#include "cli/help.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/options.h"
#include "gala/report/report.h"

namespace gala {
namespace {

struct ReportFlags {
  std::string input, out;
  std::string format = "html";
  PrintChoice choice;
};

constexpr char kFooter[] =
    "Reads a store that `gala run` filled, or a trace that `gala adapt --trace`\n"
    "wrote, and runs nothing. html is one page that needs no other file and no\n"
    "network; md, latex, csv and json print the same tables to standard output, or\n"
    "to --out; svg draws one stream: the errors over it, and the layers that moved.\n"
    "\n"
    "Examples:\n"
    "  gala report results --out report.html\n"
    "  gala report results --format latex --rule training_domain\n"
    "  gala report results --format md --compare GALA \"All layers\"\n"
    "  gala report results --format svg --chart \"CIFAR-10-C, SHOT\" --out stream.svg\n"
    "  gala report steps.jsonl --out steps.html";

ReportFormat format_of(const std::string& name) {
  ReportFormat format{};
  if (!parse_value(name, format)) {
    fail<ConfigError>("--format {}: known are html, md, latex, csv, json and svg", name);
  }
  return format;
}

/// A choice that the format would not ask for is a mistake, and not one in silence.
void refuse_unheard(const PrintChoice& choice, ReportFormat format) {
  const bool lists = format == ReportFormat::kCsv || format == ReportFormat::kJson;
  const bool prints = format == ReportFormat::kMarkdown || format == ReportFormat::kLatex;
  const auto needs = [](bool given, bool heard, const char* flag, const char* formats) {
    if (given && !heard) fail<ConfigError>("{} needs --format {}", flag, formats);
  };
  const bool compares = !choice.compare.empty();
  needs(compares, prints || lists, "--compare", "md, latex, csv or json");
  needs(!choice.tables.empty(), prints || lists, "--table", "md, latex, csv or json");
  needs(!choice.rule.empty(), prints || compares, "--rule",
        "md or latex (the page has all of them, to choose from; csv and json list them)");
  needs(!choice.norm.empty(), prints || compares, "--norm",
        "md or latex (the page has all of them, to choose from; csv and json list them)");
  needs(!choice.chart.empty(), format == ReportFormat::kSvg, "--chart", "svg");
}

void write_report(const ReportFlags& flags) {
  const ReportFormat format = format_of(flags.format);
  SelectionRule rule{};
  if (!flags.choice.rule.empty() && !parse_value(flags.choice.rule, rule)) {
    fail<ConfigError>("--rule {}: known are per_loss, per_dataset, training_domain and oracle",
                      flags.choice.rule);
  }
  const std::vector<std::string>& rows = flags.choice.compare;
  if (rows.size() == 1) fail<ConfigError>("--compare needs two rows");
  if (rows.size() == 2 && rows[0] == rows[1]) {
    fail<ConfigError>("--compare names one row twice: \"{}\"", rows[0]);
  }
  refuse_unheard(flags.choice, format);
  const std::string out =
      flags.out.empty() && format == ReportFormat::kHtml ? "report.html" : flags.out;
  CommandFiles files;
  if (std::error_code ignored; std::filesystem::is_directory(flags.input, ignored)) {
    files.reads("STORE", std::filesystem::path(flags.input) / "records.jsonl");
    files.reads("STORE", std::filesystem::path(flags.input) / "records");
    files.reads("STORE", std::filesystem::path(flags.input) / "traces");
  } else {
    files.reads("TRACE", flags.input);
  }
  files.writes("--out", out);
  files.check();
  const Report report = make_report(flags.input, format, flags.choice);
  const std::string& text = report.text;
  for (const std::string& remark : report.remarks) warn(remark);
  if (out.empty()) {
    std::cout << text;
    return;
  }
  write_atomically(out, [&](std::ostream& file) { file << text; });
  std::cerr << fmt::format("{} ({:.2f} MB)\n", out, static_cast<double>(text.size()) / 1e6);
}

}  // namespace

void add_report_command(CLI::App& program) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command =
      program.add_subcommand("report", "Show the records of a store, or the steps of a trace");
  command->add_option("input", flags->input, "folder of records, or a trace")
      ->required()
      ->type_name("STORE|TRACE");
  command->add_option("--format", flags->format, "html, md, latex, csv, json or svg")
      ->capture_default_str()
      ->type_name("NAME");
  command
      ->add_option("--out", flags->out, "file to write [html: report.html, else standard output]")
      ->type_name("FILE");
  command
      ->add_option("--table", flags->choice.tables,
                   "not html: only this table (summary, table1, ...); may be given several times")
      ->type_name("ID");
  command
      ->add_option("--rule", flags->choice.rule,
                   "md, latex: how hyper-parameters are chosen (per_loss, per_dataset, "
                   "training_domain, oracle)")
      ->type_name("NAME");
  command
      ->add_option("--norm", flags->choice.norm, "md, latex: norm mode, where a plan has several")
      ->type_name("MODE");
  command
      ->add_option("--compare", flags->choice.compare,
                   "not html, svg: only the paired differences of two rows, such as GALA and "
                   "\"All layers\"")
      ->expected(1, 2)
      ->type_name("ROW ROW");
  command
      ->add_option("--chart", flags->choice.chart,
                   "svg: which stream and loss, as the page names them [the first]")
      ->type_name("NAME");
  command->footer(kFooter);
  command->callback([flags] { write_report(*flags); });
}

}  // namespace gala
