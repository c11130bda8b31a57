#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/base/interrupt.h"
#include "gala/data/describe.h"
#include "gala/data/stream.h"

namespace gala {
namespace {

struct Flags {
  std::string data;
  std::string stream;
  std::uint64_t seed = 0;
  bool list = false;
  bool quiet = false;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
};

std::string size_range(const DomainSummary& domain) {
  if (domain.largest_height == 0) return "-";
  const auto size = [](std::int64_t width, std::int64_t height) {
    return fmt::format("{}x{}", width, height);
  };
  const std::string low = size(domain.smallest_width, domain.smallest_height);
  const std::string high = size(domain.largest_width, domain.largest_height);
  return low == high ? low : low + " to " + high;
}

std::string class_name(const DataSource& source, std::size_t label) {
  const auto& names = source.class_names();
  return label < names.size() ? names[label] : std::to_string(label);
}

void print_domains(const std::vector<DomainSummary>& domains) {
  std::vector<std::vector<std::string>> rows = {
      {"domain", "pictures", "classes", "sizes", "unreadable"}};
  for (const DomainSummary& domain : domains) {
    const auto present = std::count_if(domain.class_counts.begin(), domain.class_counts.end(),
                                       [](std::int64_t count) { return count > 0; });
    rows.push_back({domain.name, with_commas(domain.pictures),
                    domain.class_counts.empty() ? "unlabelled" : std::to_string(present),
                    size_range(domain),
                    with_commas(static_cast<std::int64_t>(domain.unreadable.size()))});
  }
  std::cout << format_table(rows) << '\n';
}

/// One row a class, one column a domain.
void print_classes(const DataSource& source, const std::vector<DomainSummary>& domains) {
  if (source.classes() == 0) return;
  std::vector<std::vector<std::string>> rows = {{"label", "class"}};
  for (const DomainSummary& domain : domains) rows[0].push_back(domain.name);
  for (std::size_t label = 0; label < static_cast<std::size_t>(source.classes()); ++label) {
    rows.push_back({std::to_string(label), class_name(source, label)});
    for (const DomainSummary& domain : domains) {
      rows.back().push_back(
          label < domain.class_counts.size() ? with_commas(domain.class_counts[label]) : "-");
    }
  }
  std::cout << format_table(rows) << '\n';
}

void describe(const DataSource& source, const Flags& flags) {
  std::int64_t total = 0;
  for (const Domain& domain : source.domains) total += domain.data->size();
  std::vector<DomainSummary> domains;
  {
    Progress progress("reading", total, 0, flags.quiet);
    domains = describe_data(source, flags.threads,
                            [&](std::int64_t done) { progress.advance(done, ""); });
  }
  print_domains(domains);
  print_classes(source, domains);
  std::cout << fmt::format("data          {}\n", source.spec.to_string());
  std::cout << fmt::format("pictures      {} in {}\n", with_commas(total),
                           counted(std::ssize(domains), "domain"));
  std::cout << fmt::format("content hash  {}\n", content_hash(source));
  for (const DomainSummary& domain : domains) {
    for (const std::string& message : domain.unreadable) {
      std::cout << fmt::format("unreadable    {}\n", message);
    }
  }
}

void list(const DataSource& source, const Flags& flags) {
  const Spec spec = flags.stream.empty() ? default_stream(source) : Spec::parse(flags.stream);
  const Stream stream = make_stream(spec, source, flags.seed);
  std::string lines;
  for (std::int64_t i = 0; i < stream.size(); ++i) {
    if (interrupted()) throw Interrupted("stopped while listing the data");
    const std::int64_t label = stream.label(i);
    lines += stream.item_name(i);
    lines += '\t';
    if (label >= 0) lines += std::to_string(label);
    lines += '\n';
    if (lines.size() > 1 << 16 || i + 1 == stream.size()) {
      std::cout << lines;
      lines.clear();
    }
  }
}

}  // namespace

void add_data_command(CLI::App& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("data", "What a data set holds, and its content hash");
  command->add_option("data", flags->data, "data set, name:key=value,... (see gala list datasets)")
      ->required()
      ->type_name("SPEC");
  command->add_flag(
      "--list", flags->list,
      "one picture and its label a line, with a tab between, in the order of the stream");
  command->add_option("--stream", flags->stream, "order of --list (see gala list streams)")
      ->type_name("SPEC");
  command->add_option("--seed", flags->seed, "seed of the stream")
      ->check(whole_number(0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "threads that read pictures")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  command->add_flag("--quiet", flags->quiet, "no progress");
  command->footer(
      "Examples:\n"
      "  gala data cifar10:path=data/cifar10\n"
      "  gala data domainbed:path=data/PACS,env=1,split=out,trial=0 --list");
  command->callback([flags] {
    catch_interrupts();
    const DataSource source = open_data(Spec::parse(flags->data));
    for (const std::string& note : source.notes()) warn(note, flags->quiet);
    try {
      if (flags->list) {
        list(source, *flags);
      } else {
        describe(source, *flags);
      }
    } catch (const Interrupted& stopped) {
      std::cerr << stopped.what() << '\n';
      throw CLI::RuntimeError(kInterruptedExit);
    }
  });
}

}  // namespace gala
