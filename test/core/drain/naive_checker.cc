#include "test/core/drain/naive_checker.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace loadline {
namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";

bool Finished(const FitPod& pod) { return pod.traits.phase != PodPhase::kUnfinished; }

std::string LabelOf(const std::vector<Label>& labels, const std::string& key) {
  for (const Label& label : labels) {
    if (label.key == key) return label.value;
  }
  return "";
}

// "In" with one value.
bool Selects(const LabelSelector& selector, const FitPod& pod) {
  if (selector.nothing) return false;
  return std::all_of(selector.requirements.begin(), selector.requirements.end(),
                     [&](const Requirement& requirement) {
                       return LabelOf(pod.labels, requirement.key) == requirement.values.at(0);
                     });
}

std::string ValueOf(const FitNode& node, const std::string& key) {
  return key == kHostname ? node.name : LabelOf(node.labels, key);
}

bool IsDaemon(const FitPod& pod) {
  return pod.traits.daemon_by_annotation ||
         (pod.traits.owner.has_value() && pod.traits.owner->kind == "DaemonSet");
}

bool Covered(const DrainCluster& cluster, const FitPod& pod) {
  return std::any_of(cluster.budgets.begin(), cluster.budgets.end(), [&](const DrainBudget& budget) {
    return budget.namespace_name == pod.namespace_name &&
           (!budget.budget.selector_error.empty() || Selects(budget.budget.selector, pod));
  });
}

bool TakesNothing(const FitPod& pod) {
  return Finished(pod) || pod.traits.deleted_s.has_value() || pod.traits.placeholder;
}

class Checker {
 public:
  Checker(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan)
      : cluster_(cluster), state_(state), plan_(plan) {
    for (const DrainNode& node : cluster.nodes) nodes_[node.node.name] = &node;
    for (const NamedRemoval& removal : plan.remove) removed_.insert(removal.node);
  }

  std::vector<std::string> Run() {
    CheckPartition();
    if (plan_.braked && !plan_.remove.empty()) Report("D8", "a brake, and nodes go");
    for (const NamedRemoval& removal : plan_.remove) CheckPods(removal);
    CheckSizes();
    CheckBudgets();
    CheckRoom();
    if (state_.deleting.empty() && state_.evictions.empty()) CheckRules();
    CheckStarts();
    return std::move(errors_);
  }

 private:
  void Report(const std::string& number, const std::string& text) { errors_.push_back(number + ": " + text); }

  bool Deleting(const std::string& node) const {
    return std::find(state_.deleting.begin(), state_.deleting.end(), node) != state_.deleting.end();
  }

  void CheckPartition() {
    std::multiset<std::string> seen(plan_.keep.begin(), plan_.keep.end());
    for (const NamedRemoval& removal : plan_.remove) seen.insert(removal.node);
    for (const auto& [name, node] : nodes_) {
      if (seen.count(name) != 1) Report("G", name + " is not told once");
    }
    if (seen.size() != nodes_.size()) Report("G", "a node that is not there");
    for (const NamedRemoval& removal : plan_.remove) {
      if (Deleting(removal.node)) Report("D10", removal.node + " is being deleted already");
      if (nodes_.contains(removal.node) && nodes_[removal.node]->node.traits.scale_down_disabled) {
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
    if (!MovablePods(cluster_, node, &movable, &waits))
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
    if (removal.empty == real) Report("D4", removal.node + " is not told empty as it is");
    if (removal.start && waits) Report("D3", removal.node + " goes before a pod that may complete");
  }

  void CheckSizes() {
    for (size_t group = 0; group < cluster_.groups.size(); ++group) {
      int64_t registered = 0;
      int64_t going = 0;
      int64_t started = 0;
      for (const auto& [name, node] : nodes_) {
        if (node->group != static_cast<int32_t>(group)) continue;
        ++registered;
        going += Deleting(name) || removed_.contains(name);
      }
      const DrainGroup& limits = cluster_.groups[group];
      bool any = false;
      for (const NamedRemoval& removal : plan_.remove) {
        if (!nodes_.contains(removal.node) || nodes_[removal.node]->group != static_cast<int32_t>(group))
          continue;
        any = true;
        started += removal.start;
      }
      for (const std::string& node : state_.deleting)
        started += nodes_.contains(node) && nodes_[node]->group == static_cast<int32_t>(group) && any;
      if (any && std::min(registered, limits.target) - going < limits.min_nodes) {
        Report("D2", limits.name + " falls below its minimum");
      }
      const bool starts =
          std::any_of(plan_.remove.begin(), plan_.remove.end(), [&](const NamedRemoval& removal) {
            return removal.start && nodes_.contains(removal.node) &&
                   nodes_[removal.node]->group == static_cast<int32_t>(group);
          });
      if (limits.atomic && starts && started < std::min(registered, limits.target)) {
        Report("D2", limits.name + " goes in part");
      }
    }
    for (const NamedRemoval& removal : plan_.remove) {
      if (nodes_.contains(removal.node) && nodes_[removal.node]->group < 0)
        Report("D2", removal.node + " has no group");
    }
  }

  struct Budget {
    const DrainBudget* budget;
    int64_t left = 0;
    bool stale = false;
  };

  void CheckBudgets() {
    std::vector<Budget> budgets;
    for (const DrainBudget& entry : cluster_.budgets) {
      Budget budget{&entry};
      budget.stale = entry.budget.observed_generation < entry.budget.generation;
      int64_t ready = 0;
      for (const auto& [name, node] : nodes_) {
        for (const FitPod& pod : node->pods) {
          ready += pod.namespace_name == entry.namespace_name && pod.traits.ready && !TakesNothing(pod) &&
                   (!entry.budget.selector_error.empty() || Selects(entry.budget.selector, pod));
        }
      }
      budget.left = std::min<int64_t>(entry.budget.disruptions_allowed,
                                      ready - std::max<int32_t>(0, entry.budget.desired_healthy));
      budgets.push_back(budget);
    }
    // Pods that are going already take theirs.
    for (const std::string& name : state_.deleting) {
      if (!nodes_.contains(name)) continue;
      for (const FitPod& pod : nodes_[name]->pods) {
        if (TakesNothing(pod) || IsDaemon(pod) || pod.traits.mirror) continue;
        if (Budget* budget = TakenFrom(&budgets, pod)) --budget->left;
      }
    }
    std::map<const Budget*, int64_t> taken;
    for (const NamedRemoval& removal : plan_.remove) {
      if (!nodes_.contains(removal.node)) continue;
      for (const FitPod& pod : nodes_[removal.node]->pods) {
        if (!Moves(removal, pod) || TakesNothing(pod)) continue;
        std::vector<Budget*> matching;
        for (Budget& budget : budgets) {
          if (budget.budget->namespace_name != pod.namespace_name) continue;
          if (!budget.budget->budget.selector_error.empty()) {
            Report("D1", pod.name + " is in a namespace with an invalid budget");
          } else if (Selects(budget.budget->budget.selector, pod)) {
            matching.push_back(&budget);
          }
        }
        if (matching.size() > 1) Report("D1", pod.name + " is under several budgets");
        if (matching.size() != 1) continue;
        const DisruptionBudget& budget = matching[0]->budget->budget;
        if (!pod.traits.ready) {
          if (budget.unhealthy_policy == DisruptionBudget::UnhealthyPolicy::kAlwaysAllow) continue;
          if (matching[0]->stale) Report("D1", pod.name + " is under a stale budget");
          if (budget.current_healthy < budget.desired_healthy)
            Report("D1", pod.name + " is not ready and protected");
          if (budget.desired_healthy > 0) continue;
        }
        if (matching[0]->stale) Report("D1", pod.name + " is under a stale budget");
        if (removal.risky) {
          // One by one, as the budget recovers; but one at least was left for the first.
          if (matching[0]->left - taken[matching[0]] < 1) risky_without_.insert(removal.node);
        } else if (++taken[matching[0]] > matching[0]->left) {
          Report("D1", matching[0]->budget->name + " has less left than the plan takes");
        }
      }
    }
    for (const std::string& node : risky_without_)
      Report("D1", node + " is under a budget that has nothing left");
    // A risky node is drained alone.
    const int64_t starts =
        std::count_if(plan_.remove.begin(), plan_.remove.end(),
                      [](const NamedRemoval& removal) { return removal.start && !removal.empty; });
    for (const NamedRemoval& removal : plan_.remove) {
      if (removal.risky && removal.start && starts > 1)
        Report("D1", removal.node + " is risky and not alone");
    }
  }

  static Budget* TakenFrom(std::vector<Budget>* budgets, const FitPod& pod) {
    Budget* found = nullptr;
    for (Budget& budget : *budgets) {
      if (budget.budget->namespace_name != pod.namespace_name) continue;
      if (!budget.budget->budget.selector_error.empty()) return nullptr;
      if (!Selects(budget.budget->budget.selector, pod)) continue;
      if (found != nullptr) return nullptr;
      found = &budget;
    }
    if (found == nullptr) return nullptr;
    const DisruptionBudget& budget = found->budget->budget;
    const bool takes =
        pod.traits.ready ||
        (budget.unhealthy_policy != DisruptionBudget::UnhealthyPolicy::kAlwaysAllow && !found->stale &&
         budget.current_healthy >= budget.desired_healthy && budget.desired_healthy <= 0);
    return takes ? found : nullptr;
  }

  static bool Moves(const NamedRemoval& removal, const FitPod& pod) {
    return std::any_of(removal.moves.begin(), removal.moves.end(),
                       [&](const NamedMove& move) { return move.pod == pod.name; });
  }

  const FitPod* Find(const std::string& node, const std::string& pod) const {
    for (const FitPod& entry : nodes_.at(node)->pods) {
      if (entry.name == pod) return &entry;
    }
    for (const TestPlaceholder& placeholder : cluster_.placeholders) {
      if (placeholder.name == pod && placeholder.node == node) return &placeholder.pod;
    }
    return nullptr;
  }

  // All that moves fits together, so that no order of the drains matters.
  void CheckRoom() {
    for (const auto& [name, node] : nodes_) {
      std::vector<const FitPod*> pods;
      for (const FitPod& pod : node->pods) {
        if (!Finished(pod)) pods.push_back(&pod);
      }
      for (const TestPlaceholder& placeholder : cluster_.placeholders) {
        if (placeholder.node == name) pods.push_back(&placeholder.pod);
      }
      const size_t before = pods.size();
      for (const NamedRemoval& removal : plan_.remove) {
        for (const NamedMove& move : removal.moves) {
          if (move.to != name || !nodes_.contains(removal.node)) continue;
          if (const FitPod* pod = Find(removal.node, move.pod)) pods.push_back(pod);
        }
      }
      if (pods.size() == before) continue;
      CheckNode(*node, pods, before);
    }
  }

  void CheckNode(const DrainNode& node, const std::vector<const FitPod*>& pods, size_t before) {
    for (const auto& [resource, allocatable] : node.node.allocatable) {
      if (resource == "pods") {
        if (static_cast<int64_t>(pods.size()) > allocatable)
          Report("D4", node.node.name + " has too many pods");
        continue;
      }
      int64_t requested = 0;
      bool came = false;
      for (size_t i = 0; i < pods.size(); ++i) {
        for (const auto& [name, amount] : pods[i]->requests) {
          if (name != resource) continue;
          requested += amount;
          came = came || (i >= before && amount > 0);
        }
      }
      if (came && requested > allocatable) Report("D4", node.node.name + " has too little " + resource);
    }
    for (size_t i = before; i < pods.size(); ++i) {
      const PodRules& rules = pods[i]->rules;
      for (const Label& label : rules.node_selector) {
        if (LabelOf(node.node.labels, label.key) != label.value)
          Report("D12", "node selector of " + pods[i]->name);
      }
      for (const Taint& taint : node.node.taints) {
        const bool tolerated =
            std::any_of(rules.tolerations.begin(), rules.tolerations.end(),
                        [&](const Toleration& toleration) { return toleration.key == taint.key; });
        if (taint.effect == "NoSchedule" && !tolerated) Report("D4", node.node.name + " is tainted");
      }
      for (const HostPort& port : rules.host_ports) {
        for (size_t k = 0; k < i; ++k) {
          for (const HostPort& other : pods[k]->rules.host_ports) {
            if (port.port == other.port) Report("D12", "port of " + pods[i]->name);
          }
        }
      }
    }
  }

  // Pods that look at each other, in the order of the plan. Nodes that go still count until they are gone.
  void CheckRules() {
    std::map<std::string, std::vector<FitPod>> pods;
    for (const auto& [name, node] : nodes_) {
      for (const FitPod& pod : node->pods) {
        if (!Finished(pod)) pods[name].push_back(pod);
      }
    }
    for (const NamedRemoval& removal : plan_.remove) {
      if (!nodes_.contains(removal.node)) continue;
      std::erase_if(pods[removal.node], [&](const FitPod& pod) { return Moves(removal, pod); });
      for (const NamedMove& move : removal.moves) {
        const FitPod* const pod = Find(removal.node, move.pod);
        if (pod == nullptr || !nodes_.contains(move.to)) continue;
        CheckRulesOf(*pod, nodes_[move.to]->node, pods);
        pods[move.to].push_back(*pod);
        pods[move.to].back().traits.deleted_s.reset();
        pods[move.to].back().rules.terminating = false;
      }
    }
  }

  void CheckRulesOf(const FitPod& pod, const FitNode& to,
                    const std::map<std::string, std::vector<FitPod>>& pods) {
    const auto same_domain = [&](const std::string& node, const std::string& key) {
      const std::string value = ValueOf(to, key);
      return !value.empty() && ValueOf(nodes_.at(node)->node, key) == value;
    };
    for (const auto& [name, others] : pods) {
      for (const FitPod& other : others) {
        for (const AffinityTerm& term : pod.rules.anti_affinity) {
          if (Selects(term.selector, other) && same_domain(name, term.topology_key)) {
            Report("D12", pod.name + " does not want " + other.name);
          }
        }
        for (const AffinityTerm& term : other.rules.anti_affinity) {
          if (Selects(term.selector, pod) && same_domain(name, term.topology_key)) {
            Report("D12", other.name + " does not want " + pod.name);
          }
        }
      }
    }
    for (const AffinityTerm& term : pod.rules.affinity) {
      bool company = false;
      bool anywhere = false;
      for (const auto& [name, others] : pods) {
        for (const FitPod& other : others) {
          if (!Selects(term.selector, other)) continue;
          anywhere = anywhere || !ValueOf(nodes_.at(name)->node, term.topology_key).empty();
          company = company || same_domain(name, term.topology_key);
        }
      }
      if (!company && (anywhere || !Selects(term.selector, pod))) Report("D12", pod.name + " lacks company");
    }
    for (const SpreadConstraint& spread : pod.rules.spread) CheckSpread(pod, spread, to, pods);
  }

  void CheckSpread(const FitPod& pod, const SpreadConstraint& spread, const FitNode& to,
                   const std::map<std::string, std::vector<FitPod>>& pods) {
    std::map<std::string, int64_t> counts;
    for (const auto& [name, node] : nodes_) {
      const std::string value = ValueOf(node->node, spread.topology_key);
      bool eligible = !value.empty();
      for (const Label& label : pod.rules.node_selector) {
        eligible = eligible && LabelOf(node->node.labels, label.key) == label.value;
      }
      if (!eligible) continue;
      int64_t& count = counts[value];
      const auto found = pods.find(name);
      if (found == pods.end()) continue;
      for (const FitPod& other : found->second) {
        count += Selects(spread.selector, other) && other.namespace_name == pod.namespace_name &&
                 !other.rules.terminating;
      }
    }
    const std::string value = ValueOf(to, spread.topology_key);
    if (value.empty() || !counts.contains(value)) {
      Report("D12", pod.name + " is on a node without a domain");
      return;
    }
    int64_t lowest = INT64_MAX;
    for (const auto& [domain, count] : counts) lowest = std::min(lowest, count);
    if (counts[value] + (Selects(spread.selector, pod) ? 1 : 0) - lowest > spread.max_skew) {
      Report("D12", pod.name + " is not spread");
    }
  }

  void CheckStarts() {
    int64_t starts = static_cast<int64_t>(state_.deleting.size());
    int64_t drains = 0;
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
      atomic = atomic || (node.group >= 0 && cluster_.groups[static_cast<size_t>(node.group)].atomic);
    }
    if (!any || atomic) return;
    const DeletionOptions& limits = state_.options.deletion;
    if (starts > limits.max_scale_down_parallelism) Report("D6", "too many nodes at once");
    if (drains > limits.max_drain_parallelism) Report("D6", "too many drains at once");
  }

  const DrainCluster& cluster_;
  const CheckedState& state_;
  const NamedPlan& plan_;
  std::map<std::string, const DrainNode*> nodes_;
  std::set<std::string> removed_;
  std::set<std::string> risky_without_;
  std::vector<std::string> errors_;
};

}  // namespace

NamedPlan Named(const DrainModel& model, const DrainPlan& plan) {
  NamedPlan named;
  named.braked = plan.brake != DrainBrake::kNone;
  const ClusterState& state = *model.problem().cluster;
  for (const DrainRemoval& removal : plan.remove) {
    NamedRemoval entry{
        model.name(removal.slot), removal.empty, removal.risky, removal.start, removal.since_s, {}};
    for (const DrainMove& move : removal.moves) {
      if (move.placeholder()) {
        entry.moves.push_back(
            {model.problem().placeholders[move.placeholder_index()].name, model.name(move.to)});
        continue;
      }
      const absl::string_view pod = state.pods(removal.slot).name(static_cast<size_t>(move.pod));
      entry.moves.push_back({std::string(pod.data(), pod.size()), model.name(move.to)});
    }
    named.remove.push_back(std::move(entry));
  }
  for (const DrainKeep& keep : plan.keep) named.keep.push_back(model.name(keep.slot));
  return named;
}

bool MovablePods(const DrainCluster& cluster, const DrainNode& node, std::vector<size_t>* pods, bool* waits) {
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
      if (Finished(pod) && (traits.phase == PodPhase::kFailed || !traits.restarts_always)) continue;
      if (traits.safe_to_evict == SafeToEvict::kOnCompletion) {
        *waits = true;
        continue;
      }
      if (!traits.owner.has_value()) return false;
      if (pod.namespace_name == "kube-system" && !Covered(cluster, pod)) return false;
      if (traits.safe_to_evict == SafeToEvict::kNo || !traits.local_volume.empty()) return false;
    }
    if (!Finished(pod)) pods->push_back(i);
  }
  return true;
}

std::vector<std::string> CheckPlan(const DrainCluster& cluster, const CheckedState& state,
                                   const NamedPlan& plan) {
  return Checker(cluster, state, plan).Run();
}

}  // namespace loadline
