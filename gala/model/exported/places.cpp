#include "gala/model/exported/places.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace gala::exported {
namespace {

/// A numbered part of a name: "layer2" of "layer2.0.bn1", of the family "layer#".
struct Member {
  std::string family;
  std::string name;
};

/// Every numbered part, the outermost first.
std::vector<Member> members_of(const std::string& module) {
  std::vector<Member> members;
  for (std::size_t begin = 0; begin <= module.size();) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    std::size_t digits = end;
    while (digits > begin && module[digits - 1] >= '0' && module[digits - 1] <= '9') --digits;
    if (digits < end) members.push_back({module.substr(0, digits) + '#', module.substr(0, end)});
    begin = end + 1;
  }
  return members;
}

struct Family {
  std::set<std::string> members;
  std::int64_t values = 0;
};

/// Empty where nothing is numbered twice.
std::string largest_family(const std::deque<Parameter>& parameters) {
  std::map<std::string, Family> families;
  for (const Parameter& parameter : parameters) {
    if (parameter.in_head()) continue;
    for (const Member& member : members_of(parameter.module)) {
      Family& family = families[member.family];
      family.members.insert(member.name);
      family.values += parameter.value.numel();
    }
  }
  std::string best;
  std::int64_t most = 0;
  for (const auto& [name, family] : families) {
    if (family.members.size() < 2) continue;
    // Of equal ones the outermost.
    if (family.values > most || (family.values == most && name.size() < best.size())) {
      best = name;
      most = family.values;
    }
  }
  return best;
}

}  // namespace

std::string module_of_parameter(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

void assign_blocks(std::deque<Parameter>& parameters) {
  const std::string family = largest_family(parameters);
  std::map<std::string, int> blocks;
  int current = 1;
  for (Parameter& parameter : parameters) {
    if (parameter.in_head()) continue;
    for (const Member& member : members_of(parameter.module)) {
      if (member.family != family) continue;
      current = blocks.emplace(member.name, static_cast<int>(blocks.size()) + 1).first->second;
    }
    parameter.block = current;
  }
}

}  // namespace gala::exported
