#include <algorithm>
#include <map>

#include "test/core/drain/naive_parts.h"

namespace loadline {
namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";

std::string ValueOf(const FitNode& node, const std::string& key) {
  return key == kHostname ? node.name : LabelOf(node.labels, key);
}

class PlacementCheck : public PlanCheck {
 public:
  using PlanCheck::PlanCheck;

  void Run() {
    CheckRoom();
    if (state_.deleting.empty() && state_.evictions.empty()) CheckRules();
  }

 private:
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
};

}  // namespace

void CheckPlacement(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                    std::vector<std::string>* errors) {
  PlacementCheck(cluster, state, plan, errors).Run();
}

}  // namespace loadline
