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

// For each run of one type the groups of its nodes.
std::vector<std::vector<int32_t>> ShareRuns(const PlanProblem& problem, const Packing& packing, int32_t type,
                                            const std::vector<PlanGroup>& groups) {
  const std::vector<int32_t>& alike = problem.groups[static_cast<size_t>(type)];
  std::vector<BalancedGroup> sizes;
  for (const int32_t g : alike) {
    const PlanGroup& group = groups[static_cast<size_t>(g)];
    sizes.push_back({group.node.name, group.size.current, group.size.max});
  }
  int64_t nodes = 0;
  for (const PackedNodes& run : packing.nodes) nodes += run.type == type ? run.nodes : 0;
  std::vector<int64_t> quota = BalanceGrowth(sizes, nodes);
  for (size_t i = 0; i < quota.size(); ++i) quota[i] -= sizes[i].size;
  std::vector<std::vector<int32_t>> shares;
  for (const PackedNodes& run : packing.nodes) {
    if (run.type != type) continue;
    std::vector<int32_t>& share = shares.emplace_back();
    // Each node to the group that has most of its share to come: every run is spread as well.
    for (int64_t i = 0; i < run.nodes; ++i) {
      const size_t most = static_cast<size_t>(std::max_element(quota.begin(), quota.end()) - quota.begin());
      if (quota[most] <= 0) break;
      --quota[most];
      share.push_back(alike[most]);
    }
  }
  return shares;
}

}  // namespace

std::vector<WantedNode> NodesOf(const PlanProblem& problem, const Packing& packing,
                                const std::vector<PlanGroup>& groups) {
  std::vector<std::vector<PodCount>> supply = problem.pods;
  for (std::vector<PodCount>& entry : supply) std::reverse(entry.begin(), entry.end());
  std::vector<WantedNode> wanted;
  std::vector<std::vector<int32_t>> shares;
  size_t next = 0;
  int32_t type = -1;
  for (const PackedNodes& run : packing.nodes) {
    if (run.type != type) {
      type = run.type;
      shares = ShareRuns(problem, packing, type, groups);
      next = 0;
    }
    for (const int32_t group : shares[next]) {
      WantedNode& node = wanted.emplace_back(WantedNode{group, {}});
      for (size_t item = 0; item < run.items.size(); ++item) {
        TakePods(&supply[item], run.items[item], &node.pods);
      }
    }
    ++next;
  }
  return wanted;
}

std::vector<WantedNode> NodesOf(int32_t group, const NodeEstimate& estimate) {
  std::vector<WantedNode> wanted;
  for (const NodeRun& run : estimate.runs) {
    WantedNode node{group, {}};
    for (const PodCount& entry : run.pods) Count(static_cast<size_t>(entry.pods), entry.count, &node.pods);
    wanted.insert(wanted.end(), static_cast<size_t>(run.nodes), node);
  }
  return wanted;
}

PlanNodes::PlanNodes(Estimator* estimator, Snapshot* snapshot, const std::vector<PlanGroup>& groups,
                     std::vector<int64_t> waiting, int64_t max_new_nodes)
    : estimator_(*estimator),
      snapshot_(*snapshot),
      groups_(groups),
      by_count_(estimator->AllOnlyNeedRoom()),
      first_new_(snapshot->node_end()),
      max_new_nodes_(max_new_nodes),
      waiting_(std::move(waiting)),
      added_(groups.size(), 0) {}

int64_t PlanNodes::pods_waiting() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), int64_t{0});
}

int64_t PlanNodes::nodes_left() const {
  if (max_new_nodes_ == kNoLimit) return kNoLimit;
  const int64_t left = max_new_nodes_ - static_cast<int64_t>(nodes_.size());
  return left > 0 ? left : kForbidden;
}

std::vector<int64_t> PlanNodes::room() const {
  std::vector<int64_t> room;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const GroupSize size = groups_[group].size;
    room.push_back(std::max<int64_t>(0, size.max - size.current - added_[group]));
  }
  return room;
}

double PlanNodes::cost() const {
  double cost = 0;
  for (size_t group = 0; group < groups_.size(); ++group) {
    cost += groups_[group].usd_per_hour * static_cast<double>(added_[group]);
  }
  return cost;
}

std::vector<int64_t> PlanNodes::OnNewNodes() const {
  std::vector<int64_t> counts(waiting_.size(), 0);
  for (const NewNode& node : nodes_) {
    for (const PodCount& entry : node.pods) counts[static_cast<size_t>(entry.pods)] += entry.count;
  }
  return counts;
}

std::vector<PlannedNodes> PlanNodes::Nodes() const {
  std::map<std::pair<int32_t, std::vector<std::pair<int32_t, int64_t>>>, int64_t> alike;
  for (const NewNode& node : nodes_) {
    std::vector<std::pair<int32_t, int64_t>> content;
    for (const PodCount& entry : node.pods) content.emplace_back(entry.pods, entry.count);
    ++alike[{node.group, std::move(content)}];
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

void PlanNodes::Place(std::vector<WantedNode> wanted, WorkBudget* budget) {
  for (const WantedNode& node : wanted) ++added_[static_cast<size_t>(node.group)];
  if (!by_count_) {
    PlaceInRounds(&wanted, budget);
    PlaceTheRest(budget);
    return;
  }
  for (WantedNode& node : wanted) {
    for (const PodCount& entry : node.pods) waiting_[static_cast<size_t>(entry.pods)] -= entry.count;
    nodes_.push_back({node.group, NodeIndex{-1}, std::move(node.pods)});
  }
}

// One pod of a kind per node and round: pods that spread have to take their domains in turn.
void PlanNodes::PlaceInRounds(std::vector<WantedNode>* wanted, WorkBudget* budget) {
  for (const WantedNode& node : *wanted) {
    nodes_.push_back({node.group, estimator_.AddCopy(groups_[static_cast<size_t>(node.group)].node), {}});
  }
  bool progress = true;
  while (progress && !budget->ended()) {
    progress = false;
    for (size_t i = 0; i < wanted->size(); ++i) {
      const NodeIndex node = nodes_[i].node;
      for (PodCount& entry : (*wanted)[i].pods) {
        const size_t pods = static_cast<size_t>(entry.pods);
        const bool only_room = estimator_.OnlyNeedsRoom(pods);
        while (entry.count > 0 && waiting_[pods] > 0 && budget->Spend() && estimator_.fit(pods).Fits(node)) {
          Record(pods, node);
          --entry.count;
          progress = true;
          if (!only_room) break;
        }
      }
    }
  }
}

void PlanNodes::PlaceTheRest(WorkBudget* budget) {
  // Pods that went may let others in.
  bool progress = true;
  while (progress && !budget->ended()) {
    progress = false;
    for (size_t pods = 0; pods < waiting_.size(); ++pods) {
      while (waiting_[pods] > 0 && budget->Spend()) {
        std::optional<NodeIndex> node = estimator_.fresh().FirstFit(estimator_.fresh_pod(pods));
        if (!node.has_value()) node = estimator_.existing().FirstFit(estimator_.existing_pod(pods));
        if (!node.has_value()) break;
        Record(pods, *node);
        progress = true;
      }
    }
  }
  // Nodes that nothing came to are not needed.
  std::vector<NewNode> used;
  for (NewNode& node : nodes_) {
    if (node.pods.empty()) {
      snapshot_.RemoveNode(node.node);
      --added_[static_cast<size_t>(node.group)];
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
                         [](const NewNode& entry, NodeIndex wanted) { return entry.node < wanted; });
    Count(pods, 1, &at->pods);
    return;
  }
  const int32_t position = static_cast<int32_t>(pods);
  if (existing_.empty() || existing_.back().node != node || existing_.back().pods.pods != position) {
    existing_.push_back({node, {position, 0}});
  }
  ++existing_.back().pods.count;
}

std::vector<WantedNode> PlanNodes::Contents() const {
  std::vector<WantedNode> contents;
  for (const NewNode& node : nodes_) contents.push_back({node.group, node.pods});
  return contents;
}

}  // namespace loadline
