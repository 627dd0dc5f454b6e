#include "test/core/drain/naive_checker.h"

#include <algorithm>
#include <map>
#include <set>

#include "test/core/drain/naive_parts.h"

namespace loadline {
namespace {

bool Covered(const DrainCluster& cluster, const FitPod& pod) {
  return std::any_of(cluster.budgets.begin(), cluster.budgets.end(), [&](const DrainBudget& budget) {
    return budget.namespace_name == pod.namespace_name &&
           (!budget.budget.selector_error.empty() || Selects(budget.budget.selector, pod));
  });
}

bool KnownController(const std::string& kind) {
  return kind == "ReplicationController" || kind == "ReplicaSet" || kind == "StatefulSet" || kind == "Job";
}

class PlanRulesCheck : public PlanCheck {
 public:
  using PlanCheck::PlanCheck;

  void Run() {
    CheckPartition();
    if (plan_.braked && !plan_.remove.empty()) Report("D8", "a brake, and nodes go");
    if (!plan_.braked && state_.last_now_s.value_or(cluster_.now_s) > cluster_.now_s) {
      Report("D8", "the clock went back, and there is no brake");
    }
    for (const NamedRemoval& removal : plan_.remove) CheckPods(removal);
    CheckSizes();
    CheckClusterMinimum();
    CheckStarts();
  }

 private:
  void CheckPartition() {
    std::multiset<std::string> seen(plan_.keep.begin(), plan_.keep.end());
    for (const NamedRemoval& removal : plan_.remove) seen.insert(removal.node);
    for (const auto& [name, node] : nodes_) {
      if (seen.count(name) != 1) Report("G", name + " is not reported once");
    }
    if (seen.size() != nodes_.size()) Report("G", "a node that is not there");
    for (const NamedRemoval& removal : plan_.remove) {
      if (Deleting(removal.node)) Report("D10", removal.node + " is being deleted already");
      if (nodes_.contains(removal.node) && nodes_[removal.node]->node.traits.annotations != 0) {
        Report("D3", removal.node + " must not be scaled down");
      }
    }
  }

  // Each pod that has to move does so once, and no other does.
  void CheckPods(const NamedRemoval& removal) {
    if (!nodes_.contains(removal.node)) return;
    const DrainNode& node = *nodes_[removal.node];
    std::vector<size_t> movable;
    bool waits = false;
    if (!MovablePods(cluster_, node, &movable, &waits, state_.options.rules))
      Report("D3", removal.node + " has a pod that must not move");
    std::multiset<std::string> expected;
    bool real = false;
    for (const size_t i : movable) {
      expected.insert(node.pods[i].name);
      real = real || !node.pods[i].traits.placeholder;
    }
    for (const TestPlaceholder& placeholder : cluster_.placeholders) {
      if (placeholder.node == removal.node) expected.insert(placeholder.name);
    }
    std::multiset<std::string> moved;
    for (const NamedMove& move : removal.moves) {
      moved.insert(move.pod);
      if (!nodes_.contains(move.to)) {
        Report("D4", "no node " + move.to);
        continue;
      }
      const FitNode& to = nodes_[move.to]->node;
      if (removed_.contains(move.to)) Report("D4", move.to + " goes, and takes a pod");
      if (Deleting(move.to) || to.unschedulable || !to.traits.ready) Report("D4", move.to + " takes no pods");
    }
    if (moved != expected) Report("D4", "other pods of " + removal.node + " move than have to");
    if (removal.empty == real) Report("D4", removal.node + " is not reported empty as it is");
    if (removal.start && waits) Report("D3", removal.node + " goes before a pod that may complete");
  }

  void CheckSizes() {
    for (const GroupIndex group : cluster_.groups.indices()) {
      int64_t registered = 0;
      int64_t going = 0;
      int64_t started = 0;
      for (const auto& [name, node] : nodes_) {
        if (node->group != group) continue;
        ++registered;
        going += Deleting(name) || removed_.contains(name);
      }
      const NodeGroup& limits = cluster_.groups[group];
      bool any = false;
      for (const NamedRemoval& removal : plan_.remove) {
        if (!nodes_.contains(removal.node) || nodes_[removal.node]->group != group) continue;
        any = true;
        started += removal.start;
      }
      for (const std::string& node : state_.deleting)
        started += nodes_.contains(node) && nodes_[node]->group == group && any;
      if (any && std::min(registered, limits.target) - going < limits.min_nodes) {
        Report("D2", limits.name + " falls below its minimum");
      }
      const bool starts =
          std::any_of(plan_.remove.begin(), plan_.remove.end(), [&](const NamedRemoval& removal) {
            return removal.start && nodes_.contains(removal.node) && nodes_[removal.node]->group == group;
          });
      if (limits.atomic && starts && started < std::min(registered, limits.target)) {
        Report("D2", limits.name + " goes in part");
      }
    }
    for (const NamedRemoval& removal : plan_.remove) {
      if (nodes_.contains(removal.node) && !nodes_[removal.node]->group.has_value())
        Report("D2", removal.node + " has no group");
    }
  }

  // Counts what stays once the whole plan and all deletions are done.
  void CheckClusterMinimum() {
    if (plan_.remove.empty()) return;
    const ClusterMinimum& least = state_.options.minimum;
    int64_t nodes = 0;
    std::map<std::string, int64_t> sums;
    for (const auto& [name, node] : nodes_) {
      if (Deleting(name) || removed_.contains(name)) continue;
      ++nodes;
      for (const auto& [resource, amount] : node->node.allocatable) sums[resource] += amount;
    }
    if (nodes < least.nodes) Report("D2", "fewer nodes than the cluster's minimum");
    if (sums["cpu"] < least.amounts.cpu) Report("D2", "less cpu than the cluster's minimum");
    if (sums["memory"] < least.amounts.memory) Report("D2", "less memory than the cluster's minimum");
  }

  void CheckStarts() {
    int64_t starts = 0;
    int64_t drains = 0;
    bool risky = false;
    for (const std::string& node : state_.deleting) {
      if (!nodes_.contains(node)) continue;
      ++starts;
      drains += state_.draining.contains(node);
      risky = risky || state_.risky.contains(node);
    }
    const int64_t drains_under_way = drains;
    bool atomic = false;
    bool any = false;
    for (const NamedRemoval& removal : plan_.remove) {
      if (removal.since_s > cluster_.now_s) Report("D7", removal.node + " has a timer of the future");
      if (!removal.start || !nodes_.contains(removal.node)) continue;
      const DrainNode& node = *nodes_[removal.node];
      const int64_t wait = node.node.traits.ready ? 600 : 1200;
      if (cluster_.now_s - removal.since_s <= wait) Report("D7", removal.node + " goes too early");
      any = true;
      ++starts;
      drains += !removal.empty;
      if (!removal.empty && drains_under_way > 0 && state_.options.deletion.exclusive) {
        Report("D6", removal.node + " is drained beside others");
      }
      if (!removal.empty && risky) Report("D1", removal.node + " is drained beside a risky one");
      atomic = atomic || (node.group.has_value() && cluster_.groups[*node.group].atomic);
    }
    if (!any || atomic) return;
    const DeletionOptions& limits = state_.options.deletion;
    if (starts > limits.max_scale_down_parallelism) Report("D6", "too many nodes at once");
    if (drains > drains_under_way && drains > limits.max_drain_parallelism)
      Report("D6", "too many drains at once");
  }
};

}  // namespace

NamedPlan Named(const DrainModel& model, const DrainPlan& plan) {
  NamedPlan named;
  named.braked = plan.brake != DrainBrake::kNone;
  const ClusterState& state = *model.problem().cluster;
  for (const DrainRemoval& removal : plan.remove) {
    NamedRemoval entry{
        model.name(removal.slot), removal.empty, removal.risky, removal.start, removal.since_s, {}};
    for (const DrainMove& move : removal.moves()) {
      if (move.pod.is_placeholder()) {
        entry.moves.push_back({model.problem().placeholders[move.pod.position()].name, model.name(move.to)});
        continue;
      }
      const absl::string_view pod = state.pods(removal.slot).name(move.pod.position());
      entry.moves.push_back({std::string(pod.data(), pod.size()), model.name(move.to)});
    }
    named.remove.push_back(std::move(entry));
  }
  for (const DrainKeep& keep : plan.keep) named.keep.push_back(model.name(keep.slot));
  return named;
}

bool MovablePods(const DrainCluster& cluster, const DrainNode& node, std::vector<size_t>* pods, bool* waits,
                 const DrainRuleOptions& rules) {
  *waits = false;
  for (size_t i = 0; i < node.pods.size(); ++i) {
    const FitPod& pod = node.pods[i];
    const PodTraits& traits = pod.traits;
    if (traits.placeholder) {
      if (!Finished(pod)) pods->push_back(i);
      continue;
    }
    if (traits.mirror) {
      if (traits.owner.has_value() && (traits.owner->kind != "Node" || traits.owner->name != node.node.name))
        return false;
      continue;
    }
    if (traits.deleted_s.has_value() && *traits.deleted_s + 60 < cluster.now_s) continue;
    if (IsDaemon(pod)) continue;
    if (traits.safe_to_evict != SafeToEvict::kYes) {
      if (Finished(pod)) continue;
      if (traits.safe_to_evict == SafeToEvict::kOnCompletion) {
        *waits = true;
        continue;
      }
      if (!traits.owner.has_value()) return false;
      if (rules.skip_nodes_with_custom_controller_pods && !KnownController(traits.owner->kind)) return false;
      const bool of_system =
          pod.namespace_name == "kube-system" && rules.skip_nodes_with_system_pods && !Covered(cluster, pod);
      const bool old =
          traits.created_s.has_value() && *traits.created_s < cluster.now_s - rules.system_pod_timeout_s;
      if (of_system && !old) return false;
      // An old one moves, whatever else it says.
      if (!of_system && traits.safe_to_evict == SafeToEvict::kNo) return false;
      if (!of_system && rules.skip_nodes_with_local_storage && !traits.local_volume.empty()) return false;
    }
    if (!Finished(pod)) pods->push_back(i);
  }
  return true;
}

std::vector<std::string> CheckPlan(const DrainCluster& cluster, const CheckedState& state,
                                   const NamedPlan& plan) {
  std::vector<std::string> errors;
  PlanRulesCheck(cluster, state, plan, &errors).Run();
  CheckBudgets(cluster, state, plan, &errors);
  CheckUnderWay(cluster, state, plan, &errors);
  CheckPlacement(cluster, state, plan, &errors);
  return errors;
}

}  // namespace loadline
