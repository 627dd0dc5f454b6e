#include "core/drain/node_budget.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace loadline {

bool NodeAllowance::Rule::IsFor(RemovalReason reason) const {
  return reasons.empty() || absl::c_linear_search(reasons, reason);
}

NodeAllowance::NodeAllowance(std::span<const NodeBudget> budgets, NodeGroupSpan groups,
                             StrongSpan<GroupIndex, const int64_t> nodes, int64_t now_s)
    : rules_of_(groups.size()) {
  absl::flat_hash_map<absl::string_view, GroupIndex> named;
  for (const GroupIndex group : groups.indices()) named.emplace(groups[group].name, group);
  for (const NodeBudget& budget : budgets) {
    if (!Contain(budget.windows, now_s)) continue;
    std::vector<GroupIndex> of(groups.indices().begin(), groups.indices().end());
    if (!budget.groups.empty()) {
      absl::btree_set<GroupIndex> found;  // a name may be there twice
      for (const std::string& name : budget.groups) {
        if (const auto at = named.find(name); at != named.end()) found.insert(at->second);
      }
      of.assign(found.begin(), found.end());
    }
    AddRules(budget, of, nodes);
  }
}

void NodeAllowance::AddRules(const NodeBudget& budget, const std::vector<GroupIndex>& groups,
                             StrongSpan<GroupIndex, const int64_t> nodes) {
  int64_t all = 0;
  for (const GroupIndex group : groups) all += nodes[group];
  const auto add_rule = [&](int64_t there) {
    rules_.push_back({budget.reasons, budget.percent ? (there * budget.nodes + 99) / 100 : budget.nodes});
  };
  if (budget.together) add_rule(all);
  for (const GroupIndex group : groups) {
    if (!budget.together) add_rule(nodes[group]);
    rules_of_[group].push_back(rules_.size() - 1);
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
