#pragma once
#include <map>
#include <span>
#include <string>

#include "gala/base/toml.h"
#include "gala/train/plan.h"

namespace gala {

/// "line 12: ", or nothing for what was put in from outside or from a parameter.
std::string place_of(const toml::node& node);
/// A value as text for messages, cut when it is long.
std::string shown(const toml::node& node);

/// Works the settings into a plan and puts the parameters' values where the plan names them. Returns
/// the parameters and the keys that were set with their values: the file and these give the plan.
std::map<std::string, std::string> fill_in_parameters(toml::table& plan,
                                                      std::span<const PlanSetting> settings,
                                                      Problems& problems);

}  // namespace gala
