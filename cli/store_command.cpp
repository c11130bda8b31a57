#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/text.h"
#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/spec.h"
#include "gala/protocol/store_merge.h"

namespace gala {
namespace {

struct Flags {
  std::string action;
  std::vector<std::string> stores;
};

constexpr char kFooter[] =
    "A store is a folder that `gala run` fills. Runs that both have stay as they are\n"
    "in the first one; nothing is taken out of the others. A merge that was stopped\n"
    "is made again by the same command.\n"
    "\n"
    "Examples:\n"
    "  gala store check results\n"
    "  gala store merge results from_node1 from_node2";

void check(const std::string& folder) {
  const Store store(folder, Store::Access::kRead);
  std::size_t places = 0;
  for (const Record& record : store.records()) places += record.places.size();
  std::cout << fmt::format("{}: {}, {}\n", folder, counted(std::ssize(store.records()), "run"),
                           counted(static_cast<std::int64_t>(places), "further place"));
  const std::vector<std::string> problems = check_store(store);
  for (const std::string& problem : problems) std::cout << problem << '\n';
  if (!problems.empty()) {
    throw FormatError(folder, counted(std::ssize(problems), "problem"));
  }
}

void merge(const std::vector<std::string>& folders) {
  for (std::size_t i = 1; i < folders.size(); ++i) {
    if (canonical_path(folders[i]) == canonical_path(folders.front())) {
      fail<ConfigError>("{} cannot be merged into itself", folders[i]);
    }
  }
  // All of them are read before anything is written.
  std::vector<std::unique_ptr<Store>> others;
  for (std::size_t i = 1; i < folders.size(); ++i) {
    others.push_back(std::make_unique<Store>(folders[i], Store::Access::kRead));
  }
  Store into(folders.front(), Store::to_write(folders.front()));
  for (const std::string& repair : into.repairs()) warn(repair);
  for (const auto& other : others) {
    for (const std::string& repair : other->repairs()) warn(repair);
    const MergeCounts counts = merge_stores(into, *other);
    std::cout << fmt::format(
        "{}: {} runs added, {} were there, {} places added, {} traces copied\n",
        other->folder().string(), with_commas(counts.runs), with_commas(counts.known),
        with_commas(counts.places), with_commas(counts.traces));
    if (counts.other > 0) {
      std::cout << fmt::format("  {} of those that were there have another result here: left out\n",
                               with_commas(counts.other));
    }
    if (counts.no_trace > 0) {
      std::cout << fmt::format("  {} runs came without their trace, which is gone\n",
                               with_commas(counts.no_trace));
    }
  }
}

void look_after(const Flags& flags) {
  const std::size_t count = flags.stores.size();
  if (flags.action == "check") {
    if (count != 1) fail<ConfigError>("store check takes one folder");
    check(flags.stores.front());
  } else if (flags.action == "merge") {
    if (count < 2) fail<ConfigError>("store merge takes the store to add to, and others");
    merge(flags.stores);
  } else {
    fail<ConfigError>("unknown action \"{}\"{}", flags.action,
                      suggestion(flags.action, {"check", "merge"}));
  }
}

}  // namespace

void add_store_command(CLI::App& program) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program.add_subcommand("store", "Check a folder of records, or merge several");
  command->add_option("action", flags->action, "check, or merge")->required()->type_name("ACTION");
  command
      ->add_option("stores", flags->stores,
                   "the store; to merge, the one that is added to, then the others")
      ->required()
      ->type_name("DIR");
  command->footer(kFooter);
  command->callback([flags] { look_after(*flags); });
}

}  // namespace gala
