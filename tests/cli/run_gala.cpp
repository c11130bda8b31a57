#include "tests/cli/run_gala.h"

#include <fcntl.h>
#include <png.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <thread>

#include "gala/data/npy.h"

namespace gala::test {
namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPixels = kSide * kSide * 3;
constexpr auto kPatience = std::chrono::minutes(2);

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Bytes that look like noise, the same for the same seed.
std::vector<std::uint8_t> noise(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 2654435761U + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return bytes;
}

template <class T>
void write_array(const std::filesystem::path& path, const char* type,
                 const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  write_npy(path, type, shape, [&](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(T)));
  });
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::vector<std::string> Ending::out_lines() const {
  return lines_of(out);
}
std::vector<std::string> Ending::err_lines() const {
  return lines_of(err);
}

GalaProgram::GalaProgram() {
  static std::atomic<int> number{0};
  folder_ = std::filesystem::temp_directory_path() /
            ("gala_cli_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
  std::filesystem::create_directories(folder_ / "work");
  folder_ /= "work";
}

GalaProgram::~GalaProgram() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_.parent_path(), ignored);
}

pid_t GalaProgram::start(const std::vector<std::string>& arguments, const std::string& environment,
                         int terminal) const {
  const std::string program = GALA_TEST_PROGRAM;
  const auto out = (folder_.parent_path() / "out").string();
  const auto err = (folder_.parent_path() / "err").string();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO);
  ::dup2(terminal >= 0 ? terminal : ::open(err.c_str(), flags, 0600), STDERR_FILENO);
  ::unsetenv("NO_COLOR");
  ::unsetenv("COLUMNS");
  ::setenv("OMP_NUM_THREADS", "1", 1);
  const std::size_t equals = environment.find('=');
  if (equals != std::string::npos) {
    ::setenv(environment.substr(0, equals).c_str(), environment.c_str() + equals + 1, 1);
  }
  if (::chdir((folder_ / start_).c_str()) == 0) ::execv(program.c_str(), argv.data());
  ::_exit(99);
}

Ending GalaProgram::wait_for(pid_t process) const {
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      ADD_FAILURE() << "the program did not end";
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Ending ending;
  if (WIFEXITED(status)) ending.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  ending.out = read_file(folder_.parent_path() / "out");
  ending.err = read_file(folder_.parent_path() / "err");
  return ending;
}

std::int64_t GalaProgram::lines_in(const std::string& name) const {
  const std::string text = read_file(path(name));
  return std::count(text.begin(), text.end(), '\n');
}

bool GalaProgram::wait_until(pid_t process, const std::string& file, std::int64_t lines) const {
  siginfo_t over{};
  while (!std::filesystem::exists(path(file)) || lines_in(file) < lines) {
    if (over.si_pid != 0) return false;
    ::waitid(P_PID, static_cast<id_t>(process), &over, WEXITED | WNOHANG | WNOWAIT);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

Ending GalaProgram::run(const std::string& arguments, const std::string& environment) {
  return wait_for(start(words(arguments), environment, -1));
}

Ending GalaProgram::run_on_terminal(const std::string& arguments, const std::string& environment) {
  int ours = -1, theirs = -1;
  if (::openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0) {
    ADD_FAILURE() << "no terminal could be made";
    return {};
  }
  const pid_t process = start(words(arguments), environment, theirs);
  ::close(theirs);
  std::string shown;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ours, buffer, sizeof buffer)) > 0;) {
    shown.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ours);
  Ending ending = wait_for(process);
  ending.err = shown;
  return ending;
}

Ending GalaProgram::run_until(const std::string& file, int signal, const std::string& arguments) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::filesystem::remove(path(file));
    const pid_t process = start(words(arguments), "", -1);
    wait_until(process, file);
    ::kill(process, signal);
    const Ending ending = wait_for(process);
    if (ending.code != 0) return ending;
  }
  ADD_FAILURE() << "every run was over before it could be stopped";
  return {};
}

void GalaProgram::start_in(const std::string& name) {
  std::filesystem::create_directories(path(name));
  start_ = name;
}

std::string GalaProgram::read(const std::string& name) const {
  EXPECT_TRUE(std::filesystem::is_regular_file(path(name))) << name;
  return read_file(path(name));
}

void GalaProgram::write(const std::string& name, const std::string& content) const {
  std::filesystem::create_directories(path(name).parent_path());
  std::ofstream(path(name), std::ios::binary) << content;
}

std::vector<nlohmann::ordered_json> GalaProgram::read_json_lines(const std::string& name) const {
  std::vector<nlohmann::ordered_json> objects;
  for (const std::string& line : lines_of(read(name))) {
    objects.push_back(nlohmann::ordered_json::parse(line));
  }
  return objects;
}

std::map<std::string, std::string> GalaProgram::listing() const {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    std::error_code loop;  // a link may lead to itself
    files[entry.path().string()] = entry.is_regular_file(loop) ? read_file(entry.path()) : "";
  }
  return files;
}

void GalaProgram::write_pictures(const std::string& name, std::int64_t count,
                                 std::uint64_t seed) const {
  write_array(path(name), "|u1", {count, kSide, kSide, 3}, noise(count * kPixels, seed));
}

void GalaProgram::write_planes(const std::string& name, std::int64_t count,
                               std::int64_t broken) const {
  std::vector<float> values;
  for (const std::uint8_t byte : noise(count * kPixels, 3)) values.push_back(byte / 255.0F);
  if (broken >= 0) {
    values.at(static_cast<std::size_t>(broken * kPixels)) = std::numeric_limits<float>::quiet_NaN();
  }
  write_array(path(name), "<f4", {count, 3, kSide, kSide}, values);
}

void GalaProgram::write_labels(const std::string& name, std::int64_t count,
                               std::int64_t classes) const {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(i % classes);
  write_array(path(name), "<i8", {count}, labels);
}

void GalaProgram::write_png(const std::string& name, std::uint64_t seed) const {
  std::filesystem::create_directories(path(name).parent_path());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
  image.format = PNG_FORMAT_RGB;
  ASSERT_TRUE(png_image_write_to_file(&image, path(name).c_str(), 0, noise(kPixels, seed).data(), 0,
                                      nullptr));
}

void GalaProgram::write_source_weights() {
  write_pictures("one.npy", 1);
  const Ending ending =
      run("adapt --model wide_resnet:depth=10,width=1 --data arrays:images=one.npy --select none "
          "--save-weights source.safetensors");
  ASSERT_EQ(ending.code, 0) << ending.err;
  std::filesystem::remove(path("one.npy"));
}

}  // namespace gala::test
