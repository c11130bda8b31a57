#include "gala/model/weight_match.h"

#include <algorithm>
#include <map>
#include <set>

#include "gala/base/error.h"

namespace gala {
namespace {

/// What does not fit.
struct Misfits {
  std::vector<std::string> missing, unexpected, misshapen;
  bool in_head_alone = true;         ///< all that is misshapen
  std::int64_t classes_of_head = 0;  ///< in the file, where that is seen
};

/// "12 missing: a, b, c, and 9 more".
std::string listed(std::string_view what, const std::vector<std::string>& items) {
  constexpr std::size_t kMost = 3;
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMost));
  return fmt::format(
      "{} {}: {}{}", items.size(), what, fmt::join(items.begin(), end, ", "),
      items.size() > kMost ? fmt::format(", and {} more", items.size() - kMost) : "");
}

/// Every prefix behind which the file has all names of the network.
std::vector<std::string> find_prefixes(const WeightFile& file, const Model& model) {
  std::set<std::string_view> names;
  for (const NamedTensor& item : file.tensors) names.insert(item.name);
  const std::vector<WeightSlot> slots = weight_slots(model);
  std::vector<std::string> prefixes;
  for (const std::string_view name : names) {
    const std::string& first = slots.front().name;
    if (!name.ends_with("." + first)) continue;
    const std::string prefix(name.substr(0, name.size() - first.size()));
    if (std::all_of(slots.begin(), slots.end(),
                    [&](const WeightSlot& slot) { return names.contains(prefix + slot.name); })) {
      prefixes.push_back(prefix);
    }
  }
  return prefixes;
}

/// The likely reason, behind a semicolon; mostly empty.
std::string likely_reason(const Model& model, const WeightFile& file, const Misfits& misfits) {
  const std::vector<std::string> prefixes = find_prefixes(file, model);
  if (!prefixes.empty()) {
    return fmt::format("; every name is there behind \"{}\": save a file with one of them alone",
                       fmt::join(prefixes, "\" and behind \""));
  }
  if (misfits.missing.size() == weight_slots(model).size()) {
    return fmt::format(
        "; no name is one of {}'s: is it another network? (`gala list models` shows "
        "those that are known)",
        model.spec().name);
  }
  if (misfits.missing.empty() && misfits.unexpected.empty() && misfits.in_head_alone &&
      misfits.classes_of_head > 1) {
    Spec fitting = model.spec();
    fitting.set("classes", std::to_string(misfits.classes_of_head));
    return fmt::format("; only the head differs: they would fit {}", fitting.to_string());
  }
  return "";
}

[[noreturn]] void refuse(const Model& model, const WeightFile& file, const std::string& path,
                         const Misfits& misfits) {
  std::vector<std::string> problems;
  if (!misfits.missing.empty()) problems.push_back(listed("missing", misfits.missing));
  if (!misfits.unexpected.empty()) problems.push_back(listed("unexpected", misfits.unexpected));
  if (!misfits.misshapen.empty()) {
    problems.push_back(listed("of another shape or type", misfits.misshapen));
  }
  const auto made_from = file.metadata.find("model");
  const std::string origin = made_from != file.metadata.end() && made_from->is_string()
                                 ? fmt::format(" (they are of {})", made_from->get<std::string>())
                                 : "";
  throw FormatError(
      path, fmt::format("the weights do not fit {}{}: {}{}", model.spec().to_string(), origin,
                        fmt::join(problems, "; "), likely_reason(model, file, misfits)));
}

std::set<std::string_view> head_names(const Model& model) {
  std::set<std::string_view> names;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.in_head()) names.insert(parameter.name);
  }
  return names;
}

}  // namespace

std::vector<WeightSlot> weight_slots(const Model& model) {
  std::vector<WeightSlot> all;
  for (const Parameter& parameter : model.parameters()) {
    all.push_back({parameter.name, parameter.value});
  }
  for (const Buffer& buffer : model.buffers()) all.push_back({buffer.name, buffer.value});
  return all;
}

std::string take_off_prefix(WeightFile& file, const Model& model) {
  std::set<std::string_view> known;
  const std::vector<WeightSlot> slots = weight_slots(model);
  for (const WeightSlot& slot : slots) known.insert(slot.name);
  if (std::any_of(file.tensors.begin(), file.tensors.end(),
                  [&](const NamedTensor& item) { return known.contains(item.name); })) {
    return "";
  }
  const std::vector<std::string> prefixes = find_prefixes(file, model);
  if (prefixes.size() != 1) return "";
  for (NamedTensor& item : file.tensors) {
    if (item.name.starts_with(prefixes[0])) item.name.erase(0, prefixes[0].size());
  }
  return prefixes[0];
}

std::vector<at::Tensor> match_weights(const Model& model, const WeightFile& file,
                                      const std::string& path, bool keeps_head) {
  std::map<std::string_view, at::Tensor> by_name;
  for (const NamedTensor& item : file.tensors) by_name[item.name] = item.tensor;
  const std::set<std::string_view> head = head_names(model);
  Misfits misfits;
  std::vector<at::Tensor> matched;
  std::set<std::string_view> known;
  for (const WeightSlot& slot : weight_slots(model)) {
    known.insert(slot.name);
    const auto found = by_name.find(slot.name);
    if (found == by_name.end() && keeps_head && head.contains(slot.name)) {
      matched.emplace_back();
      continue;
    }
    if (found == by_name.end()) {
      misfits.missing.push_back(slot.name);
      continue;
    }
    const at::Tensor& tensor = found->second;
    if (tensor.sizes() != slot.value.sizes() || !tensor.is_floating_point()) {
      misfits.misshapen.push_back(fmt::format(
          "{} is {} [{}] and should be Float [{}]", slot.name, c10::toString(tensor.scalar_type()),
          fmt::join(tensor.sizes(), ", "), fmt::join(slot.value.sizes(), ", ")));
      misfits.in_head_alone = misfits.in_head_alone && head.contains(slot.name) &&
                              tensor.dim() == slot.value.dim() && tensor.is_floating_point() &&
                              tensor.sizes().slice(1) == slot.value.sizes().slice(1);
      if (misfits.in_head_alone) misfits.classes_of_head = tensor.size(0);
    }
    matched.push_back(tensor);
  }
  for (const NamedTensor& item : file.tensors) {
    if (!known.contains(item.name) && !model.is_passive(item.name)) {
      misfits.unexpected.push_back(item.name);
    }
  }
  if (!misfits.missing.empty() || !misfits.unexpected.empty() || !misfits.misshapen.empty()) {
    refuse(model, file, path, misfits);
  }
  return matched;
}

}  // namespace gala
