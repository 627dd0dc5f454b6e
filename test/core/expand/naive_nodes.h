// Finds which pods fit on which nodes, counted anew for each question from what the test states about them:
// the oracle of tests of growth. It shares no code with core/fit, and knows the rules that those tests draw.
#ifndef LOADLINE_TEST_CORE_EXPAND_NAIVE_NODES_H_
#define LOADLINE_TEST_CORE_EXPAND_NAIVE_NODES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {

class NaiveNodes {
 public:
  // Returns the node's position.
  size_t Add(const FitNode& node, const std::vector<FitPod>& pods = {}) {
    nodes_.push_back({node, pods});
    return nodes_.size() - 1;
  }
  size_t size() const { return nodes_.size(); }
  void Place(const FitPod& pod, size_t at) { nodes_[at].pods.push_back(pod); }

  bool Fits(const FitPod& pod, size_t at) const {
    return HasRoom(pod, nodes_[at]) && IsSelected(pod, nodes_[at].node) && Tolerates(pod, nodes_[at].node) &&
           PortsAreFree(pod, nodes_[at]) && NobodyObjects(pod, at) && Spreads(pod, at);
  }

 private:
  struct Node {
    FitNode node;
    std::vector<FitPod> pods;
  };

  static int64_t AmountOf(const std::vector<std::pair<std::string, int64_t>>& amounts,
                          const std::string& resource) {
    int64_t sum = 0;
    for (const auto& [name, amount] : amounts) sum += name == resource ? amount : 0;
    return sum;
  }
  // "": the node has no such label.
  static std::string LabelOf(const FitNode& node, const std::string& key) {
    if (key == "kubernetes.io/hostname") return node.name;
    for (const Label& label : node.labels) {
      if (label.key == key) return label.value;
    }
    return "";
  }
  // All requirements of these tests are a list of values.
  static bool IsAmong(const Requirement& requirement, const std::string& value) {
    const bool among =
        std::find(requirement.values.begin(), requirement.values.end(), value) != requirement.values.end();
    return requirement.op == SelectorOperator::kIn ? among : !among;
  }
  static bool Selects(const LabelSelector& selector, const FitPod& pod) {
    return std::all_of(selector.requirements.begin(), selector.requirements.end(),
                       [&](const Requirement& requirement) {
                         return std::any_of(pod.labels.begin(), pod.labels.end(), [&](const Label& label) {
                           return label.key == requirement.key && IsAmong(requirement, label.value);
                         });
                       });
  }

  static bool HasRoom(const FitPod& pod, const Node& node) {
    if (static_cast<int64_t>(node.pods.size()) >= AmountOf(node.node.allocatable, "pods")) return false;
    return std::all_of(pod.requests.begin(), pod.requests.end(), [&](const auto& request) {
      int64_t sum = request.second;
      for (const FitPod& there : node.pods) sum += AmountOf(there.requests, request.first);
      return request.second == 0 || sum <= AmountOf(node.node.allocatable, request.first);
    });
  }

  static bool IsSelected(const FitPod& pod, const FitNode& node) {
    for (const Label& label : pod.rules.node_selector) {
      if (LabelOf(node, label.key) != label.value) return false;
    }
    if (!pod.rules.node_affinity.has_value()) return true;
    const std::vector<NodeSelectorTerm>& terms = pod.rules.node_affinity->terms;
    return std::any_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) {
      return std::all_of(term.labels.begin(), term.labels.end(), [&](const Requirement& requirement) {
        return IsAmong(requirement, LabelOf(node, requirement.key));
      });
    });
  }

  // Taints of these tests keep all pods away but those with a toleration of their key.
  static bool Tolerates(const FitPod& pod, const FitNode& node) {
    return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
      return std::any_of(pod.rules.tolerations.begin(), pod.rules.tolerations.end(),
                         [&](const Toleration& toleration) { return toleration.key == taint.key; });
    });
  }

  static bool PortsAreFree(const FitPod& pod, const Node& node) {
    for (const FitPod& there : node.pods) {
      for (const HostPort& port : there.rules.host_ports) {
        for (const HostPort& wanted : pod.rules.host_ports) {
          if (port.port == wanted.port) return false;
        }
      }
    }
    return true;
  }

  // Anti-affinity, of the pod and against it.
  bool NobodyObjects(const FitPod& pod, size_t at) const {
    for (const Node& node : nodes_) {
      const auto objects = [&](const FitPod& one, const FitPod& other) {
        for (const AffinityTerm& term : one.rules.anti_affinity) {
          const std::string domain = LabelOf(nodes_[at].node, term.topology_key);
          const bool near = !domain.empty() && domain == LabelOf(node.node, term.topology_key);
          if (near && Selects(term.selector, other)) return true;
        }
        return false;
      };
      for (const FitPod& there : node.pods) {
        if (objects(pod, there) || objects(there, pod)) return false;
      }
    }
    return true;
  }

  // Domains are those of nodes that the pod's selector and affinity permit, whatever their taints.
  bool Spreads(const FitPod& pod, size_t at) const {
    for (const SpreadConstraint& constraint : pod.rules.spread) {
      std::map<std::string, int64_t> pods;
      for (const Node& node : nodes_) {
        const std::string domain = LabelOf(node.node, constraint.topology_key);
        if (domain.empty() || !IsSelected(pod, node.node)) continue;
        pods[domain] += std::count_if(node.pods.begin(), node.pods.end(), [&](const FitPod& there) {
          return Selects(constraint.selector, there);
        });
      }
      const std::string domain = LabelOf(nodes_[at].node, constraint.topology_key);
      if (!pods.contains(domain)) return false;
      int64_t least = static_cast<int64_t>(pods.size()) < constraint.min_domains ? 0 : pods[domain];
      for (const auto& [name, count] : pods) least = std::min(least, count);
      if (pods[domain] + (Selects(constraint.selector, pod) ? 1 : 0) - least > constraint.max_skew)
        return false;
    }
    return true;
  }

  std::vector<Node> nodes_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_EXPAND_NAIVE_NODES_H_
