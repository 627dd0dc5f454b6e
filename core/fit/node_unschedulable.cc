// NodeUnschedulable: a node with spec.unschedulable takes only pods that tolerate the taint of the same
// meaning.
#include <algorithm>

#include "core/fit/filters.h"

namespace loadline {
namespace {

class NodeUnschedulable : public NodeFilter {
 public:
  explicit NodeUnschedulable(const FitContext& context)
      : NodeFilter(FilterName::kNodeUnschedulable, Scope::kNodeShape), snapshot_(*context.snapshot) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (!snapshot_.node_shape(node).unschedulable) return true;
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable, "node(s) were unschedulable");
  }

 private:
  const Snapshot& snapshot_;
};

}  // namespace

MadeFilter MakeNodeUnschedulable(const FitContext& context) {
  static const Taint* const kTaint = new Taint{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  const std::vector<Toleration>& tolerations = context.rules->tolerations;
  if (std::any_of(tolerations.begin(), tolerations.end(),
                  [](const Toleration& toleration) { return toleration.Tolerates(*kTaint); })) {
    return {};
  }
  return {std::make_unique<NodeUnschedulable>(context), {}, {}};
}

}  // namespace loadline
