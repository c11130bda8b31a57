#pragma once
// What nearly every source file that uses LibTorch needs; see docs/architecture.md on build time.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>
