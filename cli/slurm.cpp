#include "cli/slurm.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gala/base/error.h"
#include "gala/base/file.h"
#include "gala/base/words.h"

namespace gala {
namespace {

namespace fs = std::filesystem;

/// A word as a shell reads it back.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

/// What a command prints, both ways, and its exit code; 127 where it is not there.
struct Answer {
  int code = -1;
  std::string text;
};

Answer ask(const std::vector<std::string>& command) {
  Answer answer;
  FILE* pipe = ::popen((quoted(command) + " 2>&1").c_str(), "re");
  if (!pipe) fail("{} cannot be started: {}", command.front(), std::strerror(errno));
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    answer.text.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) answer.code = WEXITSTATUS(status);
  return answer;
}

fs::path folder_of(const fs::path& store) {
  return canonical_path(store) / "slurm";
}

/// For a file name or a job's: letters, digits, - and _.
std::string plain(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name;
}

constexpr char kScript[] = R"(#!/bin/bash
# Made by `gala run --slurm`: makes the runs of one shard that the store lacks. What was made stays made, so a task can
# be stopped and begun again at any time.
stop=
trap 'stop=TERM; kill -TERM "$gala"' TERM
trap 'stop=USR1; kill -TERM "$gala"' USR1
{command} --apart --shard "$SLURM_ARRAY_TASK_ID"/{shards} &
gala=$!
while :; do
  wait "$gala"
  code=$?
  kill -0 "$gala" 2>/dev/null || break
done
# USR1: the time is nearly up. 137: it was killed, for want of memory perhaps. TERM is scancel, or a pre-emption, after
# which Slurm requeues by itself.
if [ "$stop" = USR1 ] || {{ [ -z "$stop" ] && [ "$code" -eq 137 ]; }}; then
  if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
    echo "stopped with code $code: requeued"
    scontrol requeue "$SLURM_JOB_ID"
  fi
fi
exit "$code"
)";

}  // namespace

SlurmWords split_at_slurm(const std::vector<std::string>& words) {
  const auto slurm = std::find(words.begin(), words.end(), "--slurm");
  if (slurm == words.end() || words.size() < 2 || words[1] != "run") return {words, {}};
  return {{words.begin(), slurm + 1}, {slurm + 1, words.end()}};
}

std::string slurm_script(const SlurmArray& array) {
  constexpr int kMostRestarts = 20;  // a task that is killed again and again is not worth more
  return fmt::format(kScript, fmt::arg("command", quoted(array.command)),
                     fmt::arg("shards", array.shards), fmt::arg("restarts", kMostRestarts));
}

std::string submit(const SlurmArray& array, const fs::path& store) {
  const fs::path folder = folder_of(store);
  fs::create_directories(folder);
  const fs::path script =
      folder / fmt::format("{}_{}.sh", plain(array.plan), static_cast<long>(std::time(nullptr)));
  write_atomically(script, [&](std::ostream& out) { out << slurm_script(array); });
  std::vector<std::string> command = {
      "sbatch",
      "--parsable",
      "--job-name=gala-" + plain(array.plan),
      fmt::format("--array={}", fmt::join(array.numbers, ",")),
      "--output=" + (folder / "%A_%a.log").string(),
      "--open-mode=append",  // a task that is requeued goes on there
      "--requeue",
      "--signal=B:USR1@60"};
  command.insert(command.end(), array.options.begin(), array.options.end());
  command.push_back(script.string());
  const Answer answer = ask(command);
  if (answer.code == 127) {
    fail<ConfigError>("--slurm: there is no sbatch here; use it where Slurm's commands are");
  }
  // "12" or "12;cluster", after what a site's filters may have to say.
  std::istringstream lines(answer.text);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  const std::string number = last.substr(0, last.find_first_not_of("0123456789"));
  if (answer.code != 0 || number.empty()) {
    fail<ConfigError>("--slurm: sbatch refuses it: {}", in_brief(answer.text));
  }
  std::ofstream(folder / "arrays.jsonl", std::ios::app)
      << nlohmann::ordered_json({{"plan", array.plan}, {"array", number}}).dump() << '\n';
  return number;
}

std::optional<SlurmTasks> tasks_of(const std::string& array) {
  const Answer answer =
      ask({"squeue", "--noheader", "--array", "--format=%T", "--states=all", "--jobs=" + array});
  SlurmTasks tasks;
  // Slurm forgets a job some minutes after its end.
  if (answer.code != 0 && answer.text.find("Invalid job id") != std::string::npos) return tasks;
  if (answer.code != 0) return std::nullopt;
  std::istringstream words(answer.text);
  for (std::string state; words >> state;) {
    const auto is = [&](std::initializer_list<const char*> names) {
      return std::find(names.begin(), names.end(), state) != names.end();
    };
    tasks.waiting += is({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"});
    tasks.running += is({"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING",
                         "SIGNALING", "STAGE_OUT"});
  }
  return tasks;
}

std::string last_array(const fs::path& store, const std::string& plan) {
  std::ifstream file(folder_of(store) / "arrays.jsonl");
  std::string number;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.value("plan", "") == plan) number = json.value("array", "");
  }
  return number.find_first_not_of("0123456789") == std::string::npos ? number : "";
}

}  // namespace gala
