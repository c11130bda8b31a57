#include "gala/protocol/row_order.h"

#include <cstdlib>

namespace gala {

RowOrder::Rank RowOrder::rank(const std::string& name) {
  constexpr const char* kDigits = "0123456789";
  const std::size_t begin = name.find_first_of(kDigits);
  std::string stem = name;
  double number = 0;
  if (begin != std::string::npos) {
    char* end = nullptr;
    number = std::strtod(name.c_str() + begin, &end);
    stem.erase(begin, static_cast<std::size_t>(end - name.c_str()) - begin);
  }
  return {stems_.try_emplace(stem, stems_.size()).first->second, number};
}

}  // namespace gala
