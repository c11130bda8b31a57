#pragma once
#include <compare>
#include <map>
#include <string>

namespace gala {

/// The order of a plan's rows as far as records tell it: as they first appear, but rows that differ in
/// a number alone by that number, since runs that are made at once are recorded as they end. Plain
/// numbers come before words.
class RowOrder {
 public:
  struct Rank {
    std::size_t stem;  ///< of the name without its number
    double number;
    auto operator<=>(const Rank&) const = default;
  };
  /// Names must be asked for in the order in which they appear.
  Rank rank(const std::string& name);

 private:
  std::map<std::string, std::size_t> stems_ = {{"", 0}};
};

}  // namespace gala
