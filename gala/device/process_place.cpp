#include "gala/device/process_place.h"

#include <cstdlib>

#include "gala/base/error.h"
#include "gala/base/options.h"

namespace gala {
namespace {

std::optional<std::string> text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_of(const Environment& environment, const char* name,
                                      std::int64_t least, std::int64_t most) {
  const auto text = text_of(environment, name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  if (!parse_value(*text, number) || number < least || number > most) {
    fail<ConfigError>("{} cannot be \"{}\" (expected {} to {})", name, *text, least, most);
  }
  return number;
}

/// Each process holds a connection to every other.
constexpr std::int64_t kMostProcesses = 1024;

}  // namespace

std::string ProcessPlace::name() const {
  return fmt::format("rank {} of {}", rank, size);
}

const char* of_process(const char* name) {
  return std::getenv(name);
}

std::optional<ProcessPlace> find_place(const Environment& environment) {
  const auto size = number_of(environment, "WORLD_SIZE", 1, kMostProcesses);
  const auto rank = number_of(environment, "RANK", 0, kMostProcesses - 1);
  if (!size && !rank) return std::nullopt;
  if (!rank) fail<ConfigError>("WORLD_SIZE is {}, but RANK is not set", *size);
  if (!size) fail<ConfigError>("RANK is {}, but WORLD_SIZE is not set", *rank);
  if (*rank >= *size) {
    fail<ConfigError>("RANK cannot be {} where WORLD_SIZE is {} (expected 0 to {})", *rank, *size,
                      *size - 1);
  }
  if (*size == 1) return std::nullopt;
  ProcessPlace place;
  place.rank = static_cast<int>(*rank);
  place.size = static_cast<int>(*size);
  if (const auto local = number_of(environment, "LOCAL_RANK", 0, *size - 1)) {
    place.local_rank = static_cast<int>(*local);
  }
  place.local_size =
      static_cast<int>(number_of(environment, "LOCAL_WORLD_SIZE", 1, *size).value_or(1));
  const auto host = text_of(environment, "MASTER_ADDR");
  const auto port = number_of(environment, "MASTER_PORT", 1, 65535);
  if (!host || !port) {
    fail<ConfigError>("WORLD_SIZE is {}, but {} is not set: where rank 0 can be reached", *size,
                      host ? "MASTER_PORT" : "MASTER_ADDR");
  }
  place.host = *host;
  place.port = static_cast<std::uint16_t>(*port);
  place.agent_listens = text_of(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.attempt = text_of(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0");
  return place;
}

}  // namespace gala
