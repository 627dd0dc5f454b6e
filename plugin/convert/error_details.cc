#include "plugin/convert/error_details.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/text.h"
#include "plugin/convert/wire.h"

namespace loadline {
namespace {

constexpr char kReasonPayload[] = "loadline.dev/reason";
constexpr char kObjectPayload[] = "loadline.dev/object";
constexpr char kDomain[] = "loadline.dev";
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr size_t kMostFieldBytes = 256;
constexpr size_t kMostObjectBytes = 600;  // a kind, and two names

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

void AppendMetadata(absl::string_view key, absl::string_view value, std::string* info) {
  if (value.empty()) return;
  std::string entry;
  AppendBytes(1, key, &entry);
  AppendBytes(2, value, &entry);
  AppendBytes(3, entry, info);
}

// The length of the path of names, each with an index where there is one, that `text` begins with.
size_t NameLength(absl::string_view text) {
  const auto skip = [text](size_t at, bool (*counts)(char)) {
    while (at < text.size() && counts(text[at])) ++at;
    return at;
  };
  size_t end = 0;
  while (true) {
    const size_t name = skip(end, [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    });
    if (name == end || name == text.size() || text[name] != '[') return name;
    const size_t index =
        skip(name + 1, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
    if (index == name + 1 || index == text.size() || text[index] != ']') return name;
    end = index + 1;
  }
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

absl::Status WithObject(absl::Status status, absl::string_view kind, absl::string_view namespace_name,
                        absl::string_view name) {
  if (kind.empty() || name.empty()) return status;
  const absl::string_view slash = namespace_name.empty() ? "" : "/";
  status.SetPayload(kObjectPayload, absl::Cord(Printable(absl::StrCat(kind, " ", namespace_name, slash, name),
                                                         kMostObjectBytes)));
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
  AppendBytes(1, details.reason.empty() ? ReasonOfError(status) : details.reason, &info);
  AppendBytes(2, kDomain, &info);
  if (details.changes_applied.has_value()) {
    AppendMetadata("changes", *details.changes_applied ? "applied" : "refused", &info);
  }
  if (const auto object = status.GetPayload(kObjectPayload); object.has_value()) {
    AppendMetadata("object", std::string(*object), &info);
  }
  AppendMetadata("field", FieldOf(status.message()), &info);
  AppendMetadata("view", details.view, &info);
  std::string any;
  AppendBytes(1, kErrorInfo, &any);
  AppendBytes(2, info, &any);
  std::string out;
  AppendNumber(1, static_cast<uint64_t>(status.code()), &out);
  AppendBytes(2, status.message(), &out);
  AppendBytes(3, any, &out);
  return out;
}

}  // namespace loadline
