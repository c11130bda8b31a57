#pragma once
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gala/model/exported/graph.h"
#include "gala/model/model.h"

namespace gala {

struct ExportedOptions {
  std::string path;
  std::int64_t classes = 0;
  template <class Visitor>
  static void visit(Visitor&& option) {
    option("path", &ExportedOptions::path, "the .pt2 file that torch.export.save wrote");
    option("classes", &ExportedOptions::classes, "what the file must have; 0: whatever it has");
  }
};

/// Any classifier that `torch.export.save` wrote, run operator by operator through LibTorch's dispatcher,
/// with gradients. The weights come with the file; preprocessing and class names with its extra file
/// `gala.json`, where it has one (tools/export_model.py writes it).
///
/// Batch normalisation is ours, with all norm modes; layer and group normalisation stay as they are.
/// Parameters that no operator reads are left out, and of the buffers only running statistics are
/// `buffers()`: the others are constants. The head is the last linear layer, and the features are what it
/// sees. A parameter's kind is that of the operator that first reads it, else that of the class of its
/// module; its block comes from its name (`exported::assign_blocks`).
class ExportedModel : public Model {
 public:
  using Options = ExportedOptions;
  /// Throws ConfigError and FormatError. The network has answered once when it is made.
  explicit ExportedModel(const Options& options);

  /// Throws ConfigError for images of a size, or a batch, that the export does not take.
  Output forward(const at::Tensor& images, bool update_statistics = true) override;
  Output forward_counted(const at::Tensor& images, const at::Tensor& counted) override;
  void to(at::Device device) override;

  bool brings_weights() const override { return true; }
  std::vector<std::string> notes() const override;
  bool is_passive(std::string_view name) const override;

 private:
  ExportedModel(const Options& options, const exported::Archive& archive);
  ExportedModel(const Options& options, const exported::Archive& archive, exported::Graph graph);

  void take_tensors(const exported::Archive& archive);
  void make_norms();
  void take_metadata(const exported::Archive& archive);
  void try_out(const exported::Archive& archive);
  void check_size(const at::Tensor& images) const;
  Output run(const at::Tensor& images, const NormPass& pass);

  exported::Graph graph_;
  std::vector<std::pair<exported::Place, Parameter*>> parameter_places_;
  std::vector<std::pair<exported::Place, Buffer*>> buffer_places_;
  std::vector<std::pair<exported::Place, at::Tensor>> constants_;
  std::deque<Parameter> fixed_;  ///< scales and shifts of norms that have none: one and zero
  std::vector<BatchNorm> norms_;
  std::set<std::string, std::less<>> passive_;
  bool says_preprocessing_ = false;
};

}  // namespace gala
