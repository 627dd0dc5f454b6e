#include "plugin/convert/json.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin/base/wire.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/known_fields.h"
#include "plugin/convert/object_schema.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

using Json = nlohmann::json;

// The most bytes of the name of an unknown field that are kept.
constexpr size_t kMaxUnknownName = 64;

absl::string_view NameOf(ObjectSchema::Kind kind) {
  switch (kind) {
    case ObjectSchema::Kind::kText:
      return "a text";
    case ObjectSchema::Kind::kBool:
      return "true or false";
    case ObjectSchema::Kind::kInt32:
    case ObjectSchema::Kind::kInt64:
      return "a whole number in range";
    case ObjectSchema::Kind::kQuantity:
      return "an amount";
    case ObjectSchema::Kind::kTime:
      return "a time as of RFC 3339";
    case ObjectSchema::Kind::kMessage:
    case ObjectSchema::Kind::kMap:
      return "an object";
  }
  return "anything";
}

// Writes the protobuf of an object while the parser reads its JSON. A value of the wrong type does not end
// the reading, so that the error can name the object, whose name may come behind it.
class WireWriter : public Json::json_sax_t {
 public:
  WireWriter(const ObjectSchema& schema, const ObjectSchema::Message& type, absl::string_view kind)
      : schema_(schema), type_(type), kind_(kind) {}

  absl::StatusOr<std::string> Result() && {
    if (!error_.empty()) {
      return WithObject(absl::InvalidArgumentError(
                            name_.empty() ? error_ : absl::StrCat(error_, ", in ", kind_, " ", FullName())),
                        kind_, namespace_, name_);
    }
    if (!unknown_.empty()) {
      std::string entry, metadata;
      AppendBytes(1, kUnknownFieldsAnnotation, &entry);
      AppendBytes(2, unknown_, &entry);
      AppendBytes(12, entry, &metadata);  // metadata.annotations
      AppendBytes(1, metadata, &out_);
    }
    return std::move(out_);
  }

  bool null() override {
    if (skipped_ == 0 && (stack_.empty() || stack_.back().mode == Mode::kList)) return Fail("null");
    return true;
  }
  bool boolean(bool value) override {
    const ObjectSchema::Field* const field = AwaitedScalar("true or false");
    if (field == nullptr) return true;
    if (ValueKind(*field) != ObjectSchema::Kind::kBool) return Fail("true or false");
    PutNumber(*field, value ? 1 : 0);
    return true;
  }
  bool number_integer(number_integer_t value) override { return Number(value, absl::StrCat(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return Number(fits ? std::optional<int64_t>(static_cast<int64_t>(value)) : std::nullopt,
                  absl::StrCat(value));
  }
  bool number_float(number_float_t, const string_t& text) override { return Number(std::nullopt, text); }
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return true; }  // JSON has none

  bool start_object(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error_.empty()) error_ = absl::StrCat("is no JSON: byte ", position, " cannot be read");
    return false;
  }

 private:
  using Kind = ObjectSchema::Kind;
  // The place of the values that follow: one of the field that was named, or all of the list or map.
  enum class Mode { kField, kList, kMap };
  struct Frame {
    const ObjectSchema::Message* message;
    const ObjectSchema::Field* field = nullptr;  // the one that was named; nullptr: it is not read
    Mode mode = Mode::kField;
    int64_t index = 0;               // in a list
    std::string map_key;             // in a map
    std::vector<const void*> named;  // fields that were there
    std::string out{};
  };

  static Kind ValueKind(const ObjectSchema::Field& field) {
    return field.kind == Kind::kMap ? field.value : field.kind;
  }

  std::string Path() const;
  std::string FullName() const {
    return Quoted(namespace_.empty() ? name_ : absl::StrCat(namespace_, "/", name_));
  }

  // Keeps the first error.
  bool Fail(absl::string_view found, absl::string_view wanted = "") {
    if (!error_.empty()) return true;
    std::string should_be(wanted);
    if (wanted.empty()) {
      const ObjectSchema::Field* const field = stack_.empty() ? nullptr : stack_.back().field;
      const bool list = field != nullptr && field->repeated && field->kind != Kind::kMap &&
                        stack_.back().mode == Mode::kField;
      const Kind kind = field == nullptr                   ? Kind::kMessage
                        : stack_.back().mode == Mode::kMap ? field->value
                                                           : field->kind;
      should_be = list ? "a list" : std::string(NameOf(kind));
    }
    const std::string path = Path();
    error_ = absl::StrCat(path, path.empty() ? "" : ": ", "is ", found, ", not ", should_be);
    return true;
  }

  // The field that the value to come is of; nullptr: it is not read, or wrong here, as a scalar always is at
  // the top and in place of a list or map.
  const ObjectSchema::Field* AwaitedScalar(absl::string_view found) {
    if (skipped_ > 0) return nullptr;
    if (stack_.empty()) {
      Fail(found);
      return nullptr;
    }
    const Frame& top = stack_.back();
    if (top.field == nullptr) return nullptr;
    if (top.mode == Mode::kField && top.field->repeated) {
      Fail(found);
      return nullptr;
    }
    return top.field;
  }

  bool Number(std::optional<int64_t> value, const std::string& text) {
    const ObjectSchema::Field* const field = AwaitedScalar("a number");
    if (field == nullptr) return true;
    const Kind kind = ValueKind(*field);
    if (kind == Kind::kQuantity) {
      PutMessageOfText(*field, text);
      return true;
    }
    const bool is_whole = kind == Kind::kInt64 || kind == Kind::kInt32;
    if (!is_whole || !value.has_value() || (kind == Kind::kInt32 && *value != static_cast<int32_t>(*value))) {
      return Fail(is_whole ? absl::StrCat("the number ", Quoted(text)) : "a number");
    }
    PutNumber(*field, static_cast<uint64_t>(*value));
    return true;
  }

  void PutMessageOfText(const ObjectSchema::Field& field, absl::string_view text) {
    std::string message;
    AppendBytes(1, text, &message);
    PutBytes(field, message);
  }
  void PutNumber(const ObjectSchema::Field& field, uint64_t value) {
    std::string bytes;
    AppendNumber(field.number, value, &bytes);
    Put(field, bytes);
  }
  // A value of a field, or of an entry of one that is a map.
  void PutBytes(const ObjectSchema::Field& field, absl::string_view content) {
    std::string bytes;
    if (field.kind == Kind::kMap) {
      std::string entry;
      AppendBytes(1, stack_.back().map_key, &entry);
      AppendBytes(2, content, &entry);
      AppendBytes(field.number, entry, &bytes);
    } else {
      AppendBytes(field.number, content, &bytes);
    }
    Put(field, bytes);
  }
  // A field with its number. Those of a message that is inlined are written as one message each: on the wire
  // they add up.
  void Put(const ObjectSchema::Field& field, absl::string_view bytes) {
    Frame& top = stack_.back();
    if (field.inlined_in != 0) {
      AppendBytes(field.inlined_in, bytes, &top.out);
    } else {
      top.out.append(bytes.data(), bytes.size());
    }
    if (top.mode == Mode::kList) ++top.index;
  }

  const ObjectSchema& schema_;
  const ObjectSchema::Message& type_;
  const std::string kind_;
  std::vector<Frame> stack_;
  int64_t skipped_ = 0;  // objects and lists that are open and are not read
  bool names_kind_ = false;
  std::string namespace_, name_;
  std::string unknown_;
  std::string error_;
  std::string out_;
};

std::string WireWriter::Path() const {
  std::string path;
  for (const Frame& frame : stack_) {
    if (frame.field == nullptr) break;
    absl::StrAppend(&path, path.empty() ? "" : ".", frame.field->json_name);
    if (frame.mode == Mode::kList) absl::StrAppend(&path, "[", frame.index, "]");
    if (frame.mode == Mode::kMap) absl::StrAppend(&path, "[", Quoted(frame.map_key), "]");
  }
  return path;
}

bool WireWriter::string(string_t& value) {
  if (std::exchange(names_kind_, false) && skipped_ == 0) {
    if (error_.empty() && value != kind_ && !kind_.empty()) {
      error_ = absl::StrCat("kind: is ", Quoted(value), ", not ", Quoted(kind_));
    }
    return true;
  }
  const ObjectSchema::Field* const field = AwaitedScalar("a text");
  if (field == nullptr) return true;
  if (stack_.size() == 2 && stack_[0].field->json_name == "metadata") {
    if (field->json_name == "name") name_ = value;
    if (field->json_name == "namespace") namespace_ = value;
  }
  switch (ValueKind(*field)) {
    case Kind::kText:
      PutBytes(*field, value);
      return true;
    case Kind::kQuantity:
      PutMessageOfText(*field, value);
      return true;
    case Kind::kTime: {
      absl::Time time;
      std::string error;
      if (!absl::ParseTime(absl::RFC3339_full, value, &time, &error)) return Fail(Quoted(value));
      std::string message;
      AppendNumber(1, static_cast<uint64_t>(absl::ToUnixSeconds(time)), &message);
      PutBytes(*field, message);
      return true;
    }
    default:
      return Fail("a text");
  }
}

bool WireWriter::start_object(size_t) {
  if (skipped_ > 0 || (!stack_.empty() && stack_.back().field == nullptr)) {
    ++skipped_;
    return true;
  }
  if (stack_.empty()) {
    stack_.push_back({&type_});
    return true;
  }
  Frame& top = stack_.back();
  const ObjectSchema::Field& field = *top.field;
  if (top.mode == Mode::kField && field.kind == Kind::kMap) {
    top.mode = Mode::kMap;
    return true;
  }
  if (field.kind == Kind::kMessage && field.repeated == (top.mode == Mode::kList)) {
    stack_.push_back({&schema_.message(field.message)});
    return true;
  }
  Fail("an object");
  ++skipped_;
  return true;
}

bool WireWriter::key(string_t& name) {
  if (skipped_ > 0) return true;
  Frame& top = stack_.back();
  if (top.mode == Mode::kMap) {
    top.map_key = name;
    return true;
  }
  names_kind_ = stack_.size() == 1 && name == "kind";
  const auto found = top.message->by_json_name.find(name);
  top.field = found == top.message->by_json_name.end() ? nullptr : &top.message->fields[found->second];
  if (top.field == nullptr) {
    if (top.message->judged && unknown_.empty() && !top.message->unread.contains(name)) {
      const std::string path = Path();
      unknown_ = absl::StrCat(path, path.empty() ? "" : ".", Printable(name, kMaxUnknownName));
    }
    return true;
  }
  if (!absl::c_linear_search(top.named, static_cast<const void*>(top.field))) {
    top.named.push_back(top.field);  // each once, so that a repeated name costs no more each time
  } else if (error_.empty()) {
    error_ = absl::StrCat(Path(), ": occurs twice");
  }
  return true;
}

bool WireWriter::end_object() {
  if (skipped_ > 0) {
    --skipped_;
    return true;
  }
  if (stack_.back().mode == Mode::kMap) {
    stack_.back().mode = Mode::kField;
    return true;
  }
  const std::string content = std::move(stack_.back().out);
  stack_.pop_back();
  if (stack_.empty()) {
    out_ = content;
  } else {
    PutBytes(*stack_.back().field, content);
  }
  return true;
}

bool WireWriter::start_array(size_t) {
  if (skipped_ > 0 || (!stack_.empty() && stack_.back().field == nullptr)) {
    ++skipped_;
    return true;
  }
  if (!stack_.empty() && stack_.back().mode == Mode::kField && stack_.back().field->repeated &&
      stack_.back().field->kind != Kind::kMap) {
    stack_.back().mode = Mode::kList;
    stack_.back().index = 0;
    return true;
  }
  Fail("a list");
  ++skipped_;
  return true;
}

bool WireWriter::end_array() {
  if (skipped_ > 0) {
    --skipped_;
  } else {
    stack_.back().mode = Mode::kField;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::string> JsonToWire(absl::string_view json, absl::string_view message,
                                       absl::string_view type) {
  const ObjectSchema& schema = ObjectSchema::OfThisEngine();
  const ObjectSchema::Message* const root = schema.Find(message);
  if (root == nullptr) return absl::InvalidArgumentError("is JSON, which is not allowed for this object");
  // A type without a package is no kind: only the name of such an object is of interest.
  const size_t dot = type.rfind('.');
  WireWriter writer(schema, *root, dot == absl::string_view::npos ? "" : type.substr(dot + 1));
  Json::sax_parse(json.begin(), json.end(), &writer);
  return std::move(writer).Result();
}

}  // namespace loadline
