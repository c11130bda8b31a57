#include "gala/report/published.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "gala/base/error.h"

namespace gala {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    fields.emplace_back(line.substr(begin, comma - begin));
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

double to_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail("published.csv: {} is not a number", text);
  }
  return value;
}

std::vector<PublishedNumber> parse(std::string_view text) {
  std::vector<PublishedNumber> numbers;
  bool heading = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (std::exchange(heading, false)) continue;
    const std::vector<std::string> fields = split(line);
    if (fields.size() != 8) fail("published.csv: a line has {} fields", fields.size());
    PublishedNumber number{
        fields[0],   fields[1], fields[2], fields[3], fields[4], fields[5], to_number(fields[6]),
        std::nullopt};
    if (!fields[7].empty()) number.deviation = to_number(fields[7]);
    numbers.push_back(std::move(number));
  }
  return numbers;
}

}  // namespace

const std::vector<PublishedNumber>& published_numbers() {
  static const std::vector<PublishedNumber> numbers = parse(published_text());
  return numbers;
}

std::optional<PublishedNumber> find_published(std::string_view table, std::string_view backbone,
                                              std::string_view loss, std::string_view group,
                                              std::string_view row, std::string_view column) {
  const auto same = [](const std::string& a, std::string_view b) {
    return plain_name(a) == plain_name(b);
  };
  for (const PublishedNumber& number : published_numbers()) {
    if (number.table == table && same(number.row, row) && same(number.column, column) &&
        same(number.backbone, backbone) && same(number.loss, loss) && same(number.group, group)) {
      return number;
    }
  }
  return std::nullopt;
}

std::string plain_name(std::string_view name) {
  if (name == "∞") return "inf";
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    // A point tells 0.5 from 05; a minus sign 1e-3 from 1e3.
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.') plain += c;
  }
  for (const char* never : {"never", "infinite", "infinity"}) {
    if (plain == never) return "inf";
  }
  return plain.empty() ? std::string(name) : plain;
}

std::string loss_name(std::string_view loss) {
  if (loss == "pseudo_label") return "PL";
  if (loss == "shot") return "SHOT";
  return std::string(loss);
}

}  // namespace gala
