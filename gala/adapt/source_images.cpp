#include "gala/adapt/source_images.h"

#include <memory>

#include "gala/data/loader.h"

namespace gala {
namespace {

/// What a loader needs while it loads.
struct Opened {
  DataSource source;
  Stream stream;
  Loader loader;

  Opened(const std::string& spec, const Model& model, const LoaderOptions& options)
      : source(open_data(Spec::parse(spec), model.class_names())),
        stream(make_stream(default_stream(source), source, /*seed=*/0)),
        loader(stream, model.preprocessing(), options) {}
};

}  // namespace

SourceImages open_source_images(const std::string& spec, const Model& model,
                                std::int64_t batch_size) {
  if (spec.empty()) return {};
  LoaderOptions options;
  options.batch_size = batch_size;
  options.device = model.device();
  const auto opened = std::make_shared<Opened>(spec, model, options);
  return [opened] {
    const std::optional<Batch> batch = opened->loader.next();
    return batch ? batch->images : at::Tensor{};
  };
}

}  // namespace gala
