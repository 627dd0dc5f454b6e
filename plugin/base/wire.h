// Fields on the wire of protobuf, for messages of which there is no generated code.
#ifndef LOADLINE_PLUGIN_BASE_WIRE_H_
#define LOADLINE_PLUGIN_BASE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Wire types of protobuf.
inline constexpr uint32_t kWireVarint = 0, kWireFixed64 = 1, kWireBytes = 2, kWireFixed32 = 5;

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

  // False: there is none, or what follows cannot be read. Inline, as each field of each question passes here:
  // what the caller does not read of `field` is not written then.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Next(WireField* field) {
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
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool ReadVarint(uint64_t* value) {
    if (at_ < end_ && static_cast<uint8_t>(*at_) < 0x80) {  // most tags, lengths and numbers
      *value = static_cast<uint8_t>(*at_++);
      return true;
    }
    return ReadLongVarint(value);
  }

  bool ReadLongVarint(uint64_t* value) {
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

// Each appends to `out`.
inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline void AppendNumber(int64_t number, uint64_t value, std::string* out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | kWireVarint, out);
  AppendVarint(value, out);
}

// Text, bytes or a message, which may be empty.
inline void AppendBytes(int64_t number, absl::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | kWireBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_BASE_WIRE_H_
