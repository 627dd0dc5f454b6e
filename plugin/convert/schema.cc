#include "plugin/convert/schema.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugin/convert/api_descriptors.h"

namespace loadline {
namespace {

// Wire types of protobuf.
constexpr uint32_t kWireVarint = 0, kWireFixed64 = 1, kWireBytes = 2, kWireFixed32 = 5;
// Field numbers are less than this; so large ones are of no message here.
constexpr int64_t kMaxFieldNumber = 1 << 12;
// How deeply messages are defined in one another.
constexpr int kMaxNesting = 16;

// One field on the wire.
struct WireField {
  int64_t number = 0;
  uint32_t wire_type = 0;
  uint64_t value = 0;         // with kWireVarint
  absl::string_view content;  // with kWireBytes
};

// Reads the fields of a serialized message one after the other.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // False: there is none, or what follows cannot be read.
  bool Next(WireField* field) {
    uint64_t tag = 0;
    if (!ReadVarint(&tag)) return false;
    field->number = static_cast<int64_t>(tag >> 3);
    field->wire_type = static_cast<uint32_t>(tag & 7);
    uint64_t length = 0;
    switch (field->wire_type) {
      case kWireVarint:
        return ReadVarint(&field->value);
      case kWireFixed64:
        return Skip(8, field);
      case kWireFixed32:
        return Skip(4, field);
      case kWireBytes:
        return ReadVarint(&length) && Skip(length, field);
      default:
        return true;  // a group, which no message here has; what follows is not read
    }
  }

 private:
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; at_ < end_ && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Skip(uint64_t length, WireField* field) {
    if (length > static_cast<uint64_t>(end_ - at_)) return false;
    field->content = absl::string_view(at_, static_cast<size_t>(length));
    at_ += length;
    return true;
  }

  const char* at_;
  const char* const end_;
};

}  // namespace

// Reads descriptors. The numbers are those of fields of google/protobuf/descriptor.proto.
class Schema::Reader {
 public:
  explicit Reader(Schema* schema) : schema_(*schema) {}

  void ReadFiles(absl::string_view descriptor_set) {
    WireReader in(descriptor_set);
    for (WireField file; in.Next(&file);) {
      if (file.number == 1) ReadFile(file.content);
    }
    for (Message& message : schema_.messages_) {
      for (Field& field : message.fields) {
        const auto known = schema_.by_name_.find(absl::StripPrefix(field.type, "."));
        if (known != schema_.by_name_.end()) field.message = known->second;
        field.type = std::string();
      }
    }
  }

 private:
  void ReadFile(absl::string_view bytes) {
    const std::string package(Text(bytes, 2));
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 4) ReadMessage(field.content, package, kMaxNesting);
    }
  }

  void ReadMessage(absl::string_view bytes, absl::string_view scope, int nesting) {
    if (nesting == 0) return;
    Message message;
    message.name = absl::StrCat(scope, ".", Text(bytes, 1));
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 2) ReadField(field.content, &message);
      if (field.number == 3) ReadMessage(field.content, message.name, nesting - 1);
    }
    schema_.by_name_.emplace(message.name, static_cast<int32_t>(schema_.messages_.size()));
    schema_.messages_.push_back(std::move(message));
  }

  void ReadField(absl::string_view bytes, Message* message) {
    const uint64_t number = Number(bytes, 3);
    if (number >= kMaxFieldNumber) return;
    if (number >= message->fields.size()) message->fields.resize(static_cast<size_t>(number) + 1);
    Field& field = message->fields[static_cast<size_t>(number)];
    field.kind = KindOf(Number(bytes, 5));
    constexpr uint64_t kRepeated = 3;
    field.packable =
        Number(bytes, 4) == kRepeated && field.kind != Kind::kBytes && field.kind != Kind::kMessage;
    if (field.kind == Kind::kMessage) field.type = std::string(Text(bytes, 6));
  }

  // From FieldDescriptorProto.Type.
  static Kind KindOf(uint64_t type) {
    switch (type) {
      case 1:
      case 6:
      case 16:  // double, fixed64, sfixed64
        return Kind::kFixed64;
      case 2:
      case 7:
      case 15:  // float, fixed32, sfixed32
        return Kind::kFixed32;
      case 9:
      case 12:  // string, bytes
        return Kind::kBytes;
      case 11:
        return Kind::kMessage;
      default:
        return Kind::kVarint;
    }
  }

  static absl::string_view Text(absl::string_view bytes, int64_t number) {
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == number) return field.content;
    }
    return {};
  }

  static uint64_t Number(absl::string_view bytes, int64_t number) {
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == number) return field.value;
    }
    return 0;
  }

  Schema& schema_;
};

Schema::Schema(absl::string_view descriptor_set) { Reader(this).ReadFiles(descriptor_set); }

const Schema& Schema::OfThisEngine() {
  static const Schema* const kSchema =
      new Schema(ApiDescriptors());  // never destroyed: calls may outlive main()
  return *kSchema;
}

std::string Schema::UnknownField(absl::string_view type, absl::string_view bytes) const {
  const auto known = by_name_.find(type);
  if (known == by_name_.end()) return absl::StrCat("message ", type);
  return UnknownField(messages_[static_cast<size_t>(known->second)], bytes);
}

std::string Schema::UnknownField(const Message& message, absl::string_view bytes) const {
  static const Field kNone;
  WireReader in(bytes);
  for (WireField wire; in.Next(&wire);) {
    const bool has = wire.number < static_cast<int64_t>(message.fields.size());
    const Field& field = has ? message.fields[static_cast<size_t>(wire.number)] : kNone;
    bool fits = false;
    switch (field.kind) {
      case Kind::kUnknown:
        break;
      case Kind::kVarint:
        fits = wire.wire_type == kWireVarint || (field.packable && wire.wire_type == kWireBytes);
        break;
      case Kind::kFixed64:
        fits = wire.wire_type == kWireFixed64 || (field.packable && wire.wire_type == kWireBytes);
        break;
      case Kind::kFixed32:
        fits = wire.wire_type == kWireFixed32 || (field.packable && wire.wire_type == kWireBytes);
        break;
      case Kind::kBytes:
      case Kind::kMessage:
        fits = wire.wire_type == kWireBytes;
        break;
    }
    if (!fits) return absl::StrCat("field ", wire.number, " of ", message.name);
    if (field.message < 0) continue;
    std::string unknown = UnknownField(messages_[static_cast<size_t>(field.message)], wire.content);
    if (!unknown.empty()) return unknown;
  }
  return std::string();
}

}  // namespace loadline
