#include "gala/protocol/method.h"

#include <algorithm>

#include "gala/adapt/fit.h"
#include "gala/method/method_parts.h"
#include "gala/method/recipe.h"
#include "gala/step/guard.h"

namespace gala {
namespace {

/// What a run in which nothing moves still depends on.
constexpr std::string_view kMattersWhenIdle[] = {"select", "norm",  "readout",
                                                 "store",  "guard", "seed"};

/// What the plan asks for, over what the protocol prescribes.
MethodOptions requested(const RunRequest& request, const RunDefaults& defaults) {
  MethodOptions options = defaults.method;
  if (!request.recipe.empty()) apply(find_recipe(request.recipe), options);
  for (const auto& [name, text] : request.method) set_option(options, name, text);
  return options;
}

/// The same with what does not matter at its default.
MethodOptions when_idle(const MethodOptions& requested, const RunDefaults& defaults) {
  MethodOptions options = defaults.method;
  options.partition.reset();
  MethodOptions::visit([&]<class T>(const char* name, T MethodOptions::*member, const char*) {
    if (std::find(std::begin(kMattersWhenIdle), std::end(kMattersWhenIdle), name) !=
        std::end(kMattersWhenIdle)) {
      options.*member = requested.*member;
    }
  });
  return options;
}

}  // namespace

Method decide_method(const RunRequest& request, const RunDefaults& defaults, Model& network) {
  Method method;
  MethodOptions& options = method.options = requested(request, defaults);
  method.idle = make_selector(options.select, static_cast<std::uint64_t>(options.seed))->idle();
  if (method.idle) options = when_idle(options, defaults);
  options = written_out(std::move(options));
  Guard(options.guard, network.classes());
  MethodParts parts;
  make_parts(options, parts);
  // A plan names them once for all of its rows.
  if (!parts.wants_source_images()) options.source_data.clear();
  const Fit found = fit(network, options, parts, !options.source_data.empty());
  options.partition = found.granularity;
  options.head = found.head ? HeadRule::kAdapt : HeadRule::kFreeze;
  return method;
}

}  // namespace gala
