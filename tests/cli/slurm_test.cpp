#include <cstdlib>
#include <fstream>

#include "tests/cli/run_command.h"

namespace gala::test {
namespace {

namespace fs = std::filesystem;

/// `gala run --slurm` with stand-ins for Slurm's commands: sbatch notes its words, squeue says what `queue` holds,
/// scontrol notes its words. tests/slurm has the real ones.
class SlurmCommand : public RunCommand {
 protected:
  SlurmCommand() {
    tool("sbatch",
         "for word; do echo \"$word\"; done >> sbatch.txt\necho 'a word of the site'; echo "
         "'77;cluster'");
    tool("squeue",
         "cat queue || { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }");
    tool("scontrol", "echo \"$@\" >> scontrol.txt");
  }

  void tool(const std::string& name, const std::string& body) const {
    fs::create_directories(path("bin"));
    write("bin/" + name, "#!/bin/sh\n" + body + "\n");
    fs::permissions(path("bin/" + name), fs::perms::all);
  }
  std::string tools() const { return "PATH=" + path("bin").string() + ":/usr/bin:/bin"; }

  std::vector<std::string> sbatch_words() const {
    std::vector<std::string> words;
    std::ifstream in(path("sbatch.txt"));
    for (std::string word; std::getline(in, word);) words.push_back(word);
    return words;
  }
  /// Lines of runs in the writers' own files.
  std::size_t records_apart() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(path("store/records"))) {
      for (const auto& line :
           read_json_lines("store/records/" + entry.path().filename().string())) {
        count += line.at("kind").get<std::string>() == "run";
      }
    }
    return count;
  }
  /// The exit code of a shell command in the test's folder.
  int shell(const std::string& command) const {
    const std::string whole = fmt::format("cd '{}' && export OMP_NUM_THREADS=1 {} && {}",
                                          path("").string(), tools(), command);
    const int status = std::system(whole.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(SlurmCommand, SubmitsShardsThatTogetherMakeThePlan) {
  const Ending first =
      run("run plan.toml --store store --shards 3 --slurm --time=1:00 --quiet -N 1", tools());
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_CONTAINS(first.out, "array 77: 10 runs in ");
  const std::vector<std::string> words = sbatch_words();
  ASSERT_GE(words.size(), 6U);
  const auto has = [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const char* word : {"--requeue", "--open-mode=append", "--time=1:00", "--quiet"}) {
    EXPECT_TRUE(has(word)) << word;
  }
  // What the user gives stands behind what we do, where it wins; the script comes last.
  EXPECT_EQ(words[words.size() - 2], "1");
  const std::string script = words.back();
  EXPECT_EQ(read("store/records.jsonl"), "") << "nothing is made here";
  const auto array = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--array=");
  });
  ASSERT_NE(array, words.end());
  for (std::size_t at = 7; at != std::string::npos; at = array->find(',', at + 1)) {
    const std::string number = array->substr(at + 1, array->find(',', at + 1) - at - 1);
    EXPECT_EQ(shell(fmt::format("SLURM_ARRAY_TASK_ID={} bash '{}' 2>> log.txt", number, script)), 0)
        << read("log.txt");
  }
  EXPECT_FALSE(fs::exists(path("scontrol.txt"))) << "nobody is requeued";
  EXPECT_EQ(read("store/records.jsonl"), "") << "each task has a file of its own";
  ASSERT_EQ(run("run plan.toml --store local").code, 0);
  ASSERT_EQ(run("store merge merged store").code, 0);
  EXPECT_EQ(records("merged"), records("local"));
  const Ending report = run("report store --format csv");
  EXPECT_EQ(report.code, 0) << report.err;
  const Ending again = run("run plan.toml --store store --slurm", tools());
  EXPECT_CONTAINS(again.err, "0 to do");
  EXPECT_EQ(sbatch_words(), words) << "nothing is left to submit";
}

TEST_F(SlurmCommand, ShowsHowFarAnArrayIs) {
  ASSERT_EQ(run("run plan.toml --store store --slurm", tools()).code, 0);
  write("queue", "RUNNING\nPENDING\nCOMPLETED\n");
  const Ending second = run("run plan.toml --store store --slurm", tools());
  EXPECT_EQ(second.code, 2);
  EXPECT_CONTAINS(second.err, "array 77 is at work on this plan already");
  // A shard is made whoever else is at work.
  ASSERT_EQ(run("run plan.toml --store store --shard 1/2 --apart", tools()).code, 0);
  const std::size_t there = records_apart();
  EXPECT_GT(there, 0U);
  EXPECT_LT(there, 10U);
  // The array ends with runs missing: said, not made here.
  const pid_t process = start(words("run plan.toml --store store"), tools(), -1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  write("queue", "FAILED\nCOMPLETED\n");
  const Ending watched = wait_for(process);
  EXPECT_EQ(watched.code, 1) << watched.err;
  EXPECT_CONTAINS(watched.err, fmt::format("array 77 is over, and {} of {} runs are missing",
                                           10 - there, 10 - there));
  EXPECT_EQ(records_apart(), there);
  // Then the same command goes on by itself.
  fs::remove(path("queue"));
  const Ending made = run("run plan.toml --store store", tools());
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_CONTAINS(run("store check store").out, "10 runs");
}

TEST_F(SlurmCommand, ATaskIsRequeuedWhenItsTimeIsUpOrItWasKilled) {
  ASSERT_EQ(run("run plan.toml --store store --slurm", tools()).code, 0);
  const std::string script = read(fs::relative(sbatch_words().back(), path("")).string());
  const std::size_t begin = script.find("\n'") + 1;
  ASSERT_NE(begin, std::string::npos + 1);
  const auto task = [&](const std::string& body, const std::string& around) {
    tool("stub", body);
    write("task.sh",
          script.substr(0, begin) + "stub" + script.substr(script.find('\'', begin + 1) + 1));
    fs::remove(path("scontrol.txt"));
    const int code = shell("export SLURM_JOB_ID=12 SLURM_ARRAY_TASK_ID=1 && " + around);
    return std::pair{code, fs::exists(path("scontrol.txt")) ? read("scontrol.txt") : ""};
  };
  const std::string wait = "trap 'exit 130' TERM; while :; do sleep 0.05; done";
  const std::string requeued = "requeue 12\n";
  const std::string signalled = "{{ bash task.sh & t=$!; sleep 1; kill -{} $t; wait $t; }}";
  EXPECT_EQ(task("exit 0", "bash task.sh"), std::pair(0, std::string()));
  EXPECT_EQ(task("exit 1", "bash task.sh"), std::pair(1, std::string()));
  EXPECT_EQ(task("kill -KILL $$", "bash task.sh").second, requeued);
  EXPECT_EQ(task("kill -KILL $$", "SLURM_RESTART_COUNT=20 bash task.sh").second, "");
  EXPECT_EQ(task(wait, fmt::format(fmt::runtime(signalled), "USR1")).second, requeued);
  EXPECT_EQ(task(wait, fmt::format(fmt::runtime(signalled), "TERM")).second, "");
}

TEST_F(SlurmCommand, SaysWhatIsWrong) {
  // No sbatch, and one that refuses.
  const Ending none =
      run("run plan.toml --store store --slurm", "PATH=" + path("nothing").string());
  EXPECT_EQ(none.code, 2);
  EXPECT_CONTAINS(none.err, "no sbatch here");
  tool("sbatch", "echo 'error: invalid partition specified: gpus' >&2; exit 1");
  const Ending refused = run("run plan.toml --store store --slurm --partition=gpus", tools());
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.err, "invalid partition specified: gpus");
  // A plan with mistakes is not submitted, and a trial shows what would be.
  EXPECT_EQ(run("run none.toml --store store --slurm", tools()).code, 2);
  const Ending dry = run("run plan.toml --store other --dry-run --slurm", tools());
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_CONTAINS(dry.out, "#!/bin/bash");
  EXPECT_CONTAINS(dry.out, "--apart --shard \"$SLURM_ARRAY_TASK_ID\"/16");
  EXPECT_FALSE(fs::exists(path("other")));
}

}  // namespace
}  // namespace gala::test
