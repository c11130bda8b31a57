#include "gala/model/torch_checkpoint.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "gala/base/error.h"
#include "gala/model/pickle.h"
#include "gala/model/raw_tensor.h"
#include "gala/model/zip_reader.h"

namespace gala {
namespace {

using Id = Pickle::Id;
using Kind = Pickle::Kind;

constexpr std::uint64_t kLargestPickle = 256u << 20;
constexpr std::array<std::string_view, 5> kStateDictKeys = {"state_dict", "model_state_dict",
                                                            "model", "net", "params"};

struct ElementType {
  std::string_view storage;
  std::string_view dtype;
  at::ScalarType type;
};
constexpr std::array<ElementType, 10> kElementTypes{{
    {"FloatStorage", "float32", at::kFloat},
    {"HalfStorage", "float16", at::kHalf},
    {"BFloat16Storage", "bfloat16", at::kBFloat16},
    {"DoubleStorage", "float64", at::kDouble},
    {"LongStorage", "int64", at::kLong},
    {"IntStorage", "int32", at::kInt},
    {"ShortStorage", "int16", at::kShort},
    {"CharStorage", "int8", at::kChar},
    {"ByteStorage", "uint8", at::kByte},
    {"BoolStorage", "bool", at::kBool},
}};

std::string_view as_text(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size()};
}

std::string_view after_last_dot(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

class CheckpointReader {
 public:
  explicit CheckpointReader(std::shared_ptr<const FileContent> file)
      : path_(file->path()), zip_(std::move(file)) {}

  std::vector<NamedTensor> read() {
    prefix_ = find_prefix();
    check_byte_order();
    const std::string name = prefix_ + "data.pkl";
    if (zip_.entries().find(name)->second.size > kLargestPickle) {
      refuse(fmt::format("its data.pkl is larger than {} bytes", kLargestPickle));
    }
    pickle_bytes_ = zip_.read(name);
    pickle_ = read_pickle(path_, as_text(pickle_bytes_));
    const auto state_dict = find_state_dict(pickle_.root, 0);
    if (!state_dict) refuse_without_state_dict();
    return read_state_dict(*state_dict);
  }

 private:
  /// The call that makes a tensor, under the wrappings of parameters and subclasses.
  struct TensorCall {
    std::string function;
    std::span<const Id> arguments;
  };

  [[noreturn]] void refuse(const std::string& problem) const { throw FormatError(path_, problem); }
  [[noreturn]] void refuse_tensor(std::string_view name, const std::string& problem) const {
    refuse(fmt::format("tensor \"{}\": {}", name, problem));
  }

  std::string find_prefix() const;
  void check_byte_order() const;
  bool is_tensor(Id id) const;
  std::optional<Id> find_state_dict(Id id, int depth) const;
  [[noreturn]] void refuse_without_state_dict() const;
  std::vector<NamedTensor> read_state_dict(Id id);
  TensorCall find_call(std::string_view name, Id id) const;
  std::vector<std::int64_t> whole_numbers(std::string_view name, Id id) const;
  at::ScalarType element_type(std::string_view name, const TensorCall& call,
                              Id storage_class) const;
  at::Tensor read_tensor(std::string_view name, Id id);
  /// Refuses a tensor that leaves its storage of `stored` elements.
  void check_extent(std::string_view name, const std::vector<std::int64_t>& sizes,
                    const std::vector<std::int64_t>& strides, std::int64_t offset,
                    std::int64_t stored, at::ScalarType type);
  Blob read_storage(std::string_view name, Id key, Id elements, std::int64_t element_size);

  std::string path_;
  ZipReader zip_;
  std::string prefix_;
  Blob pickle_bytes_;
  Pickle pickle_;
  std::map<std::string, Blob, std::less<>> storages_;
  // Elements of all tensors so far.
  std::int64_t repeated_ = 0;  ///< beyond those of their storages
  std::int64_t booleans_ = 0;
};

std::string CheckpointReader::find_prefix() const {
  constexpr std::string_view kName = "data.pkl";
  std::vector<std::string> prefixes;
  for (const auto& [name, entry] : zip_.entries()) {
    if (name == kName || name.ends_with("/data.pkl")) {
      prefixes.push_back(name.substr(0, name.size() - kName.size()));
    }
  }
  if (prefixes.size() != 1) {
    refuse(fmt::format("is a zip archive with {} entries data.pkl, and torch.save writes one",
                       prefixes.size()));
  }
  if (zip_.entries().contains(prefixes[0] + "constants.pkl")) {
    refuse(
        "is a TorchScript program and not a checkpoint: in PyTorch, load it with torch.jit.load "
        "and "
        "save its weights with torch.save(model.state_dict(), FILE)");
  }
  return prefixes[0];
}

void CheckpointReader::check_byte_order() const {
  const std::string name = prefix_ + "byteorder";
  const auto found = zip_.entries().find(name);
  if (found == zip_.entries().end()) return;
  constexpr std::uint64_t kLongestWord = 16;
  if (found->second.size > kLongestWord || as_text(zip_.read(name)) != "little") {
    refuse("was saved on a machine of another byte order: only little-endian files are read");
  }
}

bool CheckpointReader::is_tensor(Id id) const {
  if (pickle_[id].kind != Kind::kObject) return false;
  const std::string name = pickle_.global_name(id);
  return name.starts_with("torch.") && after_last_dot(name).starts_with("_rebuild");
}

std::optional<Id> CheckpointReader::find_state_dict(Id id, int depth) const {
  constexpr int kDeepest = 3;
  const auto entries = pickle_.entries(id);
  for (const std::string_view key : kStateDictKeys) {
    for (std::size_t i = 0; i < entries.size() && depth < kDeepest; i += 2) {
      if (pickle_[entries[i]].kind != Kind::kText || pickle_[entries[i]].text != key) continue;
      if (const auto found = find_state_dict(entries[i + 1], depth + 1)) return found;
      break;
    }
  }
  for (std::size_t i = 0; i < entries.size(); i += 2) {
    if (pickle_[entries[i]].kind == Kind::kText && is_tensor(entries[i + 1])) return id;
  }
  return std::nullopt;
}

void CheckpointReader::refuse_without_state_dict() const {
  const auto refuse_object = [&](Id id) {
    if (pickle_[id].kind != Kind::kObject || is_tensor(id)) return;
    refuse(
        fmt::format("holds a whole pickled object ({:.200}) and not its weights: nothing in a file "
                    "is executed here. In PyTorch, save torch.save(model.state_dict(), FILE)",
                    pickle_.global_name(id)));
  };
  refuse_object(pickle_.root);
  const auto entries = pickle_.entries(pickle_.root);
  for (std::size_t i = 0; i < entries.size(); i += 2) {
    const auto& key = pickle_[entries[i]];
    if (key.kind == Kind::kText &&
        std::find(kStateDictKeys.begin(), kStateDictKeys.end(), key.text) != kStateDictKeys.end()) {
      refuse_object(entries[i + 1]);
    }
  }
  refuse(fmt::format("holds no dictionary of tensors, neither as a whole nor under {}",
                     fmt::join(kStateDictKeys, ", ")));
}

std::vector<NamedTensor> CheckpointReader::read_state_dict(Id id) {
  const auto entries = pickle_.entries(id);
  std::vector<NamedTensor> tensors;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < entries.size(); i += 2) {
    const auto& key = pickle_[entries[i]];
    if (key.kind != Kind::kText || !is_tensor(entries[i + 1])) continue;
    if (!names.insert(key.text).second) refuse_tensor(key.text, "comes twice");
    tensors.push_back({std::string(key.text), read_tensor(key.text, entries[i + 1])});
  }
  constexpr std::string_view kParallelPrefix = "module.";
  if (std::all_of(names.begin(), names.end(),
                  [&](std::string_view name) { return name.starts_with(kParallelPrefix); })) {
    for (auto& item : tensors) item.name.erase(0, kParallelPrefix.size());
  }
  return tensors;
}

CheckpointReader::TensorCall CheckpointReader::find_call(std::string_view name, Id id) const {
  constexpr int kMostWrappings = 4;
  const auto arguments_of = [&](Id tuple) {
    if (pickle_[tuple].kind != Kind::kTuple) refuse_tensor(name, "its arguments are no tuple");
    return std::span<const Id>(pickle_[tuple].items);
  };
  std::string function = pickle_.global_name(id);
  auto arguments = arguments_of(pickle_[id].items[1]);
  for (int i = 0; i < kMostWrappings; ++i) {
    const auto short_name = after_last_dot(function);
    if (short_name.starts_with("_rebuild_parameter")) {
      if (arguments.empty() || !is_tensor(arguments[0])) {
        refuse_tensor(name, "is a parameter without a tensor");
      }
      function = pickle_.global_name(arguments[0]);
      arguments = arguments_of(pickle_[arguments[0]].items[1]);
    } else if (short_name == "_rebuild_from_type_v2") {
      if (arguments.size() < 3 || pickle_[arguments[0]].kind != Kind::kGlobal) {
        refuse_tensor(name, "is a tensor of a derived type that is not read");
      }
      function = pickle_.global_name(arguments[0]);
      arguments = arguments_of(arguments[2]);
    } else {
      break;
    }
  }
  return {function, arguments};
}

std::vector<std::int64_t> CheckpointReader::whole_numbers(std::string_view name, Id id) const {
  const auto* value = &pickle_[id];
  if (value->kind == Kind::kObject && pickle_.is_global(value->items[0], "torch", "Size")) {
    const auto& arguments = pickle_[value->items[1]].items;
    if (arguments.size() == 1) value = &pickle_[arguments[0]];
  }
  if (value->kind != Kind::kTuple && value->kind != Kind::kList) {
    refuse_tensor(name, "its sizes or strides are no tuple");
  }
  std::vector<std::int64_t> numbers;
  for (const Id item : value->items) {
    if (pickle_[item].kind != Kind::kInteger || pickle_[item].integer < 0) {
      refuse_tensor(name, "its sizes or strides are not whole numbers from 0");
    }
    numbers.push_back(pickle_[item].integer);
    constexpr std::size_t kMostDimensions = 64;
    if (numbers.size() > kMostDimensions) refuse_tensor(name, "has more than 64 dimensions");
  }
  return numbers;
}

at::ScalarType CheckpointReader::element_type(std::string_view name, const TensorCall& call,
                                              Id storage_class) const {
  // The third form names the element type itself, over a storage without one.
  const bool by_dtype = call.function == "torch._utils._rebuild_tensor_v3";
  if (by_dtype && call.arguments.size() < 7) refuse_tensor(name, "has no element type");
  const std::string full_name = pickle_.global_name(by_dtype ? call.arguments[6] : storage_class);
  for (const auto& known : kElementTypes) {
    if (after_last_dot(full_name) == (by_dtype ? known.dtype : known.storage)) return known.type;
  }
  refuse_tensor(name,
                fmt::format("its type {:.200} is not read (float32, float64, float16, bfloat16, "
                            "int8 to int64, uint8 and bool are)",
                            full_name));
}

at::Tensor CheckpointReader::read_tensor(std::string_view name, Id id) {
  const TensorCall call = find_call(name, id);
  if (call.function != "torch._utils._rebuild_tensor" &&
      call.function != "torch._utils._rebuild_tensor_v2" &&
      call.function != "torch._utils._rebuild_tensor_v3") {
    refuse_tensor(
        name, fmt::format("is made by {:.200}: only plain dense tensors are read", call.function));
  }
  if (call.arguments.size() < 4) refuse_tensor(name, "lacks its storage or shape");
  const bool untyped = call.function.ends_with("_v3");
  // Conjugation and negation that PyTorch has put off live here.
  const std::size_t metadata = untyped ? 7 : 6;
  if (call.arguments.size() > metadata && !pickle_.entries(call.arguments[metadata]).empty()) {
    refuse_tensor(name, "is a lazy view: save a clone of it");
  }
  const auto& storage = pickle_[call.arguments[0]];
  if (storage.kind != Kind::kPersistent) refuse_tensor(name, "has no storage");
  // ("storage", class, key, place, elements)
  const auto& reference = pickle_[storage.items[0]];
  if (reference.kind != Kind::kTuple || reference.items.size() != 5 ||
      pickle_[reference.items[0]].text != "storage") {
    refuse_tensor(name, "its storage is named in an unknown way");
  }
  const auto type = element_type(name, call, reference.items[1]);
  const auto element_size = static_cast<std::int64_t>(c10::elementSize(type));
  const Blob blob =
      read_storage(name, reference.items[2], reference.items[4], untyped ? 1 : element_size);
  const auto stored = static_cast<std::int64_t>(blob.bytes.size()) / element_size;

  const auto& offset = pickle_[call.arguments[1]];
  if (offset.kind != Kind::kInteger || offset.integer < 0) {
    refuse_tensor(name, "its offset is not a whole number from 0");
  }
  const auto sizes = whole_numbers(name, call.arguments[2]);
  const auto strides = whole_numbers(name, call.arguments[3]);
  if (sizes.size() != strides.size()) refuse_tensor(name, "has more sizes than strides, or fewer");
  if (!contiguous_strides(sizes, element_size)) refuse_tensor(name, "is too large");
  check_extent(name, sizes, strides, offset.integer, stored, type);
  return tensor_over(blob, type, sizes, strides, offset.integer);
}

void CheckpointReader::check_extent(std::string_view name, const std::vector<std::int64_t>& sizes,
                                    const std::vector<std::int64_t>& strides, std::int64_t offset,
                                    std::int64_t stored, at::ScalarType type) {
  std::int64_t count = 1, last = offset;
  bool inside = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t reach = 0;
    count *= sizes[i];
    inside = inside &&
             !__builtin_mul_overflow(std::max<std::int64_t>(sizes[i], 1) - 1, strides[i], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  if (count > 0 && (!inside || last >= stored)) {
    refuse_tensor(name, fmt::format("goes past the {} elements of its storage", stored));
  }
  // A stride of 0 repeats elements: small in the file, but not once they are copied.
  constexpr std::int64_t kMostRepeated = 1 << 24;
  repeated_ += std::max<std::int64_t>(0, count - stored);
  if (repeated_ > kMostRepeated) {
    refuse_tensor(name, fmt::format("repeats {} stored elements into {}", stored, count));
  }
  // Booleans are copied, each tensor by itself, though many may share a storage.
  constexpr std::int64_t kMostBooleans = 1 << 28;
  if (type == at::kBool && (booleans_ += count) > kMostBooleans) {
    refuse_tensor(name, fmt::format("is one of more than {} booleans", kMostBooleans));
  }
}

Blob CheckpointReader::read_storage(std::string_view name, Id key_id, Id elements_id,
                                    std::int64_t element_size) {
  const auto& key = pickle_[key_id];
  const auto& elements = pickle_[elements_id];
  std::int64_t size = 0;
  if (key.kind != Kind::kText || elements.kind != Kind::kInteger || elements.integer < 0 ||
      __builtin_mul_overflow(elements.integer, element_size, &size)) {
    refuse_tensor(name, "its storage is named in an unknown way");
  }
  const std::string entry_name = fmt::format("{}data/{}", prefix_, key.text);
  const auto entry = zip_.entries().find(entry_name);
  if (entry == zip_.entries().end()) {
    refuse_tensor(name, fmt::format("its storage {:.200} is missing", entry_name));
  }
  if (entry->second.size != static_cast<std::uint64_t>(size)) {
    refuse_tensor(
        name, fmt::format("its storage should have {} bytes and has {}", size, entry->second.size));
  }
  const auto found = storages_.find(entry_name);
  if (found != storages_.end()) return found->second;
  constexpr std::size_t kLargestElement = 8;
  return storages_[entry_name] = aligned(zip_.read(entry_name), kLargestElement);
}

}  // namespace

std::vector<NamedTensor> read_torch_checkpoint(const std::filesystem::path& path) {
  auto file = FileContent::read(path);
  const auto bytes = file->bytes();
  constexpr unsigned char kPickleStart = 0x80;
  if (!bytes.empty() && bytes[0] == kPickleStart) {
    throw FormatError(
        path.string(),
        "is a bare pickle: an old PyTorch file or a whole pickled object. Load it with "
        "a recent PyTorch and save it with torch.save(model.state_dict(), FILE)");
  }
  if (bytes.size() < 2 || bytes[0] != 'P' || bytes[1] != 'K') {
    throw FormatError(path.string(), "is not a file of torch.save (which are zip archives)");
  }
  return CheckpointReader(std::move(file)).read();
}

}  // namespace gala
