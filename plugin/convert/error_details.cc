#include "plugin/convert/error_details.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr char kReasonPayload[] = "loadline.dev/reason";
constexpr char kDomain[] = "loadline.dev";
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr size_t kMostFieldBytes = 256;

absl::string_view ReasonOfCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID";  // in any state
    case absl::StatusCode::kFailedPrecondition:
      return "OTHER_STATE";
    case absl::StatusCode::kNotFound:
      return "UNKNOWN_VIEW";
    case absl::StatusCode::kResourceExhausted:
      return "LIMIT";
    case absl::StatusCode::kDeadlineExceeded:
      return "TIMEOUT";
    case absl::StatusCode::kAborted:
      return "WOULD_WAIT";
    case absl::StatusCode::kUnimplemented:
      return "UNKNOWN_METHOD";
    default:
      return "FAULT";  // one of our own
  }
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Appends a field of text, bytes or a message; one that is empty is left out.
void AppendField(uint32_t number, absl::string_view bytes, std::string* out) {
  constexpr uint32_t kLengthDelimited = 2;
  if (bytes.empty()) return;
  AppendVarint(number << 3 | kLengthDelimited, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

void AppendMetadata(absl::string_view key, absl::string_view value, std::string* info) {
  if (value.empty()) return;
  std::string entry;
  AppendField(1, key, &entry);
  AppendField(2, value, &entry);
  AppendField(3, entry, info);
}

// The length of the name, with an index where there is one, that `text` begins with.
size_t NameLength(absl::string_view text) {
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text[end])) ||
                               text[end] == '_' || text[end] == '.')) {
    ++end;
  }
  if (end == 0 || end >= text.size() || text[end] != '[') return end;
  size_t index = end + 1;
  while (index < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[index]))) ++index;
  return index > end + 1 && index < text.size() && text[index] == ']' ? index + 1 : end;
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

std::string ReasonOfError(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  return payload.has_value() ? std::string(*payload) : std::string(ReasonOfCode(status.code()));
}

std::string FieldOf(absl::string_view text) {
  std::string field;
  while (field.size() <= kMostFieldBytes) {
    const size_t length = NameLength(text);
    const absl::string_view separator = text.substr(length, 2);
    if (length == 0 || (separator != ": " && separator != " (")) return field;
    absl::StrAppend(&field, field.empty() ? "" : ".", text.substr(0, length));
    if (separator == " (") return field;  // what is in parentheses names the object
    text.remove_prefix(length + 2);
  }
  return field;
}

std::string EncodeError(const absl::Status& status, const ErrorDetails& details) {
  std::string info;
  AppendField(1, details.reason.empty() ? ReasonOfError(status) : details.reason, &info);
  AppendField(2, kDomain, &info);
  if (details.changes_applied.has_value()) {
    AppendMetadata("changes", *details.changes_applied ? "applied" : "refused", &info);
  }
  AppendMetadata("field", FieldOf(status.message()), &info);
  AppendMetadata("view", details.view, &info);
  std::string any;
  AppendField(1, kErrorInfo, &any);
  AppendField(2, info, &any);
  std::string out;
  constexpr uint32_t kCodeTag = 1 << 3;
  AppendVarint(kCodeTag, &out);
  AppendVarint(static_cast<uint64_t>(status.code()), &out);
  AppendField(2, status.message(), &out);
  AppendField(3, any, &out);
  return out;
}

}  // namespace loadline
