#include "core/cluster/node_annotations.h"

namespace loadline {

std::span<const NodeAnnotationEntry> NodeAnnotations() {
  static constexpr NodeAnnotationEntry kTable[] = {
      {NodeAnnotation::kDoNotDisrupt, "karpenter.sh/do-not-disrupt"},
      {NodeAnnotation::kScaleDownDisabled, "cluster-autoscaler.kubernetes.io/scale-down-disabled"},
      {NodeAnnotation::kNoDelete, "atlassian.com/no-delete", /*any_text=*/true},
  };
  return kTable;
}

}  // namespace loadline
