#include <signal.h>

#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

/// 40 batches of 8, everything written, everything moving.
class Resume : public GalaProgram {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 320);
    write_labels("y.npy", 320);
  }

  static std::string outputs(const std::string& name) {
    return " --trace " + name + ".jsonl --predictions " + name + ".csv --save-weights " + name +
           ".safetensors";
  }

  void expect_equal_bytes(const std::string& a, const std::string& b) const {
    for (const char* kind : {".jsonl", ".csv", ".safetensors"}) {
      EXPECT_TRUE(read(a + kind) == read(b + kind)) << a << " and " << b << kind;
    }
  }

  const std::string flags_ =
      "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 8 "
      "--loss shot:beta=0.1 --optimizer adam:rate=0.01 --norm running --deterministic --seed 5 "
      "--guard rollback:every=3,horizon=16,to=healthy,displacement=0.05 --events ";
};

TEST_F(Resume, AfterAKillGoesOnToTheSameBytes) {
  const Ending straight = run(flags_ + "a.events" + outputs("a"));
  ASSERT_EQ(straight.code, 0) << straight.err;
  EXPECT_EQ(read_json_lines("a.jsonl").size(), 40U);

  // A kill gives no chance to write anything: what was saved every few batches must suffice, and
  // lines written behind it must go.
  const std::string flags = flags_ + "b.events" + outputs("b") + " --save-state b.state";
  const Ending killed = run_until("b.state", SIGKILL, flags + " --save-every 7");
  ASSERT_EQ(killed.signal, SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(path("b.safetensors")));
  const Ending resumed = run(flags + " --resume b.state");
  ASSERT_EQ(resumed.code, 0) << resumed.err;

  expect_equal_bytes("a", "b");
  EXPECT_EQ(read("a.events"), read("b.events"));
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(Resume, AfterAnInterruptGoesOnToTheSameBytes) {
  const std::string select = " --select random --inner-steps 2";
  const Ending straight = run(flags_ + "a.events" + outputs("a") + select);
  ASSERT_EQ(straight.code, 0) << straight.err;

  const std::string flags = flags_ + "b.events" + outputs("b") + select + " --save-state b.state";
  const Ending stopped = run_until("b.state", SIGINT, flags + " --save-every 5");
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_EQ(stopped.out, "");
  EXPECT_CONTAINS(stopped.err, "stopped after batch ");
  EXPECT_CONTAINS(stopped.err, "--resume b.state");
  const Ending resumed = run(flags + " --resume b.state");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_CONTAINS(resumed.err, "resume  at image ");

  expect_equal_bytes("a", "b");
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(Resume, WithoutAStateToSaveAnInterruptSaysSo) {
  const Ending stopped = run_until("t.jsonl", SIGTERM,
                                   "adapt --weights source.safetensors --data arrays:images=x.npy "
                                   "--batch-size 2 --trace t.jsonl");
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_CONTAINS(stopped.err, "nothing was saved (give --save-state to be able to go on)");
}

TEST_F(Resume, AfterAHangupGoesOnToTheSameBytes) {
  const Ending straight = run(flags_ + "a.events" + outputs("a"));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const std::string flags = flags_ + "b.events" + outputs("b") + " --save-state b.state";
  const Ending stopped = run_until("b.jsonl", SIGHUP, flags);
  ASSERT_EQ(stopped.code, 130) << stopped.err << stopped.signal;
  EXPECT_CONTAINS(stopped.err, "--resume b.state");
  ASSERT_EQ(run(flags + " --resume b.state").code, 0);
  expect_equal_bytes("a", "b");
}

TEST_F(Resume, UnderNohupAHangupIsNothing) {
  const auto before = ::signal(SIGHUP, SIG_IGN);  // is inherited
  const pid_t process =
      start(words("adapt --weights source.safetensors --data arrays:images=x.npy --batch-size 8 "
                  "--trace t.jsonl"),
            "", -1);
  ::signal(SIGHUP, before);
  wait_until(process, "t.jsonl");
  ::kill(process, SIGHUP);
  const Ending ending = wait_for(process);
  ASSERT_EQ(ending.code, 0) << ending.err;
  EXPECT_EQ(read_json_lines("t.jsonl").size(), 40U);
}

TEST_F(Resume, WhatWasAnsweredBeforeAKillIsWritten) {
  write_pictures("many.npy", 4000);  // so that there is time to kill it
  const pid_t process = start(
      words("adapt --weights source.safetensors --data arrays:images=many.npy --batch-size 8 "
            "--trace t.jsonl --predictions p.csv --guard warn:every=1,horizon=8 --events e.jsonl"),
      "", -1);
  wait_until(process, "t.jsonl", 3);
  ::kill(process, SIGKILL);
  const Ending ending = wait_for(process);
  ASSERT_EQ(ending.signal, SIGKILL) << ending.err;
  // The batch at hand may have reached one file and not yet the next.
  const std::int64_t traced = lines_in("t.jsonl");
  EXPECT_GE(lines_in("p.csv"), 1 + 8 * (traced - 1));
  EXPECT_GE(lines_in("e.jsonl"), traced - 1);
}

TEST_F(Resume, FromAnotherFolderAndByOtherPathsGoesOnToTheSameBytes) {
  const Ending straight = run(flags_ + "a.events" + outputs("a"));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const std::string flags = flags_ + "b.events" + outputs("b") + " --save-state b.state";
  ASSERT_EQ(run_until("b.state", SIGINT, flags + " --save-every 5").code, 130);

  write_pictures("other.npy", 320, /*seed=*/2);
  std::filesystem::create_directory_symlink(".", path("link"));
  const auto respelled = [&](const std::string& data) {
    return "adapt --weights ../source.safetensors --data " + data +
           " --batch-size 8 --loss shot:beta=0.1 --optimizer adam:rate=0.01 --norm running "
           "--deterministic --seed 5 --guard rollback:every=3,horizon=16,to=healthy,"
           "displacement=0.05 --events ../b.events --trace ./../b.jsonl --predictions " +
           path("b.csv").string() + " --save-weights ../b.safetensors --resume ../b.state";
  };
  start_in("deep/er");
  start_in("deep");
  const Ending other = run(respelled("arrays:images=../other.npy,labels=../y.npy"));
  EXPECT_EQ(other.code, 2);
  EXPECT_CONTAINS(other.err, "was saved with data ");
  const Ending resumed = run(respelled("arrays:images=er/../../link/x.npy,labels=../y.npy"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_equal_bytes("a", "b");
  EXPECT_EQ(read("a.events"), read("b.events"));
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(Resume, FromAnotherFolderTakesEachOptionOfAFolderForWhatItIs) {
  for (int i = 0; i < 20; ++i) {
    write_png("photos/" + std::to_string(i / 2) + "/" + std::to_string(i) + ".png",
              static_cast<std::uint64_t>(i));
  }
  write("classes.txt", "9\n8\n7\n6\n5\n4\n3\n2\n1\n0\n");
  write("other.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  start_in("deep");
  const auto adapt = [&](const std::string& up, const std::string& data, const std::string& more) {
    start_in(up.empty() ? "" : "deep");
    return run("adapt --weights " + up +
               "source.safetensors --batch-size 8 --loss entropy --data " + "folder:path=" + up +
               "photos," + data + more);
  };
  const Ending none = adapt("", "labels=none", " --save-state none.state");
  ASSERT_EQ(none.code, 0) << none.err;
  const Ending none_again = adapt("../", "labels=none", " --resume ../none.state");
  EXPECT_EQ(none_again.code, 0) << none_again.err;
  const Ending named = adapt("", "classes=classes.txt", " --save-state named.state");
  ASSERT_EQ(named.code, 0) << named.err;
  const Ending named_again = adapt("../", "classes=../classes.txt", " --resume ../named.state");
  EXPECT_EQ(named_again.code, 0) << named_again.err;
  EXPECT_EQ(named.out, named_again.out);
  const Ending other = adapt("../", "classes=../other.txt", " --resume ../named.state");
  EXPECT_EQ(other.code, 2);
  EXPECT_CONTAINS(other.err, "was saved with data ");
}

TEST_F(Resume, OfAFinishedRunChangesNothing) {
  const std::string flags = flags_ + "a.events" + outputs("a") + " --save-state a.state";
  const Ending first = run(flags);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto before = listing();
  const Ending again = run(flags + " --resume a.state");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_CONTAINS(again.err, "nothing is left to do");
  EXPECT_EQ(first.out, again.out);
  EXPECT_TRUE(before == listing());
}

TEST_F(Resume, FindsItsPlaceBehindABatchThatEndsInAnUnreadablePicture) {
  for (int i = 0; i < 160; ++i) {
    const std::string name =
        "photos/" + std::to_string(i / 16) + "/" + std::to_string(1000 + i) + ".png";
    if (i % 4 == 3) {
      write(name, "not a picture");
    } else {
      write_png(name, static_cast<std::uint64_t>(i));
    }
  }
  const std::string flags =
      "adapt --weights source.safetensors --data folder:path=photos --batch-size 4 --loss entropy "
      "--select all --deterministic --skip-unreadable";
  const Ending straight = run(flags + outputs("a"));
  ASSERT_EQ(straight.code, 0) << straight.err;
  EXPECT_CONTAINS(straight.out, "answered   120 images in 40 batches");
  EXPECT_CONTAINS(straight.out, "left out   40 unreadable images; the first: photos/0/1003.png");
  const std::string saving = flags + outputs("b") + " --save-state b.state";
  ASSERT_EQ(run_until("b.state", SIGKILL, saving + " --save-every 1").signal, SIGKILL);
  const Ending resumed = run(saving + " --resume b.state");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_equal_bytes("a", "b");
  EXPECT_EQ(straight.out, resumed.out);
}

TEST_F(Resume, TheSameSeedGivesTheSameBytes) {
  const std::string select = " --select random --stream single:order=shuffled";
  for (const char* name : {"a", "b"}) {
    const Ending ending = run(flags_ + name + ".events" + outputs(name) + select);
    ASSERT_EQ(ending.code, 0) << ending.err;
  }
  expect_equal_bytes("a", "b");
  std::string other = flags_;
  other.replace(other.find("--seed 5"), 8, "--seed 6");
  ASSERT_EQ(run(other + "c.events" + outputs("c") + select).code, 0);
  EXPECT_FALSE(read("a.jsonl") == read("c.jsonl"));
  EXPECT_FALSE(read("a.csv") == read("c.csv"));
}

}  // namespace
}  // namespace gala::test
