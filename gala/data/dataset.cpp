#include "gala/data/dataset.h"

#include <limits>

#include "gala/base/interrupt.h"
#include "gala/data/array_dataset.h"
#include "gala/data/cifar.h"
#include "gala/data/class_map.h"
#include "gala/data/corrupted.h"
#include "gala/data/data_paths.h"
#include "gala/data/domainbed.h"
#include "gala/data/idx.h"
#include "gala/data/image_folder.h"
#include "gala/data/imagenet.h"
#include "gala/data/tiny_imagenet.h"

namespace gala {
namespace {

/// The spec of these options. Those that came later, which a struct lists as `kQuiet`, are left out
/// where they have their defaults: what was called by a spec before is still called so.
template <class Options>
Spec written_out(const std::string& name, const Options& options) {
  Spec spec = options_to_spec(name, options);
  if constexpr (requires { Options::kQuiet; }) {
    const Spec defaults = options_to_spec(name, Options{});
    for (const std::string_view key : Options::kQuiet) {
      if (*spec.find(key) != *defaults.find(key)) continue;
      std::erase_if(spec.options, [&](const auto& option) { return option.first == key; });
    }
  }
  return spec;
}

/// The registry line of a data set, and those of its options that name files or folders.
struct DataLine {
  RegistryEntry<DataSource> entry;
  std::span<const std::string_view> paths;
};

/// The line of an options struct and the function that opens its domains.
template <class Options, std::vector<Domain> (*open)(const Options&)>
constexpr DataLine data_entry(std::string_view name, std::string_view summary) {
  return {{name, summary,
           [](const Spec& spec) {
             const Options options = parse_options<Options>(spec, DataSource::kKind);
             auto source = std::make_unique<DataSource>(
                 DataSource{written_out(spec.name, options), open(options)});
             if constexpr (requires { options.by_name(); }) source->by_name = options.by_name();
             return source;
           },
           &describe_options<Options>},
          Options::kPaths};
}

constexpr auto kLines = std::to_array<DataLine>({
    data_entry<ArraysOptions, open_arrays>(
        "arrays", "NumPy arrays: uint8 N x H x W x C (C is 1 or 3), or floats N x C x H x W"),
    data_entry<FolderOptions, open_folder>(
        "folder", "a folder of JPEG and PNG files, one folder a class, or without classes"),
    data_entry<CifarOptions, open_cifar10>("cifar10", "CIFAR-10"),
    data_entry<CifarOptions, open_cifar100>("cifar100", "CIFAR-100, fine labels"),
    data_entry<CorruptedCifarOptions, open_cifar10c>(
        "cifar10c", "CIFAR-10 under corruptions: the published arrays, or made on the fly"),
    data_entry<CorruptedCifarOptions, open_cifar100c>(
        "cifar100c", "CIFAR-100 under corruptions: the published arrays, or made on the fly"),
    data_entry<ImageNetOptions, open_imagenet>(
        "imagenet", "ImageNet's 1,000 classes, cropped to 224 x 224, in order of the files' names"),
    data_entry<CorruptedImageNetOptions, open_imagenetc>(
        "imagenetc", "ImageNet under corruptions: the published folders, or made on the fly"),
    data_entry<MnistOptions, open_mnist>("mnist", "MNIST"),
    data_entry<FashionMnistOptions, open_fashion_mnist>("fashion_mnist", "Fashion-MNIST"),
    data_entry<TinyImageNetOptions, open_tiny_imagenet>("tiny_imagenet",
                                                        "Tiny ImageNet, 200 classes"),
    data_entry<DomainBedOptions, open_domainbed>(
        "domainbed", "PACS, VLCS, OfficeHome, TerraIncognita with DomainBed's splits"),
});

constexpr auto kDataSets = [] {
  std::array<RegistryEntry<DataSource>, kLines.size()> entries{};
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = kLines[i].entry;
  return entries;
}();

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {
  set_classes(whole_->classes(), whole_->class_names());
}

std::int64_t DataSource::classes() const {
  std::int64_t classes = 0;
  for (const Domain& domain : domains) classes = std::max(classes, domain.data->classes());
  return classes;
}

const std::vector<std::string>& DataSource::class_names() const {
  const Domain* richest = &domains.front();
  for (const Domain& domain : domains) {
    if (domain.data->class_names().size() > richest->data->class_names().size()) richest = &domain;
  }
  return richest->data->class_names();
}

std::vector<std::string> DataSource::notes() const {
  std::vector<std::string> all;
  for (const Domain& domain : domains) {
    all.insert(all.end(), domain.notes.begin(), domain.notes.end());
  }
  return all;
}

std::span<const RegistryEntry<DataSource>> data_registry() {
  return kDataSets;
}

std::span<const std::string_view> data_paths(std::string_view set) {
  for (const DataLine& line : kLines) {
    if (line.entry.name == set) return line.paths;
  }
  return {};
}

DataSource open_data(const Spec& spec, std::span<const std::string> known_classes) {
  DataSource source = std::move(*make_from_registry(data_registry(), spec));
  for (const Domain& domain : source.domains) {
    if (domain.data->size() == 0) {
      fail<ConfigError>("{}: {} holds no pictures", source.spec.to_string(), domain.name);
    }
  }
  if (source.domains.empty()) fail<ConfigError>("{}: holds no domains", source.spec.to_string());
  if (source.by_name) number_classes(source, known_classes);
  return source;
}

std::string content_hash(const DataSource& source) {
  Sha256 hash;
  for (const Domain& domain : source.domains) {
    // The only domain's name is often that of its folder, and says where the data lies.
    if (source.domains.size() > 1) hash.update(fmt::format("domain {}\n", domain.name));
    for (std::int64_t i = 0; i < domain.data->size(); ++i) {
      if (interrupted()) throw Interrupted("stopped while hashing the data");
      hash.update(fmt::format("label {}\n", domain.data->label(i)));
      domain.data->hash_item(i, hash);
    }
  }
  return hash.hex();
}

void check_labels(std::span<const std::int64_t> labels, std::int64_t count,
                  const std::string& path) {
  if (static_cast<std::int64_t>(labels.size()) != count) {
    fail<ConfigError>("{}: {} labels for {} pictures", path, labels.size(), count);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] > std::numeric_limits<std::int32_t>::max()) {
      fail<ConfigError>("{}: label {} at row {} is out of range (expected 0 to 2147483647)", path,
                        labels[i], i);
    }
  }
}

}  // namespace gala
