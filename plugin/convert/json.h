// Objects of Kubernetes as JSON.
#ifndef LOADLINE_PLUGIN_CONVERT_JSON_H_
#define LOADLINE_PLUGIN_CONVERT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Returns whether bytes are meant as JSON. No protobuf of an object begins like this: with a group.
inline bool IsJson(absl::string_view bytes) { return !bytes.empty() && (bytes[0] == '{' || bytes[0] == '['); }

// Returns the protobuf of an object that is given as JSON. `message` is the name of the message that restates
// its fields, such as "loadline.k8s.v1.Pod", and `type` that of the type, whose last part is its kind. Fields
// that the message does not have are passed over. Where one of them may be a rule of placement that nobody
// here knows, the object says so: see known_fields.h.
// Errors: kInvalidArgument  no JSON, or a value of the wrong type; names the path, and the object as well
//                           where that can be read: `spec.containers[0].name: is a number, not a text, in
//                           Pod "default/web"`
// Cost: O(bytes), with memory for the result only.
absl::StatusOr<std::string> JsonToWire(absl::string_view json, absl::string_view message,
                                       absl::string_view type);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_JSON_H_
