#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/hash.h"
#include "gala/base/registry.h"
#include "gala/data/image.h"

namespace gala {

/// Numbered pictures, with labels or without. Everything is const and thread safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual std::int64_t size() const = 0;
  /// 0, 1, ...; -1 when unknown.
  virtual std::int64_t label(std::int64_t index) const = 0;
  /// Throws FormatError, naming the file, when it cannot be read.
  virtual void read(std::int64_t index, Image& into) const = 0;
  /// The file's path, or the array's path and the row: "test_batch.bin[17]".
  virtual std::string item_name(std::int64_t index) const = 0;
  /// True when each item is a file of its own, and `item_name` its path.
  virtual bool in_files() const { return false; }
  /// Height and width when the pictures are float planes, which are taken as they are; else zeros.
  virtual std::array<std::int64_t, 2> plane_size() const { return {0, 0}; }
  /// Feeds what the item holds, but not where it lies: its name below the set's folder and its
  /// bytes.
  virtual void hash_item(std::int64_t index, Sha256& hash) const = 0;

  bool labelled() const { return classes_ > 0; }
  /// Names of the classes, or empty.
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// How many classes there are: the names, or else the largest label + 1; 0 without labels.
  std::int64_t classes() const { return classes_; }

 protected:
  Dataset() = default;
  void set_classes(std::int64_t classes, std::vector<std::string> names) {
    classes_ = classes;
    class_names_ = std::move(names);
  }

 private:
  std::int64_t classes_ = 0;
  std::vector<std::string> class_names_;
};

/// Some items of another set, in the given order.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(inner(index)); }
  void read(std::int64_t index, Image& into) const override { whole_->read(inner(index), into); }
  std::string item_name(std::int64_t index) const override {
    return whole_->item_name(inner(index));
  }
  bool in_files() const override { return whole_->in_files(); }
  std::array<std::int64_t, 2> plane_size() const override { return whole_->plane_size(); }
  void hash_item(std::int64_t index, Sha256& hash) const override {
    whole_->hash_item(inner(index), hash);
  }

 private:
  std::int64_t inner(std::int64_t index) const { return indices_[static_cast<std::size_t>(index)]; }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

/// A part of a data set that has one character: a corruption at one severity, an environment.
struct Domain {
  std::string name;
  std::shared_ptr<const Dataset> data;
  std::string family = {};              ///< the corruption without its severity; else empty
  int severity = 0;                     ///< 1 to 5; 0 where there is none
  std::vector<std::string> notes = {};  ///< what its user should hear, such as what was left out
};

/// What a data spec opens: one domain or more.
struct DataSource {
  static constexpr std::string_view kKind = "data set";

  Spec spec;  ///< every option written out
  std::vector<Domain> domains;
  bool by_name = false;  ///< labels stand for class names, which the weights number

  /// Of the domain with the most classes; 0 without labels.
  std::int64_t classes() const;
  const std::vector<std::string>& class_names() const;
  /// Of all domains.
  std::vector<std::string> notes() const;
};

/// The data sets that can be named in a spec.
std::span<const RegistryEntry<DataSource>> data_registry();
/// Opens what the spec names. Where its labels are to be found by class name (`folder:labels=names`),
/// `known_classes` numbers them. Throws ConfigError (an unknown name or option, a missing folder,
/// labels that do not fit, an empty set) or FormatError (a broken file).
DataSource open_data(const Spec& spec, std::span<const std::string> known_classes = {});

/// SHA-256 over domain names, item names below their folder, labels and bytes: equal for equal data
/// wherever it lies.
std::string content_hash(const DataSource& source);

/// Throws ConfigError unless each label is in 0 .. 2^31 - 1 and there are `count` of them; `path`
/// is where they come from.
void check_labels(std::span<const std::int64_t> labels, std::int64_t count,
                  const std::string& path);

}  // namespace gala
