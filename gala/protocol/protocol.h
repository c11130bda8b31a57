#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/data/dataset.h"
#include "gala/method/method_options.h"
#include "gala/protocol/record.h"

namespace gala {

/// The data of one run, opened.
struct TestBed {
  Spec protocol;                       ///< what is run, every option written out, no folders
  Spec data;                           ///< the same of what is adapted to
  DataSource target;                   ///< adapted to and scored
  std::optional<DataSource> held_out;  ///< of the target: scored after adaptation
  std::optional<DataSource> source;    ///< hold-outs of the source, a domain each
  bool augmented = false;              ///< the hold-outs are varied as in training
  bool validates = false;              ///< adapt to each hold-out too, from the source anew
  std::string dataset;                 ///< "PACS"
  std::string environment;             ///< the target's name; empty where there are several
  std::int64_t trial = 0;

  /// SHA-256 over everything that is read.
  std::string hash() const;
};

/// What a protocol prescribes where a plan is silent.
struct RunDefaults {
  std::string stream;
  std::int64_t batch_size = 0;
  MethodOptions method;
};

/// How a benchmark is run: which images are answered, and what else is scored around them.
class Protocol {
 public:
  static constexpr std::string_view kKind = "protocol";
  virtual ~Protocol() = default;

  virtual RunDefaults defaults() const = 0;
  /// Throws ConfigError when data is missing or does not fit.
  virtual TestBed open() const = 0;
};

std::span<const RegistryEntry<Protocol>> protocol_registry();
std::unique_ptr<Protocol> make_protocol(const Spec& spec);

/// The options of a protocol that name folders: those that its options struct lists as `kPaths`.
/// Empty for a protocol that is not known.
std::span<const std::string_view> protocol_paths(std::string_view protocol);

/// Keeps the first `images` of every domain; 0 keeps all.
void limit_images(DataSource& source, std::int64_t images);

}  // namespace gala
