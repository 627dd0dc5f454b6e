#include "core/drain/lasting_blockers.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "core/cluster/pod_role.h"
#include "core/drain/rules.h"

namespace loadline {
namespace {

ClusterObjects BudgetsAlone(const ClusterObjects& objects) {
  ClusterObjects budgets;
  for (const auto& [key, object] : objects.of(ObjectKind::kDisruptionBudget)) budgets.Set(object);
  return budgets;
}

// Returns whether two states of a budget refuse the same pods for good.
bool RefusesAlike(const std::pair<const ObjectKey, ClusterObject>& a,
                  const std::pair<const ObjectKey, ClusterObject>& b) {
  if (a.first != b.first) return false;
  const auto& before = *std::get_if<DisruptionBudget>(&a.second.content);
  const auto& after = *std::get_if<DisruptionBudget>(&b.second.content);
  return NeverAllows(before) == NeverAllows(after) &&
         before.selector_error.empty() == after.selector_error.empty() && before.selector == after.selector;
}

// Asks the rules with all flags that let pods go, without budgets and objects. A protection for some time
// counts as if it had just begun.
bool BlocksByItself(const PodShape& shape) {
  static const auto* const kNoObjects = new ClusterObjects;
  static const auto* const kNoBudgets = new DisruptionBudgets;
  static const auto* const kOptions = new DrainRuleOptions{.skip_nodes_with_system_pods = false,
                                                           .skip_nodes_with_local_storage = false,
                                                           .skip_nodes_with_custom_controller_pods = false};
  const PodQuestion question = {.shape = shape,
                                .node_name = "",
                                .node_uid = "",
                                .objects = *kNoObjects,
                                .budgets = *kNoBudgets,
                                .options = *kOptions,
                                .now_s = INT64_MIN};
  return JudgePod(question).outcome == PodOutcome::kBlock;
}

}  // namespace

LastingBlockers::LastingBlockers(const ClusterObjects& objects)
    : objects_(BudgetsAlone(objects)), budgets_(objects_) {}

bool LastingBlockers::Blocks(const PodShape& shape) const {
  const PodTraits& traits = TraitsOf(shape);
  // A mirror pod is judged by its node, and what is being deleted leaves the node.
  if (shape.finished || traits.mirror || traits.deleted_s.has_value() || IsDaemonPod(traits)) return false;
  return BlocksByItself(shape) || (!IsExpendable(traits) && budgets_.NeverAllow(shape));
}

bool LastingBlockers::Holds(const ClusterObjects& objects) const {
  const auto& before = objects_.of(ObjectKind::kDisruptionBudget);
  const auto& after = objects.of(ObjectKind::kDisruptionBudget);
  return std::equal(before.begin(), before.end(), after.begin(), after.end(), RefusesAlike);
}

std::shared_ptr<const LastingBlockers> LastingBlockersCache::For(const ClusterObjects& objects) {
  if (kept_ != nullptr && fingerprint_ == objects.fingerprint()) return kept_;
  if (kept_ == nullptr || !kept_->Holds(objects)) kept_ = std::make_shared<const LastingBlockers>(objects);
  fingerprint_ = objects.fingerprint();
  return kept_;
}

}  // namespace loadline
