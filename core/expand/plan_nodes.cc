#include "core/expand/plan_nodes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/expand/balance.h"

namespace loadline {
namespace {

void Count(size_t pods, int64_t count, std::vector<PodCount>* counts) {
  const int32_t position = static_cast<int32_t>(pods);
  const auto at = std::lower_bound(counts->begin(), counts->end(), position,
                                   [](const PodCount& entry, int32_t wanted) { return entry.pods < wanted; });
  if (at != counts->end() && at->pods == position) {
    at->count += count;
  } else {
    counts->insert(at, {position, count});
  }
}

// Takes `count` pods off the end of `supply`.
void TakePods(std::vector<PodCount>* supply, int64_t count, std::vector<PodCount>* pods) {
  while (count > 0 && !supply->empty()) {
    PodCount& last = supply->back();
    const int64_t taken = std::min(count, last.count);
    Count(static_cast<size_t>(last.pods), taken, pods);
    count -= taken;
    last.count -= taken;
    if (last.count == 0) supply->pop_back();
  }
}

// One node of each of these groups after the other, and that so many times.
struct Turns {
  std::vector<GrowableIndex> groups;
  int64_t times;
};

// The nodes that each group of a type is still to get.
struct Quota {
  GrowableIndex group;
  int64_t nodes;
};

std::vector<Quota> QuotasOf(const PlanProblem& problem, const Packing& packing, int32_t type,
                            const GrowableGroups& groups) {
  std::vector<BalancedGroup> sizes;
  for (const GrowableIndex group : problem.groups[static_cast<size_t>(type)]) {
    sizes.push_back({groups[group].name, groups[group].target, groups[group].max_nodes});
  }
  int64_t nodes = 0;
  for (const PackedNodes& run : packing.nodes) nodes += run.type == type ? run.nodes : 0;
  const std::vector<int64_t> balanced = BalanceGrowth(sizes, nodes);
  std::vector<Quota> quotas;
  for (size_t i = 0; i < sizes.size(); ++i) {
    quotas.push_back({problem.groups[static_cast<size_t>(type)][i], balanced[i] - sizes[i].size});
  }
  return quotas;
}

// Gives each of `nodes` nodes to the group that has most of its share to come: every run is spread as well.
std::vector<Turns> ShareOut(int64_t nodes, std::vector<Quota>* quotas) {
  std::vector<Turns> shares;
  while (nodes > 0) {
    int64_t most = 0, next = 0;
    for (const Quota& quota : *quotas) most = std::max(most, quota.nodes);
    if (most == 0) break;
    Turns turns{{}, 0};
    for (const Quota& quota : *quotas) {
      if (quota.nodes == most) {
        turns.groups.push_back(quota.group);
      } else {
        next = std::max(next, quota.nodes);
      }
    }
    // The groups with most nodes to get take turns until others have as much.
    const int64_t width = static_cast<int64_t>(turns.groups.size());
    turns.times = std::min(most - next, nodes / width);
    if (turns.times == 0) {
      turns.groups.resize(static_cast<size_t>(nodes));
      turns.times = 1;
    }
    size_t taken = 0;
    for (Quota& quota : *quotas) {
      if (taken == turns.groups.size() || quota.group != turns.groups[taken]) continue;
      quota.nodes -= turns.times;
      ++taken;
    }
    nodes -= static_cast<int64_t>(taken) * turns.times;
    shares.push_back(std::move(turns));
  }
  return shares;
}

// Makes nodes of runs, and gives them pods.
class Supply {
 public:
  Supply(const PlanProblem& problem, bool one_by_one, WorkBudget* budget)
      : pods_(problem.pods), one_by_one_(one_by_one), budget_(budget) {
    for (std::vector<PodCount>& entry : pods_) std::reverse(entry.begin(), entry.end());
  }

  void Make(const PackedNodes& run, const Turns& turns) {
    int64_t left = turns.times;
    // Equal nodes cost so little together that they are made without work as well.
    while (left > 0 && (budget_->Spend() || !one_by_one_)) {
      const int64_t alike = one_by_one_ ? 0 : std::min(left, TimesAlike(run, turns));
      for (const GrowableIndex group : turns.groups) {
        WantedNodes& nodes = wanted_.emplace_back(WantedNodes{group, std::max<int64_t>(1, alike), {}});
        for (const auto& [item, count] : run.items) {
          const size_t position = static_cast<size_t>(item);
          if (alike == 0) {
            TakePods(&pods_[position], count, &nodes.pods);
            continue;
          }
          PodCount& last = pods_[position].back();
          Count(static_cast<size_t>(last.pods), count, &nodes.pods);
          last.count -= count * alike;
        }
      }
      for (const auto& [item, count] : run.items) {
        std::vector<PodCount>& entries = pods_[static_cast<size_t>(item)];
        if (!entries.empty() && entries.back().count == 0) entries.pop_back();
      }
      left -= std::max<int64_t>(1, alike);
    }
  }

  std::vector<WantedNodes> Wanted() && { return std::move(wanted_); }

 private:
  // How many times all nodes of a turn can take the same pods.
  int64_t TimesAlike(const PackedNodes& run, const Turns& turns) const {
    int64_t times = std::numeric_limits<int64_t>::max();
    for (const auto& [item, count] : run.items) {
      const std::vector<PodCount>& entries = pods_[static_cast<size_t>(item)];
      if (entries.empty()) continue;
      times = std::min(times, entries.back().count / count / static_cast<int64_t>(turns.groups.size()));
    }
    return times;
  }

  std::vector<std::vector<PodCount>> pods_;  // by item; those at the end go first
  bool one_by_one_;
  WorkBudget* budget_;
  std::vector<WantedNodes> wanted_;
};

}  // namespace

std::vector<WantedNodes> NodesOf(const PlanProblem& problem, const Packing& packing,
                                 const GrowableGroups& groups, bool one_by_one, WorkBudget* budget) {
  Supply supply(problem, one_by_one, budget);
  std::vector<Quota> quotas;
  int32_t type = -1;
  for (const PackedNodes& run : packing.nodes) {
    if (run.type != type) {
      type = run.type;
      quotas = QuotasOf(problem, packing, type, groups);
    }
    for (const Turns& turns : ShareOut(run.nodes, &quotas)) supply.Make(run, turns);
  }
  return std::move(supply).Wanted();
}

std::vector<WantedNodes> NodesOf(GrowableIndex group, const NodeEstimate& estimate) {
  std::vector<WantedNodes> wanted;
  for (const NodeRun& run : estimate.runs) {
    WantedNodes& nodes = wanted.emplace_back(WantedNodes{group, run.nodes, {}});
    for (const PodCount& entry : run.pods) Count(static_cast<size_t>(entry.pods), entry.count, &nodes.pods);
  }
  return wanted;
}

PlanNodes::PlanNodes(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups,
                     std::vector<int64_t> waiting, NodeLimit max_new_nodes, WorkBudget* budget)
    : estimator_(*estimator),
      snapshot_(*snapshot),
      groups_(groups),
      by_count_(estimator->AllOnlyNeedRoom()),
      first_new_(snapshot->node_end()),
      max_new_nodes_(max_new_nodes),
      waiting_(std::move(waiting)),
      added_(groups.size(), 0),
      budget_(budget),
      memory_(budget) {}

int64_t PlanNodes::pods_waiting() const { return Total(waiting_); }

int64_t PlanNodes::node_count() const { return std::accumulate(added_.begin(), added_.end(), int64_t{0}); }

NodeLimit PlanNodes::nodes_left() const { return LimitLeft(max_new_nodes_, node_count()); }

StrongVector<GrowableIndex, int64_t> PlanNodes::room() const {
  StrongVector<GrowableIndex, int64_t> room;
  for (const GrowableIndex group : groups_.indices()) {
    room.push_back(std::max<int64_t>(0, groups_[group].max_nodes - groups_[group].target - added_[group]));
  }
  return room;
}

double PlanNodes::cost() const {
  double cost = 0;
  for (const GrowableIndex group : groups_.indices()) {
    cost += UsdOf(groups_[group]) * static_cast<double>(added_[group]);
  }
  return cost;
}

std::vector<int64_t> PlanNodes::OnNewNodes() const {
  std::vector<int64_t> counts(waiting_.size(), 0);
  for (const NewNodes& run : nodes_) {
    for (const PodCount& entry : run.content.pods) {
      counts[static_cast<size_t>(entry.pods)] += entry.count * run.content.nodes;
    }
  }
  return counts;
}

std::vector<PlannedNodes> PlanNodes::Nodes() const {
  std::map<std::pair<GrowableIndex, std::vector<std::pair<int32_t, int64_t>>>, int64_t> alike;
  for (const NewNodes& run : nodes_) {
    std::vector<std::pair<int32_t, int64_t>> content;
    for (const PodCount& entry : run.content.pods) content.emplace_back(entry.pods, entry.count);
    alike[{run.content.group, std::move(content)}] += run.content.nodes;
  }
  std::vector<PlannedNodes> nodes;
  for (const auto& [key, count] : alike) {
    PlannedNodes& entry = nodes.emplace_back();
    entry.group = key.first;
    entry.nodes = count;
    for (const auto& [pods, each] : key.second) entry.pods.push_back({pods, each});
  }
  return nodes;
}

void PlanNodes::Place(std::vector<WantedNodes> wanted) {
  if (!by_count_) {
    std::vector<std::vector<PodCount>> to_place;
    AddToSnapshot(wanted, &to_place);
    PlaceInRounds(&to_place);
    PlaceTheRest();
    return;
  }
  for (WantedNodes& run : wanted) {
    added_[run.group] += run.nodes;
    for (const PodCount& entry : run.pods) {
      waiting_[static_cast<size_t>(entry.pods)] -= entry.count * run.nodes;
    }
    nodes_.push_back({std::move(run), NodeIndex{-1}});
  }
}

void PlanNodes::AddToSnapshot(const std::vector<WantedNodes>& wanted,
                              std::vector<std::vector<PodCount>>* to_place) {
  for (const WantedNodes& run : wanted) {
    for (int64_t i = 0; i < run.nodes && memory_.Node(snapshot_); ++i) {
      nodes_.push_back({{run.group, 1, {}}, estimator_.AddCopy(groups_[run.group], &memory_)});
      to_place->push_back(run.pods);
      ++added_[run.group];
    }
  }
}

// One pod of a kind per node and round: pods that spread have to take their domains in turn.
void PlanNodes::PlaceInRounds(std::vector<std::vector<PodCount>>* to_place) {
  bool progress = true;
  while (progress && !budget_->ended()) {
    progress = false;
    for (size_t i = 0; i < to_place->size(); ++i) {
      const NodeIndex node = nodes_[i].node;
      for (PodCount& entry : (*to_place)[i]) {
        const size_t pods = static_cast<size_t>(entry.pods);
        const bool only_room = estimator_.OnlyNeedsRoom(pods);
        PodFit& fit = estimator_.fit(pods);
        while (entry.count > 0 && waiting_[pods] > 0 && memory_.Pod(fit.UnitsPerNode()) && fit.Fits(node)) {
          Record(pods, node);
          --entry.count;
          progress = true;
          if (!only_room) break;
        }
      }
    }
  }
}

void PlanNodes::PlaceTheRest() {
  // Pods that went may let others in.
  bool progress = true;
  while (progress && !budget_->ended()) {
    progress = false;
    for (size_t pods = 0; pods < waiting_.size(); ++pods) {
      while (waiting_[pods] > 0 && memory_.Pod()) {
        std::optional<NodeIndex> node = estimator_.fresh().FirstFit(estimator_.fresh_pod(pods), budget_);
        if (!node.has_value()) {
          node = estimator_.existing().FirstFit(estimator_.existing_pod(pods), budget_);
        }
        if (!node.has_value()) break;
        Record(pods, *node);
        progress = true;
      }
    }
  }
  // Nodes that nothing came to are not needed.
  std::vector<NewNodes> used;
  for (NewNodes& node : nodes_) {
    if (node.content.pods.empty()) {
      snapshot_.RemoveNode(node.node);
      --added_[node.content.group];
    } else {
      used.push_back(std::move(node));
    }
  }
  nodes_ = std::move(used);
}

void PlanNodes::Record(size_t pods, NodeIndex node) {
  estimator_.Place(pods, node);
  --waiting_[pods];
  if (static_cast<int32_t>(node) >= first_new_) {
    const auto at =
        std::lower_bound(nodes_.begin(), nodes_.end(), node,
                         [](const NewNodes& entry, NodeIndex wanted) { return entry.node < wanted; });
    Count(pods, 1, &at->content.pods);
    return;
  }
  const int32_t position = static_cast<int32_t>(pods);
  if (existing_.empty() || existing_.back().node != node || existing_.back().pods.pods != position) {
    existing_.push_back({node, {position, 0}});
  }
  ++existing_.back().pods.count;
}

std::vector<WantedNodes> PlanNodes::Contents() const {
  std::vector<WantedNodes> contents;
  for (const NewNodes& run : nodes_) contents.push_back(run.content);
  return contents;
}

}  // namespace loadline
