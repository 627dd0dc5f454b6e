#include "core/expand/share_growth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "core/expand/balance.h"
#include "core/fit/trial_memory.h"

namespace loadline {
namespace {

class Sharing {
 public:
  Sharing(const GrowableGroups& groups, Estimator* estimator, Snapshot* snapshot, WorkBudget* budget)
      : groups_(groups), estimator_(*estimator), snapshot_(*snapshot), budget_(budget) {
    for (const GrowableIndex group : groups.indices()) {
      sizes_.push_back(groups[group].target);
      const std::optional<int32_t> set = groups[group].balance_set;
      if (set.has_value()) sets_[*set].push_back(group);
    }
  }

  // The groups that may take these nodes: that of the plan, and the others of its set that take the pods.
  std::vector<GrowableIndex> TakersOf(const PlannedNodes& nodes) {
    const std::optional<int32_t> set = groups_[nodes.group].balance_set;
    if (!set.has_value()) return {nodes.group};
    std::vector<GrowableIndex> takers;
    for (const GrowableIndex group : sets_[*set]) {
      if (group == nodes.group || Holds(group, nodes.pods)) takers.push_back(group);
    }
    return takers;
  }

  // Gives the nodes to the takers.
  void Give(const PlannedNodes& nodes, const std::vector<GrowableIndex>& takers,
            std::vector<WantedNodes>* wanted) {
    std::vector<BalancedGroup> balanced;
    for (const GrowableIndex taker : takers) {
      balanced.push_back({groups_[taker].name, sizes_[taker], groups_[taker].max_nodes});
    }
    const std::vector<int64_t> sizes = BalanceGrowth(balanced, nodes.nodes);
    for (size_t i = 0; i < takers.size(); ++i) {
      const int64_t added = sizes[i] - balanced[i].size;
      if (added == 0) continue;
      sizes_[takers[i]] += added;
      wanted->push_back({takers[i], added, nodes.pods});
    }
  }

 private:
  bool Holds(GrowableIndex group, const std::vector<PodCount>& pods) {
    bool holds = true;
    snapshot_.Fork();
    {
      TrialMemory memory(budget_);
      holds = memory.Node(snapshot_);
      const NodeIndex node = holds ? estimator_.AddCopy(groups_[group], &memory) : NodeIndex{-1};
      for (const PodCount& entry : pods) {
        const size_t position = static_cast<size_t>(entry.pods);
        for (int64_t i = 0; i < entry.count && holds; ++i) {
          PodFit& fit = estimator_.fit(position);
          holds = memory.Pod(fit.UnitsPerNode()) && fit.Fits(node);
          if (holds) estimator_.Place(position, node);
        }
      }
    }
    snapshot_.Revert();
    estimator_.fresh().StartOver();
    return holds;
  }

  const GrowableGroups& groups_;
  Estimator& estimator_;
  Snapshot& snapshot_;
  WorkBudget* budget_;
  StrongVector<GrowableIndex, int64_t> sizes_;  // with what they were given
  absl::btree_map<int32_t, std::vector<GrowableIndex>> sets_;
};

std::vector<WantedNodes> AsPlanned(const std::vector<PlannedNodes>& nodes) {
  std::vector<WantedNodes> wanted;
  for (const PlannedNodes& run : nodes) wanted.push_back({run.group, run.nodes, run.pods});
  return wanted;
}

}  // namespace

std::vector<WantedNodes> ShareGrowth(const std::vector<PlannedNodes>& nodes, const GrowableGroups& groups,
                                     Estimator* estimator, Snapshot* snapshot, WorkBudget* budget) {
  Sharing sharing(groups, estimator, snapshot, budget);
  std::vector<std::pair<std::vector<GrowableIndex>, size_t>> turns;
  for (size_t i = 0; i < nodes.size(); ++i) turns.emplace_back(sharing.TakersOf(nodes[i]), i);
  // Nodes that few groups can take come first: what is left is shared around them.
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
  std::vector<WantedNodes> wanted;
  for (const auto& [takers, run] : turns) sharing.Give(nodes[run], takers, &wanted);
  int64_t before = 0;
  int64_t after = 0;
  for (const PlannedNodes& run : nodes) before += run.nodes;
  for (const WantedNodes& run : wanted) after += run.nodes;
  if (budget->ended() || after != before) return AsPlanned(nodes);
  // The order of groups, in which nodes of equal content come together.
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const WantedNodes& a, const WantedNodes& b) { return a.group < b.group; });
  return wanted;
}

}  // namespace loadline
