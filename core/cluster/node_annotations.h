// The annotations by which people say something about a node. A new one is a line in the enum and one in the
// table: then it is read, it is part of the node's fingerprint, and it keeps the node. Tests read all rows,
// that on its way here included (shim/view/planning.go).
#ifndef LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_
#define LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "core/cluster/pod_traits.h"

namespace loadline {

// Each forbids to delete the node, in every way in which a node may go. (A group that is sized as Escalator
// sizes it counts nodes with kNoDelete only, as Escalator does.)
enum class NodeAnnotation {
  kDoNotDisrupt,       // of Karpenter
  kScaleDownDisabled,  // of Cluster Autoscaler
  kNoDelete,           // of Escalator
};

// An annotation by which users forbid the removal of a node.
struct NodeAnnotationEntry {
  NodeAnnotation annotation;
  absl::string_view key;  // "karpenter.sh/do-not-disrupt"
  // Any value but the empty one states it; otherwise any but "false" does, of which only "true" is known.
  bool any_text = false;
};
// The table of all of them. Of several on one node, the first one is its reason.
std::span<const NodeAnnotationEntry> NodeAnnotations();

// Returns the annotation as a bit of NodeTraits::annotations.
constexpr uint32_t BitOf(NodeAnnotation annotation) { return uint32_t{1} << static_cast<int>(annotation); }

inline bool States(const NodeTraits& traits, NodeAnnotation annotation) {
  return (traits.annotations & BitOf(annotation)) != 0;
}

inline bool DeletionForbidden(const NodeTraits& traits) { return traits.annotations != 0; }

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_ANNOTATIONS_H_
