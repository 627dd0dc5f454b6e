// TaintToleration: every taint with effect NoSchedule or NoExecute has to be tolerated. A toleration's empty
// effect or key means all of them; tolerationSeconds plays no part. The operators Lt and Gt sit behind a gate
// that is off, and tolerate nothing.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

class TaintToleration : public NodeFilter {
 public:
  explicit TaintToleration(const FitContext& context)
      : NodeFilter(FilterName::kTaintToleration, Scope::kNodeShape),
        snapshot_(*context.snapshot),
        rules_(*context.rules) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (ToleratesTaints(rules_, snapshot_.node_shape(node))) return true;
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable, "node(s) had untolerated taint(s)");
  }

 private:
  const Snapshot& snapshot_;
  const PodRules& rules_;
};

}  // namespace

bool ToleratesTaint(const PodRules& rules, const Taint& taint) {
  return std::any_of(rules.tolerations.begin(), rules.tolerations.end(),
                     [&](const Toleration& toleration) { return toleration.Tolerates(taint); });
}

bool ToleratesTaints(const PodRules& rules, const NodeShape& node) {
  return std::all_of(node.taints.begin(), node.taints.end(),
                     [&](const Taint& taint) { return !taint.Repels() || ToleratesTaint(rules, taint); });
}

std::string UntoleratedTaint(const PodShape& pod, const NodeShape& node) {
  const PodRules none;
  const PodRules& rules = pod.rules == nullptr ? none : *pod.rules;
  for (const Taint& taint : node.taints) {
    if (!taint.Repels() || ToleratesTaint(rules, taint)) continue;
    return absl::StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect);
  }
  return "";
}

MadeFilter MakeTaintToleration(const FitContext& context) {
  return {std::make_unique<TaintToleration>(context), {}, {}};
}

}  // namespace loadline
