#include "core/drain/node_budget.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"

namespace loadline {

bool NodeAllowance::Rule::IsFor(RemovalReason reason) const {
  return reasons.empty() || absl::c_linear_search(reasons, reason);
}

NodeAllowance::NodeAllowance(std::span<const NodeBudget> budgets, std::span<const NodeGroup> groups,
                             std::span<const int64_t> nodes, int64_t now_s)
    : rules_(groups.size()) {
  for (const NodeBudget& budget : budgets) {
    if (!Contain(budget.windows, now_s)) continue;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!budget.groups.empty() && !absl::c_linear_search(budget.groups, groups[i].name)) continue;
      const int64_t most = budget.percent ? (nodes[i] * budget.nodes + 99) / 100 : budget.nodes;
      rules_[i].push_back({budget.reasons, most});
    }
  }
}

int64_t NodeAllowance::Left(int32_t group, RemovalReason reason) const {
  int64_t left = INT64_MAX;
  if (group < 0) return left;
  for (const Rule& rule : rules_[static_cast<size_t>(group)]) {
    if (rule.IsFor(reason)) left = std::min(left, std::max<int64_t>(0, rule.left));
  }
  return left;
}

bool NodeAllowance::Allows(int32_t group, std::span<const RemovalReason> reasons) const {
  if (group < 0) return true;
  return absl::c_all_of(rules_[static_cast<size_t>(group)], [&](const Rule& rule) {
    const auto taken = absl::c_count_if(reasons, [&](RemovalReason reason) { return rule.IsFor(reason); });
    return taken == 0 || taken <= rule.left;
  });
}

void NodeAllowance::Take(int32_t group, RemovalReason reason) {
  if (group < 0) return;
  for (Rule& rule : rules_[static_cast<size_t>(group)]) {
    if (rule.IsFor(reason)) --rule.left;
  }
}

}  // namespace loadline
