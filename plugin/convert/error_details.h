// The parts of an error that programs read, beside the text that people read.
#ifndef LOADLINE_PLUGIN_CONVERT_ERROR_DETAILS_H_
#define LOADLINE_PLUGIN_CONVERT_ERROR_DETAILS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Reasons beside the one that follows from the code of an error.
inline constexpr char kUnreadableRequest[] = "UNREADABLE_REQUEST";  // its bytes are no message of the method
inline constexpr char kUnknownField[] = "UNKNOWN_FIELD";            // it has a field of another version
inline constexpr char kUnknownView[] = "UNKNOWN_VIEW";              // there is no such view
inline constexpr char kUnknownSlot[] = "UNKNOWN_SLOT";              // it names a slot that holds no node

// `status`, which is an error, with this reason. Annotate() keeps it.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// `status`, which is an error, with the object that is at fault. Annotate() keeps it. `namespace_name` may be
// empty; without a kind or name nothing is added.
absl::Status WithObject(absl::Status status, absl::string_view kind, absl::string_view namespace_name,
                        absl::string_view name);

// `status`, which is an error whose text does not name the field that is at fault, with it. Annotate() keeps
// it.
absl::Status WithField(absl::Status status, absl::string_view field);

// The facts about a call that failed.
struct ErrorDetails {
  std::string reason;                   // empty: that of the code
  std::string view;                     // whose changes the question brought; empty: of none
  std::optional<bool> changes_applied;  // nullopt: it brought none, or nobody knows
};

// Returns the path of the field that is at fault. By convention a text begins with it, each message from the
// outermost on, which an object in parentheses or quotation marks may follow: of
// `problem: groups[1]: node_group: "a b" is not a name` it is "problem.groups[1].node_group", and of
// `pod (namespace "a"): spec: ...` it is "pod.spec". Empty: the text names none.
std::string FieldOf(absl::string_view text);

// Returns a serialized google.rpc.Status with a google.rpc.ErrorInfo of the domain "loadline.dev": reason,
// and as metadata `object` ("Pod shop/web-1"), `field`, `view` and `changes` ("applied" or "refused"), each
// where it is known.
std::string EncodeError(const absl::Status& status, const ErrorDetails& details);

// The payload of an error that has the result of EncodeError().
inline constexpr char kErrorDetails[] = "loadline.dev/details";

// Returns the reason that WithReason() gave an error, or that follows from its code.
std::string ReasonOfError(const absl::Status& status);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_ERROR_DETAILS_H_
