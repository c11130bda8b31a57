#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gala/base/registry.h"
#include "gala/model/norm.h"
#include "gala/model/precision.h"
#include "gala/model/preprocessing.h"

namespace gala {

/// What a parameter is to its module; `kOther`: position embeddings, class tokens, scales of layers.
enum class ModuleKind { kConvolution, kNorm, kLinear, kOther };

/// A trainable tensor with its place in the network.
struct Parameter {
  std::string name;    ///< as in weight files: "layer1.0.conv1.weight"
  std::string module;  ///< the module it belongs to: "layer1.0.conv1"
  ModuleKind kind = ModuleKind::kConvolution;
  int block = 0;     ///< 1, 2, ...; the stem joins block 1; 0 for the head, which is in no block
  at::Tensor value;  ///< float32; asks for no gradient unless the tensor put here does
  int stage = 0;     ///< nothing before this stage of the network depends on it (`forward_again`)

  bool in_head() const { return block == 0; }
};

/// A tensor that is stored with the weights and not trained (running statistics).
struct Buffer {
  std::string name;
  at::Tensor value;
  at::Tensor source = {};    ///< as the source had it, for norm mode `adaptive` while it is adapted
  at::Tensor by_class = {};  ///< the same of each class, [classes, ...], for norm mode `balanced`
};

/// A tensor that norm layers may move while they answer.
struct Statistic {
  std::string name;
  at::Tensor* value = nullptr;
};

/// What a forward pass gives.
struct Output {
  at::Tensor features;  ///< [N, F], what the last linear layer sees
  at::Tensor logits;    ///< [N, classes]
  /// What each stage of the network saw; empty unless the model keeps activations.
  std::vector<at::Tensor> stage_inputs = {};
  /// With norm mode `adaptive`, how far its norm layers are from the source's statistics: the mean of their w, a
  /// float without dimensions. Else undefined.
  at::Tensor moved = {};
};

/// A classifier. Its parameters and buffers are plain tensors in named slots; putting another
/// tensor of the same shape into a slot (a leaf of the arena) makes the next forward use it.
class Model {
 public:
  static constexpr std::string_view kKind = "model";

  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Images [N, 3, H, W], float32, preprocessed. With norm mode `running` (and when training) the
  /// statistics move only where `update_statistics` is true: once a batch. With `balanced` the network is asked twice
  /// then: first, with the statistics as they are and without gradient, for the classes of the images.
  virtual Output forward(const at::Tensor& images, bool update_statistics = true) = 0;

  /// The answers to the first `counted` images as if the others were not there, and something for those: a GPU wants
  /// shapes that come again. `counted` is a number on the model's device (int64, no dimensions), which nobody
  /// waits for; undefined: all. The statistics stay.
  virtual Output forward_counted(const at::Tensor& images, const at::Tensor& counted) = 0;

  /// The output for the same images after parameters of `first_stage` and later ones moved; the
  /// statistics stay. Networks that can begin there with what `before` kept, others run whole: the
  /// logits are the same.
  virtual Output forward_again(const Output& before, const at::Tensor& images, int first_stage);

  /// In forward order. The slots do not move in memory.
  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  std::deque<Buffer>& buffers() { return buffers_; }
  const std::deque<Buffer>& buffers() const { return buffers_; }
  /// The buffers, and with norm mode `balanced` what it keeps of each class. They stay in their places.
  std::vector<Statistic> statistics();

  const NormMode& norm_mode() const { return norm_mode_; }
  /// The statistics of classes begin as the running ones are when `balanced` is set for the first time; for an
  /// adapter, when it takes the model.
  void set_norm_mode(const NormMode& mode);
  /// How many images of the stream are worth one that is drawn by itself (LabelSpread), for norm mode `adaptive`.
  void set_label_spread(double spread);

  /// The processes that train one network, each on an equal part of every batch, or null. They must outlive
  /// the passes.
  void set_processes(ProcessGroup* processes) { processes_ = processes; }

  Precision precision() const { return precision_; }
  void set_precision(Precision precision) { precision_ = precision; }
  /// Whether outputs carry what `forward_again` begins with; it holds on to memory.
  bool keeps_activations() const { return keeps_activations_; }
  void keep_activations(bool keep) { keeps_activations_ = keep; }
  /// How maps and kernels lie in memory. Set it before an adapter or trainer takes the parameters.
  at::MemoryFormat memory_format() const { return memory_format_; }
  void set_memory_format(at::MemoryFormat format);

  const Preprocessing& preprocessing() const { return preprocessing_; }
  void set_preprocessing(Preprocessing preprocessing) { preprocessing_ = std::move(preprocessing); }
  /// Names of the classes, or empty.
  const std::vector<std::string>& class_names() const { return class_names_; }
  void set_class_names(std::vector<std::string> names) { class_names_ = std::move(names); }

  /// Held by an adapter, which puts parameters of its own into the slots: there can be one at a time, and
  /// nobody moves the model meanwhile. Throws Error where there is one already. When it ends, norm mode,
  /// activations and the statistics of classes are as they were, and no parameter takes a gradient; the values
  /// are the borrower's to put back.
  class Loan {
   public:
    explicit Loan(Model& model);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    const NormMode& norm_mode_before() const { return norm_mode_; }

   private:
    Model& model_;
    NormMode norm_mode_;
    bool keeps_activations_;
    std::vector<at::Tensor> by_class_;  ///< of each buffer, until the model has them back
  };

  /// True when the network was made with values that mean something: they came with its file.
  virtual bool brings_weights() const { return false; }
  /// What a user should know of how the network was made; mostly nothing.
  virtual std::vector<std::string> notes() const { return {}; }
  /// True for a tensor that weight files of this network may hold and that is not taken from them.
  virtual bool is_passive(std::string_view name) const;

  std::int64_t classes() const { return classes_; }
  /// The spec this network was made from, every option written out.
  const Spec& spec() const { return spec_; }

  /// The device of its tensors.
  at::Device device() const;
  /// Moves every parameter and buffer.
  virtual void to(at::Device device);
  /// Draws every parameter anew (convolutions He-normal by fan-out, norms one and zero, linear
  /// layers uniform by fan-in) and resets the running statistics, all of them in place. Equal seeds
  /// give equal values on every machine and with any number of threads. Not for a network that brings its
  /// weights, whose layers may be of any kind.
  void initialize(std::uint64_t seed);

 protected:
  /// Throws ConfigError for fewer than two classes. The derived class fills the slots.
  Model(Spec spec, std::int64_t classes, Preprocessing default_preprocessing);

  /// Throws Error unless the images are [N, 3, H, W] with N, H and W above 0.
  void check_images(const at::Tensor& images) const;
  void check_norm_epsilon(double epsilon) const;
  /// What norm layers must know of a pass over these images.
  NormPass norm_pass(const at::Tensor& images, bool update_statistics,
                     const at::Tensor& counted = {});
  /// What norm layers left in a pass, for Output::moved.
  static at::Tensor moved_in(const NormPass& pass);

  std::deque<Parameter> parameters_;
  std::deque<Buffer> buffers_;
  NormMode norm_mode_;

 private:
  Spec spec_;
  std::int64_t classes_;
  Preprocessing preprocessing_;
  std::vector<std::string> class_names_;
  at::Tensor label_spread_;  ///< float, no dimensions, on the device; undefined: 1
  Precision precision_ = Precision::kFloat32;
  at::MemoryFormat memory_format_ = at::MemoryFormat::Contiguous;
  bool keeps_activations_ = false;
  bool lent_ = false;
  ProcessGroup* processes_ = nullptr;

  void check_not_lent() const;
  at::Tensor seeming_classes(const at::Tensor& images);
};

/// The networks that can be named in a spec.
std::span<const RegistryEntry<Model>> model_registry();
/// Makes a network on the CPU, initialised from `seed` unless it brings its weights, with its default
/// preprocessing.
std::unique_ptr<Model> make_model(const Spec& spec, std::uint64_t seed = 0);

}  // namespace gala
