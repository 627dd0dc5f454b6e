// Fields of pods and nodes that nobody here knows.
#ifndef LOADLINE_PLUGIN_CONVERT_KNOWN_FIELDS_H_
#define LOADLINE_PLUGIN_CONVERT_KNOWN_FIELDS_H_

#include <string>

#include "loadline/k8s/v1/core.pb.h"

namespace loadline {

// The annotation by which a client that trims objects names fields, separated by commas, that it does not
// know itself.
inline constexpr char kUnknownFieldsAnnotation[] = "loadline.dev/unknown-fields";

// A field of the spec that Kubernetes 1.37 does not have, as what the client's annotation says or as
// "spec.containers: field 31"; empty: there is none. Where nobody filters, such as in the environment of a
// container, fields are not looked at. Printable, at most 256 bytes.
// Cost: O(fields that the engine does not read).
std::string UnknownFieldOf(const k8s::v1::Pod& message);
std::string UnknownFieldOf(const k8s::v1::Node& message);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_KNOWN_FIELDS_H_
