// Bytes to messages.
#ifndef LOADLINE_PLUGIN_CONVERT_PARSE_H_
#define LOADLINE_PLUGIN_CONVERT_PARSE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin/convert/json.h"

namespace loadline {

// Requests and responses.
inline constexpr size_t kMaxMessageBytes = size_t{4} << 20;
// Serialized pods and nodes: what etcd takes by default.
inline constexpr size_t kMaxObjectBytes = 1536 * 1024;
// Tag and length of an entry of a repeated field, at most.
inline constexpr size_t kEntryOverhead = 6;

// kInvalidArgument for an object of more than kMaxObjectBytes; the text continues what it is about.
inline absl::Status CheckObjectSize(absl::string_view bytes) {
  if (bytes.size() <= kMaxObjectBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has ", bytes.size(), " bytes, at most ", kMaxObjectBytes, " are allowed"));
}

// Parses `bytes`, fewer than 2^31, into `message` in place of its content; the memory that it allocated
// before is used again. `type` names the message in the error, which continues what it is about.
// Errors: kInvalidArgument. Protobuf does not name the fault; nesting is bounded by its default of 100.
template <typename Message>
absl::Status Parse(absl::string_view bytes, absl::string_view type, Message* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "is not a ", type, ": truncated or damaged, nested too deeply, or text that is not UTF-8"));
}

// Returns the message within the envelope in which the API server sends and etcd keeps objects: "k8s\0" and a
// runtime.Unknown, of which field 2 has the bytes. Other bytes are returned as they are, and so is an
// envelope that is damaged: nobody can parse it.
absl::string_view WithoutEnvelope(absl::string_view bytes);

// Parses an object of Kubernetes: JSON, or protobuf with or without that envelope. Its size was checked.
template <typename Message>
absl::Status ParseObject(absl::string_view bytes, absl::string_view type, Message* message) {
  if (!IsJson(bytes)) return Parse(WithoutEnvelope(bytes), type, message);
  const absl::StatusOr<std::string> wire = JsonToWire(bytes, message->GetTypeName(), type);
  return wire.ok() ? Parse(*wire, type, message) : wire.status();
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_PARSE_H_
