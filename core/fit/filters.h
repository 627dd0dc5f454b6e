// The filters, in the order of kube-scheduler's default profile.
#ifndef LOADLINE_CORE_FIT_FILTERS_H_
#define LOADLINE_CORE_FIT_FILTERS_H_

#include <string>
#include <vector>

#include "core/base/resource_list.h"
#include "core/fit/node_filter.h"

namespace loadline {

// Each makes the filter for one pod; its rule is at the top of its file. Source: the plugins of
// k8s.io/kubernetes v1.36.3 and v1.37.2, pkg/scheduler/framework/plugins, with the feature gates at their
// defaults. MakeKnownFields() has none: it is in doubt about pods and nodes that state what we do not know.
MadeFilter MakeKnownFields(const FitContext& context);
MadeFilter MakeNodeUnschedulable(const FitContext& context);
MadeFilter MakeNodeName(const FitContext& context);
MadeFilter MakeTaintToleration(const FitContext& context);
MadeFilter MakeNodeAffinity(const FitContext& context);
MadeFilter MakeNodePorts(const FitContext& context);
MadeFilter MakeNodeResourcesFit(const FitContext& context);
MadeFilter MakeVolumeRestrictions(const FitContext& context);
MadeFilter MakeNodeVolumeLimits(const FitContext& context);
MadeFilter MakeVolumeBinding(const FitContext& context);
MadeFilter MakeVolumeZone(const FitContext& context);
MadeFilter MakePodTopologySpread(const FitContext& context);
MadeFilter MakeInterPodAffinity(const FitContext& context);
MadeFilter MakeDynamicResources(const FitContext& context);
MadeFilter MakeNodeDeclaredFeatures(const FitContext& context);
// Ours, see load_line.h.
MadeFilter MakeLoadLine(const FitContext& context);

// The resources that NodeResourcesFit compares with what a node has free, with what the pod requests of each:
// more than 0. In the order of the ids.
using CheckedRequest = ResourceAmounts::Entry;  // value > 0
std::vector<CheckedRequest> CheckedRequests(const IncomingPod& pod, const FitOptions& options);

// Returns whether the name is one like "example.com/gpu" that is not of Kubernetes' own.
bool IsExtendedName(absl::string_view name);

// The server of an extended resource on nodes that do not offer it.
enum class DeviceService {
  kNobody,       // known: no device class names it
  kDeviceClass,  // a device class does: DynamicResources decides
  kUnknown,      // the view does not have all device classes, and no node offers the resource
};
// Returns who serves the resource. If the view does not have all device classes, what some node offers is
// taken to be served by device plugins only: few clusters have classes, and no cluster that was dumped
// without them could be judged otherwise. Cost: O(device classes), then O(nodes) of the budget of the
// context.
DeviceService ServiceOf(ResourceId resource, const FitContext& context);

// Returns whether a toleration of the pod covers the taint. Cost: O(tolerations).
bool ToleratesTaint(const PodRules& rules, const Taint& taint);
// Returns whether the pod tolerates all taints of the node that keep pods away. Shared with spreading.
bool ToleratesTaints(const PodRules& rules, const NodeShape& node);
// Returns the first of these taints that it does not tolerate, such as "dedicated=db:NoSchedule"; empty:
// none.
std::string UntoleratedTaint(const PodShape& pod, const NodeShape& node);
// Returns whether nodeSelector and required node affinity of the pod match. Shared with spreading.
bool MatchesNodeAffinity(const PodRules& rules, const NodeLabels& node);
// Returns whether that depends on more than the shape of the node.
bool AffinityNamesNodes(const PodRules& rules);

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_FILTERS_H_
