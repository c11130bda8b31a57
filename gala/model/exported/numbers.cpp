#include "gala/model/exported/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gala/base/error.h"

namespace gala::exported {
namespace {

using Inputs = std::span<const c10::IValue>;

bool are_whole(Inputs inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const c10::IValue& value) { return value.isInt() || value.isBool(); });
}

std::int64_t whole(const c10::IValue& value) {
  return value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
}

double real(const c10::IValue& value) {
  return value.isDouble() ? value.toDouble() : static_cast<double>(whole(value));
}

bool truth(const c10::IValue& value) {
  return value.isBool() ? value.toBool() : real(value) != 0;
}

std::int64_t as_whole(double value) {
  constexpr double kLimit = 9.2e18;
  if (!(std::abs(value) < kLimit)) fail("a size came out as {}", value);
  return static_cast<std::int64_t>(value);
}

template <class Whole, class Real>
c10::IValue either(Inputs inputs, const Whole& on_whole, const Real& on_real) {
  if (!are_whole(inputs)) return on_real(real(inputs[0]), real(inputs[1]));
  std::int64_t result = 0;
  if (!on_whole(whole(inputs[0]), whole(inputs[1]), result)) {
    fail("a size came out as more than 64 bits hold, or was divided by zero");
  }
  return result;
}

c10::IValue add(Inputs inputs) {
  return either(
      inputs, [](auto a, auto b, auto& c) { return !__builtin_add_overflow(a, b, &c); },
      [](double a, double b) { return a + b; });
}
c10::IValue subtract(Inputs inputs) {
  return either(
      inputs, [](auto a, auto b, auto& c) { return !__builtin_sub_overflow(a, b, &c); },
      [](double a, double b) { return a - b; });
}
c10::IValue multiply(Inputs inputs) {
  return either(
      inputs, [](auto a, auto b, auto& c) { return !__builtin_mul_overflow(a, b, &c); },
      [](double a, double b) { return a * b; });
}

bool can_divide(std::int64_t a, std::int64_t b) {
  return b != 0 && !(b == -1 && a == std::numeric_limits<std::int64_t>::min());
}

/// Towards minus infinity, as Python rounds.
c10::IValue floor_divide(Inputs inputs) {
  return either(
      inputs,
      [](std::int64_t a, std::int64_t b, std::int64_t& c) {
        if (!can_divide(a, b)) return false;
        c = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
        return true;
      },
      [](double a, double b) { return std::floor(a / b); });
}
/// With the sign of the divisor.
c10::IValue modulo(Inputs inputs) {
  return either(
      inputs,
      [](std::int64_t a, std::int64_t b, std::int64_t& c) {
        if (!can_divide(a, b)) return false;
        c = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        return true;
      },
      [](double a, double b) { return a - b * std::floor(a / b); });
}
c10::IValue power(Inputs inputs) {
  const double result = std::pow(real(inputs[0]), real(inputs[1]));
  if (are_whole(inputs) && whole(inputs[1]) >= 0) return as_whole(result);
  return result;
}
c10::IValue divide(Inputs inputs) {
  return real(inputs[0]) / real(inputs[1]);
}
c10::IValue negative(Inputs inputs) {
  if (are_whole(inputs)) return subtract(std::array<c10::IValue, 2>{std::int64_t{0}, inputs[0]});
  return -real(inputs[0]);
}
c10::IValue same(Inputs inputs) {
  return inputs[0];
}
c10::IValue to_whole(Inputs inputs) {
  return are_whole(inputs) ? whole(inputs[0]) : as_whole(std::trunc(real(inputs[0])));
}
c10::IValue round_down(Inputs inputs) {
  return are_whole(inputs) ? whole(inputs[0]) : as_whole(std::floor(real(inputs[0])));
}
c10::IValue round_up(Inputs inputs) {
  return are_whole(inputs) ? whole(inputs[0]) : as_whole(std::ceil(real(inputs[0])));
}
c10::IValue to_real(Inputs inputs) {
  return real(inputs[0]);
}
c10::IValue square_root(Inputs inputs) {
  return std::sqrt(real(inputs[0]));
}
c10::IValue smaller(Inputs inputs) {
  return real(inputs[1]) < real(inputs[0]) ? inputs[1] : inputs[0];
}
c10::IValue larger(Inputs inputs) {
  return real(inputs[1]) > real(inputs[0]) ? inputs[1] : inputs[0];
}
c10::IValue choose(Inputs inputs) {
  return truth(inputs[0]) ? inputs[1] : inputs[2];
}
c10::IValue is_not(Inputs inputs) {
  return !truth(inputs[0]);
}
c10::IValue both(Inputs inputs) {
  return truth(inputs[0]) && truth(inputs[1]);
}
c10::IValue any(Inputs inputs) {
  return truth(inputs[0]) || truth(inputs[1]);
}
c10::IValue equal(Inputs inputs) {
  return real(inputs[0]) == real(inputs[1]);
}
c10::IValue unequal(Inputs inputs) {
  return real(inputs[0]) != real(inputs[1]);
}
c10::IValue less(Inputs inputs) {
  return real(inputs[0]) < real(inputs[1]);
}
c10::IValue less_or_equal(Inputs inputs) {
  return real(inputs[0]) <= real(inputs[1]);
}
c10::IValue greater(Inputs inputs) {
  return real(inputs[0]) > real(inputs[1]);
}
c10::IValue greater_or_equal(Inputs inputs) {
  return real(inputs[0]) >= real(inputs[1]);
}

struct Named {
  std::string_view target;
  FoundOperation found;
};
constexpr std::array kOperations{
    Named{"_operator.add", {add, 2}},
    Named{"_operator.sub", {subtract, 2}},
    Named{"_operator.mul", {multiply, 2}},
    Named{"_operator.floordiv", {floor_divide, 2}},
    Named{"_operator.mod", {modulo, 2}},
    Named{"_operator.pow", {power, 2}},
    Named{"_operator.truediv", {divide, 2}},
    Named{"_operator.neg", {negative, 1}},
    Named{"_operator.pos", {same, 1}},
    Named{"_operator.eq", {equal, 2}},
    Named{"_operator.ne", {unequal, 2}},
    Named{"_operator.lt", {less, 2}},
    Named{"_operator.le", {less_or_equal, 2}},
    Named{"_operator.gt", {greater, 2}},
    Named{"_operator.ge", {greater_or_equal, 2}},
    Named{"_operator.and_", {both, 2}},
    Named{"_operator.or_", {any, 2}},
    Named{"math.trunc", {to_whole, 1}},
    Named{"math.floor", {round_down, 1}},
    Named{"math.ceil", {round_up, 1}},
    Named{"torch.sym_int", {to_whole, 1}},
    Named{"torch.sym_float", {to_real, 1}},
    Named{"torch.sym_sqrt", {square_root, 1}},
    Named{"torch.sym_min", {smaller, 2}},
    Named{"torch.sym_max", {larger, 2}},
    Named{"torch.sym_not", {is_not, 1}},
    Named{"torch.sym_ite", {choose, 3}},
};

}  // namespace

FoundOperation find_number_operation(std::string_view target) {
  for (const Named& named : kOperations) {
    if (named.target == target) return named.found;
  }
  return {};
}

}  // namespace gala::exported
