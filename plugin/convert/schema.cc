#include "plugin/convert/schema.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugin/base/wire.h"
#include "plugin/convert/api_descriptors.h"

namespace loadline {
namespace {

// A set of one wire type.
constexpr uint8_t Bit(uint32_t wire_type) { return static_cast<uint8_t>(1U << wire_type); }

// Field numbers are less than this; so large ones are of no message here.
constexpr int64_t kMaxFieldNumber = 1 << 12;
// How deeply messages are defined in one another.
constexpr int kMaxNesting = 16;

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
    for (const Reference& reference : references_) {
      const auto known = schema_.by_name_.find(absl::StripPrefix(reference.type, "."));
      if (known == schema_.by_name_.end()) continue;
      schema_.messages_[reference.message].fields[reference.number].message = known->second;
    }
  }

 private:
  // A field of a message type, which may be read after the field.
  struct Reference {
    size_t message = 0;  // position among those of the schema
    size_t number = 0;
    absl::string_view type;
  };

  void ReadFile(absl::string_view bytes) {
    const std::string package(Text(bytes, 2));
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 4) ReadMessage(field.content, package, kMaxNesting);
    }
  }

  void ReadMessage(absl::string_view bytes, absl::string_view scope, int nesting) {
    if (nesting == 0) return;
    const size_t index = schema_.messages_.size();
    const std::string name = absl::StrCat(scope, ".", Text(bytes, 1));
    schema_.by_name_.emplace(name, static_cast<int32_t>(index));
    schema_.messages_.push_back({name, {}});
    WireReader in(bytes);
    for (WireField field; in.Next(&field);) {
      if (field.number == 2) ReadField(field.content, index);
      if (field.number == 3) ReadMessage(field.content, name, nesting - 1);
    }
  }

  void ReadField(absl::string_view bytes, size_t message) {
    const uint64_t number = Number(bytes, 3);
    if (number >= kMaxFieldNumber) return;
    std::vector<Field>& fields = schema_.messages_[message].fields;
    if (number >= fields.size()) fields.resize(static_cast<size_t>(number) + 1);
    constexpr uint64_t kRepeated = 3, kMessage = 11;
    const uint64_t type = Number(bytes, 5);
    uint8_t& wire_types = fields[static_cast<size_t>(number)].wire_types;
    wire_types = Bit(WireTypeOf(type));
    if (Number(bytes, 4) == kRepeated) wire_types |= Bit(kWireBytes);  // numbers may be packed
    if (type == kMessage) references_.push_back({message, static_cast<size_t>(number), Text(bytes, 6)});
  }

  // From FieldDescriptorProto.Type.
  static uint32_t WireTypeOf(uint64_t type) {
    switch (type) {
      case 1:
      case 6:
      case 16:  // double, fixed64, sfixed64
        return kWireFixed64;
      case 2:
      case 7:
      case 15:  // float, fixed32, sfixed32
        return kWireFixed32;
      case 9:
      case 11:
      case 12:  // string, message, bytes
        return kWireBytes;
      default:
        return kWireVarint;
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
  std::vector<Reference> references_;
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
  Unknown unknown;
  if (KnowsAll(messages_[static_cast<size_t>(known->second)], bytes, &unknown)) return std::string();
  return absl::StrCat("field ", unknown.number, " of ", unknown.message->name);
}

// Flattened, as each field of each request passes here: then the reader stays in registers.
[[gnu::flatten]] bool Schema::KnowsAll(const Message& message, absl::string_view bytes,
                                       Unknown* unknown) const {
  WireReader in(bytes);
  const Field* const fields = message.fields.data();
  const size_t numbers = message.fields.size();
  for (WireField wire; in.Next(&wire);) {
    const auto number = static_cast<size_t>(wire.number);
    const Field field = number < numbers ? fields[number] : Field();
    if ((field.wire_types & Bit(wire.wire_type)) == 0) {
      *unknown = {&message, wire.number};
      return false;
    }
    if (field.message < 0) continue;
    if (!KnowsAll(messages_[static_cast<size_t>(field.message)], wire.content, unknown)) return false;
  }
  return true;
}

}  // namespace loadline
