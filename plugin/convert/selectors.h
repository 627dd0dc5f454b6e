// Labels, selectors and taints of Kubernetes objects to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_SELECTORS_H_
#define LOADLINE_PLUGIN_CONVERT_SELECTORS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/cluster/labels.h"
#include "google/protobuf/repeated_field.h"
#include "loadline/k8s/v1/core.pb.h"

namespace loadline {

using StringEntries = google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>;

Labels ReadLabels(const StringEntries& entries);

// The value of an annotation, or nullptr. Of equal keys the last one holds.
const std::string* FindEntry(const StringEntries& entries, absl::string_view key);

// The most requirements of one selector: each pod, namespace or node is matched with all of them. Labels that
// it names count, and so do the keys of labels that it copies.
inline constexpr int kMaxSelectorRequirements = 256;

// Errors: kInvalidArgument, spec.selector of an object has more than kMaxSelectorRequirements.
absl::Status CheckSelectorSize(const k8s::v1::LabelSelector& message);
// Errors: kInvalidArgument, spec.nodeAffinity of a volume has more than twice as many terms and requirements.
absl::Status CheckSelectorSize(const k8s::v1::NodeSelector& message);

// A selector over labels of pods, namespaces or volumes. `present`: the field is there; without it nothing
// matches. One that Kubernetes refuses to parse sets `error`, which then says what is wrong, and matches
// nothing.
LabelSelector ReadLabelSelector(const k8s::v1::LabelSelector& message, bool present, std::string* error);

// A node selector. Terms without any requirement, and those that do not parse, match nothing: they are
// invalid.
NodeSelector ReadNodeSelector(const k8s::v1::NodeSelector& message);

// An In requirement; false when Kubernetes refuses it.
bool ReadInRequirement(const std::string& key, const google::protobuf::RepeatedPtrField<std::string>& values,
                       Requirement* requirement);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SELECTORS_H_
