#pragma once
#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gala::test {

/// How a run of the program ended.
struct Ending {
  int code = -1;   ///< exit code, or -1 when a signal ended it
  int signal = 0;  ///< that signal
  std::string out, err;

  std::vector<std::string> out_lines() const;
  std::vector<std::string> err_lines() const;
};

/// Words of a command line, cut at spaces.
std::vector<std::string> words(const std::string& text);

/// A test that runs the program in a folder of its own, with one thread.
class GalaProgram : public ::testing::Test {
 protected:
  GalaProgram();
  ~GalaProgram() override;

  /// Runs `gala` with these words. Fails the test when it takes longer than two minutes.
  Ending run(const std::string& arguments, const std::string& environment = "");
  /// The same with standard error on a terminal; what appears there is `err`.
  Ending run_on_terminal(const std::string& arguments, const std::string& environment = "");

  /// Starts `gala` and waits until `file` is there, sends `signal`, and waits for the end. Begins
  /// anew when the run was over before that.
  Ending run_until(const std::string& file, int signal, const std::string& arguments);

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& content) const;
  std::vector<nlohmann::ordered_json> read_json_lines(const std::string& name) const;
  /// Programs are started in this folder from now on, which is made; "" is the test's own.
  void start_in(const std::string& name);
  /// Every file below the folder with its content.
  std::map<std::string, std::string> listing() const;

  /// `count` pictures of 32 x 32 x 3 bytes of noise.
  void write_pictures(const std::string& name, std::int64_t count, std::uint64_t seed = 1) const;
  /// The same as floats 3 x 32 x 32, of which number `broken` holds a NaN.
  void write_planes(const std::string& name, std::int64_t count, std::int64_t broken = -1) const;
  /// Labels 0, 1, ..., classes - 1, 0, 1, ...
  void write_labels(const std::string& name, std::int64_t count, std::int64_t classes = 10) const;
  void write_png(const std::string& name, std::uint64_t seed) const;
  /// The source weights of a tiny network, as `source.safetensors`.
  void write_source_weights();

  /// Starts `gala` and does not wait; `terminal` is where standard error goes, or -1.
  pid_t start(const std::vector<std::string>& arguments, const std::string& environment,
              int terminal) const;
  /// Waits until `file` holds so many lines, or is there at all. False when the program ended before,
  /// which is then still to be waited for.
  bool wait_until(pid_t process, const std::string& file, std::int64_t lines = 0) const;
  /// How many lines a file holds; 0 where there is none.
  std::int64_t lines_in(const std::string& name) const;
  /// Waits for its end. Programs that run at once share what they write.
  Ending wait_for(pid_t process) const;

 private:
  std::filesystem::path folder_;
  std::filesystem::path start_;  ///< where programs are started, below the folder
};

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

}  // namespace gala::test
