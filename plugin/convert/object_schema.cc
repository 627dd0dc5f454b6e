#include "plugin/convert/object_schema.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugin/base/wire.h"
#include "plugin/convert/object_descriptors.h"

namespace loadline {
namespace {

constexpr int32_t kNoField = -2, kNoMessage = -1;

// Types whose fields are those of the object around them in JSON.
constexpr absl::string_view kInlined[] = {"VolumeSource", "PersistentVolumeSource"};
// The same for one field, whose type is that of others as well.
constexpr absl::string_view kInliningMessage = "EphemeralContainer", kInlinedField = "common";

// The messages that known_fields.cc looks at.
constexpr absl::string_view kJudged[] = {"PodSpec",
                                         "Container",
                                         "ResourceRequirements",
                                         "ContainerPort",
                                         "VolumeMount",
                                         "EphemeralContainer",
                                         "ContainerRestartRule",
                                         "Volume",
                                         "Toleration",
                                         "PodResourceClaim",
                                         "TopologySpreadConstraint",
                                         "LabelSelector",
                                         "Affinity",
                                         "NodeAffinity",
                                         "LabelSelectorRequirement",
                                         "NodeSelector",
                                         "NodeSelectorTerm",
                                         "PodAffinity",
                                         "NodeSelectorRequirement",
                                         "PodAffinityTerm",
                                         "NodeSpec",
                                         "Taint"};

bool IsAmong(absl::string_view name, const absl::string_view* begin, const absl::string_view* end) {
  return std::find(begin, end, name) != end;
}

absl::string_view LastPart(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

// Reads descriptors. The numbers are those of fields of google/protobuf/descriptor.proto.
class ObjectSchema::Reader {
 public:
  explicit Reader(ObjectSchema* schema) : schema_(*schema) {}

  void ReadFiles(absl::string_view descriptor_set) {
    WireReader in(descriptor_set);
    for (WireField file; in.Next(&file);) {
      if (file.number == 1) ReadFile(file.content);
    }
    for (const Pending& field : pending_) Resolve(field);
    for (const auto& [message, field] : inlined_) Inline(message, field);
    for (Message& message : schema_.messages_) {
      for (size_t i = 0; i < message.fields.size(); ++i) {
        message.by_json_name.emplace(message.fields[i].json_name, i);
      }
    }
  }

 private:
  // A field whose type may be read after it.
  struct Pending {
    size_t message = 0;
    Field field;
    std::string name;
    absl::string_view type;
  };

  void ReadFile(absl::string_view bytes) {
    std::string package;
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 2) package = std::string(field.content);
      if (field.number == 4) ReadMessage(field.content, package);
    }
  }

  void ReadMessage(absl::string_view bytes, absl::string_view package) {
    const size_t index = schema_.messages_.size();
    Message& message = schema_.messages_.emplace_back();
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 1) message.name = std::string(field.content);
      if (field.number == 2) ReadField(field.content, index);
      if (field.number == 10) message.unread.insert(std::string(field.content));
    }
    message.judged = IsAmong(message.name, std::begin(kJudged), std::end(kJudged));
    schema_.by_name_.emplace(absl::StrCat(package, ".", message.name), static_cast<int32_t>(index));
  }

  void ReadField(absl::string_view bytes, size_t message) {
    constexpr uint64_t kRepeated = 3, kInt64 = 3, kBool = 8, kString = 9, kMessageType = 11;
    Pending pending;
    pending.message = message;
    uint64_t type = 0;
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 1) pending.name = std::string(field.content);
      if (field.number == 3) pending.field.number = static_cast<int64_t>(field.value);
      if (field.number == 4) pending.field.repeated = field.value == kRepeated;
      if (field.number == 5) type = field.value;
      if (field.number == 6) pending.type = absl::StripPrefix(field.content, ".");
      if (field.number == 10) pending.field.json_name = std::string(field.content);
    }
    pending.field.kind = type == kString        ? Kind::kText
                         : type == kBool        ? Kind::kBool
                         : type == kInt64       ? Kind::kInt64
                         : type == kMessageType ? Kind::kMessage
                                                : Kind::kInt32;
    pending_.push_back(std::move(pending));
  }

  static Kind KindOfMessage(absl::string_view type, bool repeated) {
    if (type == "Quantity") return Kind::kQuantity;
    if (type == "Time") return Kind::kTime;
    return repeated && absl::EndsWith(type, "Entry") ? Kind::kMap : Kind::kMessage;
  }

  void Resolve(const Pending& pending) {
    Message& message = schema_.messages_[pending.message];
    Field field = pending.field;
    const auto number = static_cast<size_t>(field.number);
    if (number >= message.message_of.size()) message.message_of.resize(number + 1, kNoField);
    message.message_of[number] = kNoMessage;
    if (field.kind == Kind::kMessage) {
      const auto known = schema_.by_name_.find(pending.type);
      if (known == schema_.by_name_.end()) return;
      const absl::string_view type = LastPart(pending.type);
      field.message = known->second;
      message.message_of[number] = field.message;
      field.kind = KindOfMessage(type, field.repeated);
      if (field.kind == Kind::kMap) {
        field.value = type == "QuantityEntry" ? Kind::kQuantity
                      : type == "TimeEntry"   ? Kind::kTime
                                              : Kind::kText;
      }
      if (IsAmong(type, std::begin(kInlined), std::end(kInlined)) ||
          (message.name == kInliningMessage && pending.name == kInlinedField)) {
        inlined_.emplace_back(pending.message, field);
        return;
      }
    }
    message.fields.push_back(std::move(field));
  }

  void Inline(size_t index, const Field& outer) {
    Message& message = schema_.messages_[index];
    const Message& inner = schema_.message(outer.message);
    for (Field field : inner.fields) {
      field.inlined_in = outer.number;
      message.fields.push_back(std::move(field));
    }
    message.unread.insert(inner.unread.begin(), inner.unread.end());
  }

  ObjectSchema& schema_;
  std::vector<Pending> pending_;
  std::vector<std::pair<size_t, Field>> inlined_;
};

ObjectSchema::ObjectSchema(absl::string_view descriptor_set) { Reader(this).ReadFiles(descriptor_set); }

const ObjectSchema& ObjectSchema::OfThisEngine() {
  static const ObjectSchema* const kSchema =
      new ObjectSchema(ObjectDescriptors());  // never destroyed: calls may outlive main()
  return *kSchema;
}

const ObjectSchema::Message* ObjectSchema::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &messages_[static_cast<size_t>(found->second)];
}

std::string ObjectSchema::KeepRead(const Message& message, absl::string_view bytes) const {
  std::string out;
  Keep(message, bytes, &out);
  return out;
}

void ObjectSchema::Keep(const Message& message, absl::string_view bytes, std::string* out) const {
  WireReader in(bytes);
  for (WireField wire; in.Next(&wire);) {
    const auto number = static_cast<size_t>(wire.number);
    const int32_t type = number < message.message_of.size() ? message.message_of[number] : kNoField;
    if (type == kNoField) continue;
    if (wire.wire_type == kWireVarint) {
      AppendNumber(wire.number, wire.value, out);
    } else if (wire.wire_type != kWireBytes) {
      continue;  // no field here has such a type
    } else if (type == kNoMessage) {
      AppendBytes(wire.number, wire.content, out);
    } else {
      AppendBytes(wire.number, KeepRead(this->message(type), wire.content), out);
    }
  }
}

}  // namespace loadline
