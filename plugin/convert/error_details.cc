#include "plugin/convert/error_details.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin/base/error_info.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr char kReasonPayload[] = "loadline.dev/reason";
constexpr char kObjectPayload[] = "loadline.dev/object";
constexpr char kFieldPayload[] = "loadline.dev/field";
constexpr size_t kMostFieldBytes = 256;
constexpr size_t kMostObjectBytes = 600;  // a kind, and two names

absl::string_view ReasonOfCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID";  // in any state
    case absl::StatusCode::kFailedPrecondition:
      return "OTHER_STATE";
    case absl::StatusCode::kNotFound:
      return kUnknownView;
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

std::string PayloadOf(const absl::Status& status, absl::string_view name) {
  const auto payload = status.GetPayload(name);
  return payload.has_value() ? std::string(*payload) : std::string();
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

absl::Status WithField(absl::Status status, absl::string_view field) {
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

std::string ReasonOfError(const absl::Status& status) {
  std::string reason = PayloadOf(status, kReasonPayload);
  return reason.empty() ? std::string(ReasonOfCode(status.code())) : reason;
}

std::string FieldOf(absl::string_view text) {
  std::string field;
  while (field.size() <= kMostFieldBytes) {
    const size_t length = NameLength(text);
    if (length == 0) return field;
    const absl::string_view rest = text.substr(length);
    // The name of the object may be behind the field.
    const absl::string_view end = absl::StartsWith(rest, " (")    ? "): "
                                  : absl::StartsWith(rest, " \"") ? "\": "
                                                                  : ": ";
    const size_t at = rest.find(end);
    if (at == absl::string_view::npos || (end.size() == 2 && at > 0)) return field;
    absl::StrAppend(&field, field.empty() ? "" : ".", text.substr(0, length));
    text = rest.substr(at + end.size());
  }
  return field;
}

std::string EncodeError(const absl::Status& status, const ErrorDetails& details) {
  const std::string stated = PayloadOf(status, kFieldPayload);
  const absl::string_view changes = !details.changes_applied.has_value() ? ""
                                    : *details.changes_applied           ? "applied"
                                                                         : "refused";
  return EncodeErrorInfo(static_cast<uint64_t>(status.code()), status.message(),
                         details.reason.empty() ? ReasonOfError(status) : details.reason,
                         {{"changes", changes},
                          {"object", PayloadOf(status, kObjectPayload)},
                          {"field", stated.empty() ? FieldOf(status.message()) : stated},
                          {"view", details.view}});
}

}  // namespace loadline
