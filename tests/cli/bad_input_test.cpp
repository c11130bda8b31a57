#include <ATen/ATen.h>

#include <cstdio>
#include <functional>

#include "gala/adapt/state_file.h"
#include "tests/cli/run_gala.h"

namespace gala::test {
namespace {

/// The eight bytes that say how long a safetensors header is, the header, and some data.
std::string safetensors(const std::string& header, std::size_t data, std::uint64_t length = 0) {
  if (length == 0) length = header.size();
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xFF);
  return bytes + header + std::string(data, '\0');
}

/// A mistake gives exit code 2, one line that says what and where, and leaves everything as it was.
class BadInput : public GalaProgram {
 protected:
  void SetUp() override {
    write_source_weights();
    write_pictures("x.npy", 16);
    write_labels("y.npy", 16);
  }

  /// What is said.
  std::string refuses(const std::string& arguments, const std::vector<std::string>& parts) {
    const auto before = listing();
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.code, 2) << arguments << "\n" << ending.err;
    EXPECT_EQ(ending.out, "") << arguments;
    EXPECT_EQ(ending.err_lines().size(), 1U) << arguments << "\n" << ending.err;
    EXPECT_TRUE(ending.err.starts_with("error: ")) << arguments << "\n" << ending.err;
    for (const std::string& part : parts) EXPECT_CONTAINS(ending.err, part) << arguments;
    EXPECT_TRUE(before == listing()) << arguments << " left something behind";
    return ending.err;
  }
  void adapt_refuses(const std::string& flags, const std::vector<std::string>& parts) {
    refuses("adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy " + flags,
            parts);
  }
  void data_refuses(const std::string& data, const std::vector<std::string>& parts) {
    refuses("adapt --weights source.safetensors --trace t.jsonl --data " + data, parts);
  }
};

TEST_F(BadInput, Commands) {
  refuses("", {"no command given", "adapt"});
  refuses("adpt", {"unknown command \"adpt\"", "did you mean \"adapt\"?"});
  refuses("--bogus", {"unknown flag --bogus"});
  refuses("list selector", {"unknown kind \"selector\"", "\"selectors\"", "losses"});
  refuses("list selectors losses", {"unexpected word \"losses\""});
  refuses("list --jsn", {"unknown flag --jsn", "--json"});
}

TEST_F(BadInput, Flags) {
  refuses("adapt --weights source.safetensors", {"--data is required"});
  refuses("adapt --data arrays:images=x.npy", {"--model or --weights must be given"});
  adapt_refuses("--trac t", {"unknown flag --trac", "did you mean --trace?"});
  adapt_refuses("--batchsize=3", {"unknown flag --batchsize", "--batch-size"});
  adapt_refuses("more", {"unexpected word \"more\""});
  adapt_refuses("--trace", {"--trace needs a value"});
  adapt_refuses("--seed 1 --seed 2", {"--seed is given more than once"});
  for (const char* size : {"0", "-3", "x", "1.5", "99999999999999999999"}) {
    adapt_refuses(std::string("--batch-size ") + size,
                  {"--batch-size", "whole number from 1", size});
  }
  // Of a number that is too large the bound is told.
  adapt_refuses("--batch-size 99999999999999999999", {"from 1 to 9223372036854775807"});
  adapt_refuses("--inner-steps 0", {"--inner-steps", "whole number from 1"});
  adapt_refuses("--inner-steps 10001", {"inner_steps must lie in 1 .. 10000, not 10001"});
  adapt_refuses("--adapt-every 0", {"--adapt-every", "whole number from 1"});
  adapt_refuses("--seed -1", {"--seed", "whole number from 0"});
  adapt_refuses("--threads 1000000", {"--threads", "from 0 to "});
  adapt_refuses("--save-every 5", {"--save-every needs --save-state"});
  adapt_refuses("--save-every 0 --save-state s", {"--save-every", "whole number from 1"});
  adapt_refuses("--partition blok", {"--partition blok", "tensor|module|block"});
  adapt_refuses("--head frozen", {"--head frozen", "adapt|freeze"});
  adapt_refuses("--predict before", {"--predict before", "adapting|after"});
  adapt_refuses("--precision half", {"--precision half", "float32|tf32|bf16"});
  adapt_refuses("--layout sideways", {"--layout sideways", "contiguous|channels_last|fastest"});
  adapt_refuses("--precision tf32", {"needs --device cuda"});
  adapt_refuses("--device gpu", {"--device gpu", "cpu, cuda or cuda:N"});
}

TEST_F(BadInput, NumbersOfEveryCommand) {
  const std::string corrupt =
      "corrupt --data arrays:images=x.npy --corruption fog --severity 1 --out fog.npy ";
  for (const std::string& words :
       {corrupt + "--seed -1", corrupt + "--seed 99999999999999999999", corrupt + "--quality abc",
        corrupt + "--quality 101", corrupt + "--threads 0", corrupt + "--threads 1000000",
        std::string("data arrays:images=x.npy --seed -1"),
        std::string("data arrays:images=x.npy --threads x"), std::string("demo --images x"),
        std::string("train plan.toml --threads x")}) {
    const Ending ending = run(words);
    EXPECT_EQ(ending.code, 2) << words;
    EXPECT_CONTAINS(ending.err, "expected a whole number from");
  }
  for (const char* severity : {"1,2", "6", "x", "''"}) {
    const Ending ending =
        run("corrupt --data arrays:images=x.npy --corruption fog --out fog.npy "
            "--severity " +
            std::string(severity));
    EXPECT_EQ(ending.code, 2) << severity;
    EXPECT_CONTAINS(ending.err, "expected one from 1 to 5, or all");
  }
  const Ending twice =
      run("corrupt --data arrays:images=x.npy --corruption fog,snow,fog --severity 1 --out D");
  EXPECT_EQ(twice.code, 2);
  EXPECT_CONTAINS(twice.err, "fog is given twice");
}

TEST_F(BadInput, APlanOfTheOtherKind) {
  const std::string plans = GALA_TEST_ASSETS "/../plans/";
  const std::string training = plans + "train_cifar10_wrn16_2.toml", runs = plans + "small.toml";
  refuses("run " + training + " --store s",
          {"this is a plan for training: gala train " + training});
  refuses("train " + runs + " --out w", {"this is a plan of experiments: gala run " + runs});
  // What may be either is read as the command has it.
  write("both.toml", "[plan]\nname = 'x'\n[model]\nnetwork = 'resnet18'\n");
  EXPECT_CONTAINS(run("run both.toml --store s").err, "a plan has no section \"model\"");
  EXPECT_CONTAINS(run("train both.toml --out w").err, "a plan has no section \"plan\"");
}

TEST_F(BadInput, AWorkingDirectoryThatIsGone) {
  const std::string gone = path("gone");
  // Whoever changes into a folder without a shell leaves PWD as it was.
  for (const char* before : {"", "PWD=/another "}) {
    std::filesystem::create_directory(gone);
    const std::string command = "cd " + gone + " && rmdir " + gone + " && " + before +
                                GALA_TEST_PROGRAM " list selectors 2>&1; echo $?";
    FILE* shell = ::popen(command.c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string said;
    for (int c; (c = std::fgetc(shell)) != EOF;) said += static_cast<char>(c);
    ::pclose(shell);
    EXPECT_EQ(said, "error: the working directory " + gone +
                        " was deleted, and maybe made anew: change into one that is there\n2\n");
  }
}

TEST_F(BadInput, ADeviceThatIsNotThere) {
  adapt_refuses("--device cuda:99", {"--device cuda:99"});
}

TEST_F(BadInput, NamesAndOptions) {
  refuses("inspect --model resnet19",
          {"unknown model \"resnet19\"", "\"resnet18\"", "wide_resnet"});
  refuses("inspect --model resnet18:clases=7", {"no option \"clases\"", "\"classes\""});
  refuses("inspect --model resnet18 --partition modul", {"--partition modul", "tensor, module"});
  adapt_refuses("--loss pseudolabel", {"unknown loss", "\"pseudo_label\"", "shot"});
  adapt_refuses("--loss shot:bet=1", {"no option \"bet\"", "\"beta\"", "theta"});
  adapt_refuses("--loss shot:beta=x", {"beta cannot be \"x\"", "expected number"});
  adapt_refuses("--loss shot:beta=5", {"beta", "[0, 1]"});
  adapt_refuses("--loss shot:beta", {"expected key=value"});
  adapt_refuses("--select gal", {"unknown selector", "\"gala\"", "auto_rgn"});
  adapt_refuses("--select gala:threshold=2", {"threshold must lie in [-1, 1]", "not 2"});
  adapt_refuses("--select gala:window=-1", {"window must be 0", "not -1"});
  adapt_refuses("--select gala:window=1.5", {"window cannot be \"1.5\"", "integer"});
  adapt_refuses("--select fixed:layers=zzz", {"no layer is named \"zzz\"", "block1.layer.0.conv1"});
  adapt_refuses("--optimizer adm", {"unknown optimizer", "\"adam\"", "sgd"});
  adapt_refuses("--optimizer adam:rate=-1", {"rate", "-1"});
  adapt_refuses("--norm sourc", {"unknown norm mode", "\"source\"", "batch"});
  adapt_refuses("--norm blend:weight=2", {"weight must be from 0 to 1"});
  adapt_refuses("--norm training", {"norm mode"});
  adapt_refuses("--guard wrn", {"unknown guard", "\"warn\"", "rollback"});
  adapt_refuses("--guard warn:every=0", {"every must be at least 1"});
  adapt_refuses("--stream mixd", {"unknown stream", "\"mixed\"", "single"});
  adapt_refuses("--include blok*", {"\"blok*\" matches no parameter", "block1"});
  adapt_refuses("--exclude nothing", {"\"nothing\" matches no parameter"});
  adapt_refuses("--exclude *", {"is left to adapt"});
}

TEST_F(BadInput, Weights) {
  const std::string rest = " --data arrays:images=x.npy --trace t.jsonl";
  refuses("adapt --weights missing.safetensors" + rest, {"missing.safetensors", "No such file"});
  refuses("adapt --weights ." + rest, {"is a folder"});
  const std::string source = read("source.safetensors");
  const auto broken = [&](const std::string& content, const std::vector<std::string>& parts) {
    write("broken.safetensors", content);
    refuses("adapt --model wide_resnet:depth=10,width=1 --weights broken.safetensors" + rest,
            parts);
  };
  broken("", {"broken.safetensors"});
  broken("text, and no weights at all", {"broken.safetensors", "neither safetensors nor"});
  broken(source.substr(0, 1000), {"broken.safetensors", "past the end"});
  broken(source.substr(0, source.size() - 100), {"broken.safetensors"});
  broken(safetensors("{}", 0, std::uint64_t{1} << 60), {"broken.safetensors"});
  const std::string entry = R"("dtype":"F32","shape":[2])";
  broken(safetensors("{\"a\":{" + entry + R"(,"data_offsets":[0,8]},"b":{)" + entry +
                         R"(,"data_offsets":[4,12]}})",
                     12),
         {"broken.safetensors"});
  broken(safetensors("{\"a\":{" + entry + R"(,"data_offsets":[0,8]},"a":{)" + entry +
                         R"(,"data_offsets":[8,16]}})",
                     16),
         {"broken.safetensors", "a"});
  broken(safetensors("{\"a\":{" + entry + R"(,"data_offsets":[800,808]}})", 8),
         {"broken.safetensors"});
  broken(safetensors(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8),
         {"broken.safetensors", "F33"});
  broken(safetensors(
             R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", 8),
         {"broken.safetensors"});
  refuses("adapt --model wide_resnet:depth=16,width=1 --weights source.safetensors" + rest,
          {"do not fit wide_resnet:depth=16", "missing", "block1.layer.1.bn1.weight"});
  refuses(
      "adapt --model wide_resnet:depth=10,width=1,classes=7 --weights source.safetensors" + rest,
      {"fc.weight"});
}

TEST_F(BadInput, Data) {
  data_refuses("x.npy", {"unknown data set", "arrays"});
  data_refuses("arays:images=x.npy", {"unknown data set", "\"arrays\""});
  data_refuses("arrays:image=x.npy", {"no option \"image\"", "\"images\""});
  data_refuses("arrays", {"arrays needs images=PATH"});
  data_refuses("arrays:images=missing.npy", {"missing.npy", "No such file"});
  data_refuses("folder:path=missing", {"missing"});
  write("empty.npy", "");
  data_refuses("arrays:images=empty.npy", {"empty.npy", "not a .npy file"});
  write_pictures("none.npy", 0);
  data_refuses("arrays:images=none.npy", {"holds no pictures"});
  const std::string pictures = read("x.npy");
  write("cut.npy", pictures.substr(0, pictures.size() - 5));
  data_refuses("arrays:images=cut.npy", {"cut.npy"});
  data_refuses("arrays:images=y.npy", {"y.npy: expected uint8", "found <i8 of shape (16)"});
  write_planes("floats.npy", 16);
  std::string integers = read("floats.npy");
  integers.replace(integers.find("<f4"), 3, "<i4");
  write("integers.npy", integers);
  data_refuses("arrays:images=integers.npy",
               {"integers.npy: expected uint8", "<i4", ".astype(np.uint8)"});
  write_labels("few.npy", 15);
  data_refuses("arrays:images=x.npy,labels=few.npy", {"few.npy: 15 labels for 16 pictures"});
  write_labels("many.npy", 16, 12);
  data_refuses("arrays:images=x.npy,labels=many.npy", {"labels up to 11", "10 classes (0 to 9)"});
  data_refuses("arrays:images=x.npy,labels=floats.npy", {"floats.npy: expected"});
  for (int c = 0; c < 3; ++c) write_png("photos/" + std::to_string(c) + "/a.png", 1);
  data_refuses("folder:path=photos", {"folder has 3 classes", "has 10", "labels=none"});
  data_refuses("folder:path=photos,2025/june",
               {"double quotes", "'folder:path=\"photos,2025/june\"'"});
}

TEST_F(BadInput, OutputsAreCheckedBeforeTheWork) {
  write("folder/file", "");
  for (const char* flag : {"--trace", "--predictions", "--save-weights", "--save-state"}) {
    const std::string name = std::string(flag) + " ";
    adapt_refuses(name + "missing/t", {name + "missing/t", "there is no folder missing"});
    adapt_refuses(name + "folder", {name + "folder", "is a folder"});
    adapt_refuses(name + "x.npy", {"would overwrite what --data images reads"});
    adapt_refuses(name + "folder/../source.safetensors", {"what --weights reads"});
  }
  adapt_refuses("--events missing/e", {"--events missing/e"});
  adapt_refuses("--trace t --predictions ./t", {"--trace and --predictions both name"});
  adapt_refuses("--save-state t --events t", {"--save-state and --events"});
}

TEST_F(BadInput, States) {
  const std::string flags =
      "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 8 ";
  ASSERT_EQ(run(flags + "--save-state s.state --trace old.jsonl").code, 0);
  const auto resume_refuses = [&](const std::string& more, const std::vector<std::string>& parts) {
    refuses(flags + "--trace old.jsonl --resume " + more, parts);
  };
  resume_refuses("missing.state", {"missing.state", "No such file"});
  resume_refuses("y.npy", {"y.npy"});
  resume_refuses("source.safetensors", {"source.safetensors", "not a saved state"});
  for (const char* command : {"inspect", "adapt --data arrays:images=x.npy"}) {
    refuses(std::string(command) + " --weights s.state", {"s.state: is a saved state", "--resume"});
  }
  refuses("adapt --model wide_resnet:depth=10,width=1 --data arrays:images=x.npy --weights s.state",
          {"s.state: is a saved state and no weights", "--save-weights"});
  const std::string state = read("s.state");
  write("cut.state", state.substr(0, state.size() / 2));
  resume_refuses("cut.state", {"cut.state"});
  resume_refuses("s.state --loss shot",
                 {"s.state", "loss \"pseudo_label\"", "this run has \"shot\""});
  resume_refuses("s.state --select all", {"select \"gala\"", "\"all\""});
  resume_refuses("s.state --optimizer sgd", {"optimizer \"adam\"", "\"sgd\""});
  resume_refuses("s.state --norm batch", {"norm \"source\"", "\"batch\""});
  resume_refuses("s.state --seed 3", {"seed 0", "3"});
  resume_refuses("s.state --partition block", {"partition \"module\"", "\"block\""});
  resume_refuses("s.state --include fc", {"include []", "\"fc\""});
  resume_refuses("s.state --stream mixed", {"stream single", "mixed"});

  const std::string data = " --data arrays:images=x.npy,labels=y.npy --resume s.state";
  refuses("adapt --weights source.safetensors --batch-size 4" + data, {"batch size 8", "4"});
  refuses("adapt --model wide_resnet:depth=10,width=2 --batch-size 8" + data,
          {"model", "width=1", "width=2"});
  refuses("adapt --model wide_resnet:depth=10,width=1 --seed 0 --batch-size 8 --norm source" +
              std::string(" --data arrays:images=x.npy --resume s.state"),
          {"data"});
  // Weights of the same shape but with other values.
  ASSERT_EQ(run(flags + "--loss entropy --select all --save-weights other.safetensors").code, 0);
  refuses("adapt --weights other.safetensors --batch-size 8" + data, {"other source weights"});
  // Edited, or hit by the disk: in the values, and in the last of the tensors.
  std::string edited = state;
  const std::string batches = R"(\"next_position\":16)";
  ASSERT_NE(edited.find(batches), std::string::npos);
  edited.replace(edited.find(batches), batches.size(), R"(\"next_position\":15)");
  write("edited.state", edited);
  resume_refuses("edited.state", {"edited.state: is not as it was saved", "checksum"});
  edited = state;
  edited.back() = static_cast<char>(edited.back() ^ 1);
  write("edited.state", edited);
  resume_refuses("edited.state", {"edited.state: is not as it was saved"});
  // What the interrupted run had written is gone.
  write("old.jsonl", "");
  resume_refuses("s.state", {"old.jsonl", "no longer there"});
}

/// States that somebody made with care: the checksum is right, the values are not. What an adapter
/// makes of each of its own is in tests/adapt/state_test.cpp.
TEST_F(BadInput, StatesOfOddValues) {
  const std::string flags =
      "adapt --weights source.safetensors --data arrays:images=x.npy,labels=y.npy --batch-size 8 ";
  ASSERT_EQ(run(flags + "--save-state s.state --trace t.jsonl").code, 0);
  const State whole = read_state(path("s.state"));
  const auto refuses_with = [&](const std::function<void(State&)>& change) {
    State state = whole;
    change(state);
    write_state(path("odd.state"), state);
    const std::string said = refuses(flags + "--trace t.jsonl --resume odd.state", {"odd.state"});
    for (const char* raw : {"json", "vector", "map::", "_M_", "std::", "c10"}) {
      EXPECT_EQ(said.find(raw), std::string::npos) << said;
    }
  };
  refuses_with([](State& state) { state.values.erase("run"); });
  refuses_with([](State& state) { state.values["guard"] = "odd"; });
  refuses_with([](State& state) { state.values["totals"] = nlohmann::json::array(); });
  for (const nlohmann::json& position :
       {nlohmann::json(-8), nlohmann::json(3), nlohmann::json("8"), nlohmann::json(1e300)}) {
    refuses_with([&](State& state) { state.values["run"]["next_position"] = position; });
  }
  refuses_with([](State& state) { state.values["run"]["scores"]["right"] = {1, 2}; });
  refuses_with([](State& state) { state.values["files"]["trace"]["bytes"] = "odd"; });
  refuses_with([](State& state) { state.tensors.erase(state.tensors.begin()); });
  refuses_with([](State& state) { state.tensors.begin()->second = at::zeros({3}); });
}

/// Each data set is asked in tests/data/sets_test.cpp.
TEST_F(BadInput, LinksThatLeadToThemselves) {
  std::filesystem::create_symlink("loop", path("loop"));
  const auto loops = [&](const std::string& arguments) {
    const std::string said = refuses(arguments, {"loop"});
    EXPECT_EQ(said.find("filesystem error"), std::string::npos) << said;
  };
  const std::string adapt = "adapt --data arrays:images=x.npy --weights ";
  loops(adapt + "loop");
  for (const char* flags : {"--trace loop", "--events loop/x", "--resume loop"}) {
    loops(adapt + "source.safetensors " + flags);
  }
  loops("data folder:path=loop");
  loops("report loop");
  loops("report y.npy --out loop");
  loops("run loop --store s");
  loops("train loop");
  loops("corrupt --data arrays:images=x.npy,labels=y.npy --corruption fog --severity 1 --out loop");
  loops("demo --out loop");
  loops("demo --assets loop");
}

TEST_F(BadInput, NetworksThatNoMemoryHolds) {
  refuses("inspect --model resnet18:classes=2000000000", {"classes must be from 2 to 1000000"});
  refuses("inspect --model wide_resnet:depth=10,width=1,classes=-1", {"classes must be from 2"});
  refuses("inspect --model wide_resnet:depth=10,width=1024",
          {"parameters up to block1", "at most 1000000000"});
  refuses("inspect --model resnet50:classes=1000000", {"parameters up to fc", "at most"});
}

TEST_F(BadInput, TextsWithoutEndAreNotSaidWhole) {
  const std::string end(100'000, 'a');
  const auto is_brief = [&](const std::string& arguments) {
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.code, 2) << ending.err.substr(0, 300);
    EXPECT_LT(ending.err.size(), 2000U) << arguments.substr(0, 80) << "\n"
                                        << ending.err.substr(0, 300);
  };
  is_brief(end);
  is_brief("inspect --" + end);
  is_brief("inspect --model " + end);
  is_brief("inspect --model resnet18:" + end);
  is_brief("inspect --model resnet18:" + end + "=1");
  is_brief("inspect --model resnet18:classes=" + end);
  is_brief("inspect --partition " + end + " --model resnet18");
  const std::string adapt = "adapt --weights source.safetensors --data arrays:images=x.npy ";
  for (const char* flag : {"--include ", "--device ", "--batch-size ", "--events "}) {
    is_brief(adapt + flag + end);
  }
  is_brief("data folder:path=" + end);
  is_brief("report " + end);
}

}  // namespace
}  // namespace gala::test
