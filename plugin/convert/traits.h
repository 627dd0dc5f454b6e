// Decodes the traits of pods and nodes that planners read.
#ifndef LOADLINE_PLUGIN_CONVERT_TRAITS_H_
#define LOADLINE_PLUGIN_CONVERT_TRAITS_H_

#include "absl/strings/string_view.h"
#include "core/cluster/pod_traits.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/selectors.h"

namespace loadline {

// Without container_requests. A name or value in an annotation that means nothing counts as absent. A
// placeholder is what is labelled as one in `slack_namespace`, is owned by a ReplicaSet there, and has a
// priority as low as ours: anybody can write the label, but in other namespaces it says nothing.
PodTraits ReadPodTraits(const k8s::v1::Pod& message,
                        absl::string_view slack_namespace = kDefaultSlackNamespace);
NodeTraits ReadNodeTraits(const k8s::v1::Node& message);

// Annotations of a pod, a pod template or a workload.
SlackWish ReadSlackWish(const StringEntries& annotations);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_TRAITS_H_
