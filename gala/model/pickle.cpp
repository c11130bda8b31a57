#include "gala/model/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "gala/base/error.h"

namespace gala {
namespace {

using Id = Pickle::Id;
using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kLongestGlobal = 1000;

// Named as in Python's pickletools.
// clang-format off
enum Code : unsigned char {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2', kBinBytes = 'B',
  kShortBinBytes = 'C', kBinFloat = 'G', kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M', kNone = 'N',
  kBinPersistent = 'Q', kReduce = 'R', kBinString = 'T', kShortBinString = 'U', kBinUnicode = 'X',
  kAppend = 'a', kBuild = 'b', kGlobal = 'c', kDict = 'd', kAppends = 'e', kBinGet = 'h',
  kLongBinGet = 'j', kList = 'l', kEmptyList = ']', kBinPut = 'q', kLongBinPut = 'r',
  kSetItem = 's', kTuple = 't', kSetItems = 'u', kEmptyDict = '}', kEmptyTuple = ')', kProto = 0x80,
  kNewObject = 0x81, kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87, kNewTrue = 0x88,
  kNewFalse = 0x89, kLong1 = 0x8a, kLong4 = 0x8b, kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e, kEmptySet = 0x8f, kAddItems = 0x90, kFrozenSet = 0x91, kNewObjectEx = 0x92,
  kStackGlobal = 0x93, kMemoize = 0x94, kFrame = 0x95, kByteArray8 = 0x96
};
// clang-format on

/// The machine that a pickle is a program for, with every call recorded and none made.
class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  Pickle run() {
    other_ = add({});
    while (true) {
      const std::size_t begin = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == kStop) break;
      if (!read_scalar(code) && !read_text(code) && !read_container(code) && !read_memo(code) &&
          !read_call(code)) {
        refuse(fmt::format("code {:#04x} at byte {} is not known (protocols 2 to 5 are read)", code,
                           begin));
      }
      if (std::max({stack_.size(), marks_.size(), memo_.size()}) > kMostValues) {
        refuse("it piles up too many values");
      }
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw FormatError(path_, "its pickle is damaged: " + problem);
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) refuse("it ends too early");
    const auto part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }

  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it ends too early");
    const auto text = take(end - at_);
    take(1);
    return text;
  }

  Id add(Value value) {
    if (pickle_.values.size() >= kMostValues) {
      refuse(fmt::format("it holds more than {} values", kMostValues));
    }
    pickle_.values.push_back(std::move(value));
    return static_cast<Id>(pickle_.values.size() - 1);
  }

  void push(Value value) { stack_.push_back(add(std::move(value))); }
  void push_integer(std::int64_t value) { push({Kind::kInteger, value, {}, {}}); }
  void push_text(std::string_view text) { push({Kind::kText, 0, text, {}}); }

  /// The lowest place of the stack that may be taken: values under a mark are out of reach.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Id top() const {
    if (stack_.size() <= floor()) refuse("it takes a value where there is none");
    return stack_.back();
  }

  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }

  /// All values above the last mark, which goes too.
  std::vector<Id> pop_to_mark() {
    if (marks_.empty()) refuse("it goes back to a mark where there is none");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<Id> pop_several(std::size_t count) {
    std::vector<Id> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }

  // clang-format off
  bool read_scalar(unsigned char code) {
    switch (code) {
      case kProto: check_protocol(number<std::uint8_t>()); return true;
      case kFrame: take(8); return true;
      case kNone: case kNewTrue: case kNewFalse: stack_.push_back(other_); return true;
      case kBinFloat: take(8); stack_.push_back(other_); return true;
      case kBinInt: push_integer(number<std::int32_t>()); return true;
      case kBinInt1: push_integer(number<std::uint8_t>()); return true;
      case kBinInt2: push_integer(number<std::uint16_t>()); return true;
      case kLong1: read_long(number<std::uint8_t>()); return true;
      case kLong4: read_long(number<std::uint32_t>()); return true;
      default: return false;
    }
  }
  // clang-format on

  void check_protocol(int protocol) const {
    if (protocol < 2 || protocol > 5) {
      refuse(fmt::format("protocol {} is not read (2 to 5 are)", protocol));
    }
  }

  /// Two's complement of any length, least byte first.
  void read_long(std::uint64_t size) {
    const auto digits = take(size);
    if (size > 8) return stack_.push_back(other_);
    std::uint64_t value = size > 0 && (digits.back() & 0x80) ? ~std::uint64_t{0} : 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    push_integer(static_cast<std::int64_t>(value));
  }

  // clang-format off
  bool read_text(unsigned char code) {
    switch (code) {
      case kShortBinString: case kShortBinUnicode:
        push_text(take(number<std::uint8_t>())); return true;
      case kBinString: case kBinUnicode: push_text(take(number<std::uint32_t>())); return true;
      case kBinUnicode8: push_text(take(number<std::uint64_t>())); return true;
      case kShortBinBytes: take(number<std::uint8_t>()); break;
      case kBinBytes: take(number<std::uint32_t>()); break;
      case kBinBytes8: case kByteArray8: take(number<std::uint64_t>()); break;
      default: return false;
    }
    stack_.push_back(other_);
    return true;
  }

  bool read_container(unsigned char code) {
    switch (code) {
      case kMark: marks_.push_back(stack_.size()); return true;
      case kEmptyList: push({Kind::kList, 0, {}, {}}); return true;
      case kEmptyTuple: push({Kind::kTuple, 0, {}, {}}); return true;
      case kEmptyDict: push({Kind::kDict, 0, {}, {}}); return true;
      case kEmptySet: stack_.push_back(other_); return true;
      case kTuple: push({Kind::kTuple, 0, {}, pop_to_mark()}); return true;
      case kList: push({Kind::kList, 0, {}, pop_to_mark()}); return true;
      case kTuple1: push({Kind::kTuple, 0, {}, pop_several(1)}); return true;
      case kTuple2: push({Kind::kTuple, 0, {}, pop_several(2)}); return true;
      case kTuple3: push({Kind::kTuple, 0, {}, pop_several(3)}); return true;
      case kFrozenSet: pop_to_mark(); stack_.push_back(other_); return true;
      case kAddItems: pop_to_mark(); top(); return true;
      case kAppend: append(pop_several(1)); return true;
      case kAppends: append(pop_to_mark()); return true;
      case kSetItem: set_items(pop_several(2)); return true;
      case kSetItems: set_items(pop_to_mark()); return true;
      case kDict: {
        const auto items = pop_to_mark();
        push({Kind::kDict, 0, {}, {}});
        set_items(items);
        return true;
      }
      default: return false;
    }
  }
  // clang-format on

  void append(const std::vector<Id>& items) {
    Value& target = pickle_.values[top()];
    // A list's subclass: what it does with its items is its own affair.
    if (target.kind == Kind::kObject) return;
    if (target.kind != Kind::kList) refuse("it appends to something that is no list");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<Id>& items) {
    Value& target = pickle_.values[top()];
    if (target.kind != Kind::kDict && target.kind != Kind::kObject) {
      refuse("it sets items of something that is no dictionary");
    }
    if (items.size() % 2 != 0) refuse("a key has no value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  // clang-format off
  bool read_memo(unsigned char code) {
    switch (code) {
      case kPop: stack_.size() > floor() ? stack_.pop_back() : void(pop_to_mark()); return true;
      case kPopMark: pop_to_mark(); return true;
      case kDup: stack_.push_back(top()); return true;
      case kBinPut: memo_[number<std::uint8_t>()] = top(); return true;
      case kLongBinPut: memo_[number<std::uint32_t>()] = top(); return true;
      case kMemoize: memo_[static_cast<Id>(memo_.size())] = top(); return true;
      case kBinGet: recall(number<std::uint8_t>()); return true;
      case kLongBinGet: recall(number<std::uint32_t>()); return true;
      default: return false;
    }
  }
  // clang-format on

  void recall(std::uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end())
      refuse(fmt::format("it recalls value {}, which it never kept", place));
    stack_.push_back(found->second);
  }

  // clang-format off
  bool read_call(unsigned char code) {
    switch (code) {
      case kGlobal: push_text(line()); push_text(line()); push_global(pop_several(2)); return true;
      case kStackGlobal: push_global(pop_several(2)); return true;
      case kReduce: case kNewObject: make_object(pop_several(2)); return true;
      case kNewObjectEx: pop(); make_object(pop_several(2)); return true;
      // The state of an object is nobody's business here.
      case kBuild: pop(); top(); return true;
      case kBinPersistent: push({Kind::kPersistent, 0, {}, {pop()}}); return true;
      default: return false;
    }
  }
  // clang-format on

  void push_global(std::vector<Id> names) {
    for (const Id id : names) {
      if (pickle_[id].kind != Kind::kText || pickle_[id].text.size() > kLongestGlobal) {
        refuse("a global's name is no text or too long");
      }
    }
    push({Kind::kGlobal, 0, {}, std::move(names)});
  }

  void make_object(std::vector<Id> parts) {
    const Id arguments = parts[1];
    if (pickle_[arguments].kind != Kind::kTuple) refuse("the arguments of a call are no tuple");
    if (pickle_.is_global(parts[0], "collections", "OrderedDict")) {
      return push({Kind::kDict, 0, {}, pairs(pickle_[arguments])});
    }
    push({Kind::kObject, 0, {}, std::move(parts)});
  }

  /// OrderedDict() or, as Python 2 wrote it, OrderedDict([[key, value], ...]).
  std::vector<Id> pairs(const Value& arguments) {
    std::vector<Id> items;
    if (arguments.items.empty()) return items;
    const auto& list = pickle_[arguments.items[0]].items;
    // The one place where a value is copied: a list recalled again and again must not multiply.
    copied_ += list.size();
    if (copied_ > kMostValues) refuse("it copies too many values");
    for (const Id id : list) {
      const auto& pair = pickle_[id].items;
      if (pair.size() != 2) refuse("an OrderedDict is made from something that is no pair");
      items.insert(items.end(), pair.begin(), pair.end());
    }
    return items;
  }

  const std::string& path_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  Pickle pickle_;
  Id other_ = 0;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Id> memo_;
  std::size_t copied_ = 0;
};

}  // namespace

std::string Pickle::global_name(Id id) const {
  const Value& value = values[id];
  const Value& global = value.kind == Kind::kObject ? values[value.items[0]] : value;
  if (global.kind != Kind::kGlobal) return "";
  return fmt::format("{}.{}", values[global.items[0]].text, values[global.items[1]].text);
}

bool Pickle::is_global(Id id, std::string_view module, std::string_view name) const {
  const Value& value = values[id];
  return value.kind == Kind::kGlobal && values[value.items[0]].text == module &&
         values[value.items[1]].text == name;
}

std::span<const Pickle::Id> Pickle::entries(Id id) const {
  const Value& value = values[id];
  const std::span<const Id> items = value.items;
  if (value.kind == Kind::kDict) return items;
  return value.kind == Kind::kObject ? items.subspan(2) : std::span<const Id>{};
}

Pickle read_pickle(const std::string& path, std::string_view bytes) {
  return Reader(path, bytes).run();
}

}  // namespace gala
