// What people say about a node by annotations.
#ifndef LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_
#define LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_

#include "core/cluster/pod_traits.h"

namespace loadline {

// Whether an annotation forbids to delete the node: cluster-autoscaler.kubernetes.io/scale-down-disabled:
// "true", karpenter.sh/do-not-disrupt: "true", or atlassian.com/no-delete that is not empty. It holds for
// every way in which a node may go.
inline bool DeletionForbidden(const NodeTraits& traits) {
  return traits.scale_down_disabled || traits.no_delete || traits.do_not_disrupt;
}

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_
