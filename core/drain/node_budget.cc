#include "core/drain/node_budget.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"

namespace loadline {

bool NodeAllowance::Rule::IsFor(RemovalReason reason) const {
  return reasons.empty() || absl::c_linear_search(reasons, reason);
}

NodeAllowance::NodeAllowance(std::span<const NodeBudget> budgets, NodeGroupSpan groups,
                             StrongSpan<GroupIndex, const int64_t> nodes, int64_t now_s)
    : rules_(groups.size()) {
  for (const NodeBudget& budget : budgets) {
    if (!Contain(budget.windows, now_s)) continue;
    for (const GroupIndex group : groups.indices()) {
      if (!budget.groups.empty() && !absl::c_linear_search(budget.groups, groups[group].name)) continue;
      const int64_t most = budget.percent ? (nodes[group] * budget.nodes + 99) / 100 : budget.nodes;
      rules_[group].push_back({budget.reasons, most});
    }
  }
}

int64_t NodeAllowance::Left(std::optional<GroupIndex> group, RemovalReason reason) const {
  int64_t left = INT64_MAX;
  if (!group.has_value()) return left;
  for (const Rule& rule : rules_[*group]) {
    if (rule.IsFor(reason)) left = std::min(left, std::max<int64_t>(0, rule.left));
  }
  return left;
}

bool NodeAllowance::Allows(std::optional<GroupIndex> group, std::span<const RemovalReason> reasons) const {
  if (!group.has_value()) return true;
  return absl::c_all_of(rules_[*group], [&](const Rule& rule) {
    const auto taken = absl::c_count_if(reasons, [&](RemovalReason reason) { return rule.IsFor(reason); });
    return taken == 0 || taken <= rule.left;
  });
}

void NodeAllowance::Take(std::optional<GroupIndex> group, RemovalReason reason) {
  if (!group.has_value()) return;
  for (Rule& rule : rules_[*group]) {
    if (rule.IsFor(reason)) --rule.left;
  }
}

}  // namespace loadline
