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
    : rules_of_(groups.size()) {
  for (const NodeBudget& budget : budgets) {
    if (!Contain(budget.windows, now_s)) continue;
    int64_t there = 0;
    bool is_shared = false;  // the last rule is that of groups together
    for (const GroupIndex group : groups.indices()) {
      if (!budget.groups.empty() && !absl::c_linear_search(budget.groups, groups[group].name)) continue;
      there = nodes[group] + (budget.together ? there : 0);
      if (!is_shared) rules_.push_back({budget.reasons, 0});
      is_shared = budget.together;
      rules_.back().left = budget.percent ? (there * budget.nodes + 99) / 100 : budget.nodes;
      rules_of_[group].push_back(rules_.size() - 1);
    }
  }
}

int64_t NodeAllowance::Left(std::optional<GroupIndex> group, RemovalReason reason) const {
  int64_t left = INT64_MAX;
  if (!group.has_value()) return left;
  for (const size_t i : rules_of_[*group]) {
    if (rules_[i].IsFor(reason)) left = std::min(left, std::max<int64_t>(0, rules_[i].left));
  }
  return left;
}

bool NodeAllowance::Allows(std::optional<GroupIndex> group, std::span<const RemovalReason> reasons) const {
  if (!group.has_value()) return true;
  return absl::c_all_of(rules_of_[*group], [&](size_t i) {
    const auto taken =
        absl::c_count_if(reasons, [&](RemovalReason reason) { return rules_[i].IsFor(reason); });
    return taken == 0 || taken <= rules_[i].left;
  });
}

void NodeAllowance::Take(std::optional<GroupIndex> group, RemovalReason reason) {
  if (!group.has_value()) return;
  for (const size_t i : rules_of_[*group]) {
    if (rules_[i].IsFor(reason)) --rules_[i].left;
  }
}

}  // namespace loadline
