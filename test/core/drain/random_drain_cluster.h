// Small clusters drawn from a seed, with everything that decides whether nodes can go.
#ifndef LOADLINE_TEST_CORE_DRAIN_RANDOM_DRAIN_CLUSTER_H_
#define LOADLINE_TEST_CORE_DRAIN_RANDOM_DRAIN_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"
#include "core/cluster/node_annotations.h"
#include "test/core/drain/drain_cluster.h"
#include "test/core/drain/naive_checker.h"

namespace loadline {

class RandomDrainCluster {
 public:
  explicit RandomDrainCluster(uint32_t seed) : seed_(seed) {}

  // [low, high]. Each property has a random stream of its own, so that one more property, or one more draw of
  // it, leaves all others as they are.
  int64_t Draw(absl::string_view property, int64_t low, int64_t high) {
    FingerprintBuilder number;
    number.Add(seed_);
    number.Add(property);
    number.Add(++draws_[property]);
    return low + static_cast<int64_t>(number.Finish() % static_cast<uint64_t>(high - low + 1));
  }
  bool Percent(absl::string_view property, int64_t percent) { return Draw(property, 1, 100) <= percent; }

  DrainCluster Cluster() {
    DrainCluster cluster;
    rules_ = Percent("rules", 35);
    plain_ = Percent("plain", 30);
    const int64_t nodes = Draw("nodes", 2, 9);
    cluster.groups = {{.name = "small", .min_nodes = Draw("group.min.small", 0, 2)},
                      {.name = "large", .min_nodes = Draw("group.min.large", 0, 1)}};
    for (NodeGroup& group : cluster.groups) {
      group.utilization_threshold = Percent("group.threshold", 50) ? 0.5 : 0.9;
      group.atomic = Percent("group.atomic", 12);
      if (Percent("group.priced", 50)) group.node_price = static_cast<double>(Draw("group.price", 1, 5));
    }
    for (int64_t i = 0; i < nodes; ++i) cluster.nodes.push_back(Node("n" + std::to_string(i)));
    for (const DrainNode& node : cluster.nodes) {
      if (node.group.has_value()) ++cluster.groups[*node.group].target;
    }
    for (NodeGroup& group : cluster.groups)
      group.target += Percent("group.other_target", 15) ? Draw("group.target", -1, 1) : 0;
    const int64_t budgets = plain_ ? 0 : Draw("budgets", 0, 3);
    for (int64_t i = 0; i < budgets; ++i) cluster.budgets.push_back(Budget("pdb-" + std::to_string(i)));
    const int64_t placeholders = Percent("has_placeholders", 25) ? Draw("placeholders", 1, 3) : 0;
    for (int64_t i = 0; i < placeholders; ++i) {
      cluster.placeholders.push_back(Placeholder("slack-" + std::to_string(i), cluster));
    }
    return cluster;
  }

  TestPlaceholder Placeholder(std::string name, const DrainCluster& cluster) {
    FitPod pod{.requests = {{"cpu", Draw("placeholder.cpu", 1, 8) * 50},
                            {"memory", Draw("placeholder.memory", 0, 40)}}};
    const int64_t last = static_cast<int64_t>(cluster.nodes.size()) - 1;
    return {std::move(name), "n" + std::to_string(Draw("placeholder.node", 0, last)), std::move(pod)};
  }

  // Deletions and evictions under way; not where pods look at each other, as a checker cannot know where
  // those are to go.
  CheckedState State(const DrainCluster& cluster) {
    CheckedState state;
    state.options.deletion.max_scale_down_parallelism = Draw("state.parallelism", 1, 4);
    state.options.deletion.max_drain_parallelism = Draw("state.drains", 1, 3);
    state.options.deletion.exclusive = Percent("state.exclusive", 10);
    DrainRuleOptions& rules = state.options.rules;
    rules.skip_nodes_with_system_pods = !Percent("state.system_pods", 15);
    rules.skip_nodes_with_local_storage = !Percent("state.local_storage", 15);
    rules.skip_nodes_with_custom_controller_pods = !Percent("state.custom_controllers", 15);
    if (Percent("state.minimum", 25)) state.options.minimum = Minimum(cluster);
    if (rules_) return state;
    if (Percent("state.deleting", 25)) AddDeletions(cluster, &state);
    if (Percent("state.evictions", 20)) AddEvictions(cluster, &state);
    return state;
  }

  // By one kind of amount each: most of what there is, now and then more.
  ClusterMinimum Minimum(const DrainCluster& cluster) {
    CpuMemory sum;
    for (const DrainNode& node : cluster.nodes) {
      sum.cpu += node.node.allocatable[0].second;
      sum.memory += node.node.allocatable[1].second;
    }
    const int64_t percent = Draw("minimum.percent", 20, 105);
    switch (Draw("minimum.kind", 0, 2)) {
      case 0:
        return {.amounts = {sum.cpu * percent / 100, 0}};
      case 1:
        return {.amounts = {0, sum.memory * percent / 100}};
      default:
        return {.nodes = Draw("minimum.nodes", 1, static_cast<int64_t>(cluster.nodes.size()))};
    }
  }

  void AddDeletions(const DrainCluster& cluster, CheckedState* state) {
    for (int64_t i = Percent("state.deleting_two", 30) ? 2 : 1; i > 0; --i) {
      const std::string& name = AnyNode("state.which", cluster).node.name;
      if (std::find(state->deleting.begin(), state->deleting.end(), name) != state->deleting.end()) continue;
      state->deleting.push_back(name);
      if (!Percent("state.draining", 70)) continue;
      state->draining.insert(name);
      if (Percent("state.risky", 15)) state->risky.insert(name);
    }
  }

  // Adds evictions of pods that are gone, or still there; some so long ago that nobody waits any more.
  void AddEvictions(const DrainCluster& cluster, CheckedState* state) {
    for (int64_t i = Draw("state.evicted", 1, 3); i > 0; --i) {
      const DrainNode& node = AnyNode("state.evicted_from", cluster);
      Evicted evicted{Pod(), node.node.name, kDrainNow - Draw("state.evicted_at", 0, 80)};
      if (!node.pods.empty() && Percent("state.evicted_is_there", 50)) evicted.pod = node.pods.front();
      state->evictions.push_back(std::move(evicted));
    }
  }

  const DrainNode& AnyNode(absl::string_view property, const DrainCluster& cluster) {
    return cluster
        .nodes[static_cast<size_t>(Draw(property, 0, static_cast<int64_t>(cluster.nodes.size()) - 1))];
  }

  // Another content of a node: sometimes other pods, sometimes another node.
  void Change(DrainCluster* cluster) {
    const size_t i =
        static_cast<size_t>(Draw("change.node", 0, static_cast<int64_t>(cluster->nodes.size()) - 1));
    DrainNode node = Node(cluster->nodes[i].node.name);
    node.group = cluster->nodes[i].group;
    if (Percent("change.same_node", 70)) {
      node.node = cluster->nodes[i].node;
      if (Percent("change.same_pods", 50)) {
        node.pods = cluster->nodes[i].pods;
        if (!node.pods.empty() && Percent("change.pop", 50)) {
          node.pods.pop_back();
        } else if (!node.pods.empty() && Percent("change.request", 30)) {
          node.pods.front().requests.front().second = Draw("change.cpu", 1, 10) * 50;  // its cpu
        } else {
          node.pods.push_back(Pod());
        }
      }
    }
    cluster->nodes[i] = std::move(node);
    if (Percent("change.placeholders", 25)) ChangePlaceholders(cluster);
  }

  // Removes one, so that those behind it have other positions, adds one, or replaces one by another one of
  // the same name.
  void ChangePlaceholders(DrainCluster* cluster) {
    std::vector<TestPlaceholder>& placeholders = cluster->placeholders;
    if (placeholders.empty() || Percent("placeholders.add", 40)) {
      placeholders.push_back(Placeholder("slack-new-" + std::to_string(++serial_), *cluster));
    } else if (Percent("placeholders.erase", 50)) {
      placeholders.erase(placeholders.begin());
    } else {
      TestPlaceholder other = Placeholder(placeholders.front().name, *cluster);
      if (Percent("placeholders.same_node", 50)) other.node = placeholders.front().node;
      placeholders.front() = std::move(other);
    }
  }

  DrainNode Node(std::string name) {
    DrainNode node;
    node.group.reset();
    if (!Percent("node.no_group", 8)) node.group = GroupIndex{static_cast<int32_t>(Draw("node.group", 0, 1))};
    node.node.name = std::move(name);
    node.node.traits.uid = "node-uid-" + std::to_string(++serial_);
    node.node.allocatable = {{"cpu", node.group == GroupIndex{1} ? 4000 : Draw("node.cpu", 1, 2) * 1000},
                             {"memory", Draw("node.memory", 2, 5) * 100},
                             {"pods", Percent("node.few_slots", 15) ? Draw("node.slots", 3, 6) : 110}};
    node.node.labels = {{"zone", "z" + std::to_string(Draw("node.zone", 0, 2))}};
    if (Percent("node.no_labels", 10)) node.node.labels.clear();
    node.node.unschedulable = Percent("node.unschedulable", 6);
    node.node.traits.ready = !Percent("node.unready", 6);
    for (const NodeAnnotationEntry& entry : NodeAnnotations()) {
      if (Percent("node.annotation", 3)) node.node.traits.annotations |= BitOf(entry.annotation);
    }
    if (Percent("node.tainted", 10))
      node.node.taints = {{.key = "dedicated", .value = "x", .effect = "NoSchedule"}};
    const int64_t pods = Draw("node.pods", 0, 5);
    for (int64_t i = 0; i < pods; ++i) node.pods.push_back(Pod());
    return node;
  }

  FitPod Pod() {
    const std::string app(1, static_cast<char>('a' + Draw("pod.app", 0, 3)));
    FitPod pod = ReplicaPod("p" + std::to_string(++serial_), Draw("pod.cpu", 1, 10) * 50,
                            Draw("pod.memory", 0, 8) * 10, app);
    if (plain_) return pod;
    PodTraits& traits = pod.traits;
    traits.ready = !Percent("pod.unready", 12);
    traits.priority = Percent("pod.priority", 15) ? 100 : 0;
    const int64_t kind = Draw("pod.kind", 1, 100);
    if (kind <= 2) traits.owner.reset();
    if (kind > 2 && kind <= 10) traits.owner = PodOwner{"DaemonSet", "apps/v1", "ds", "uid-ds"};
    if (kind > 10 && kind <= 12) {
      traits.mirror = true;
      traits.owner.reset();
    }
    if (kind > 12 && kind <= 14) traits.safe_to_evict = SafeToEvict::kNo;
    if (kind > 14 && kind <= 18) traits.safe_to_evict = SafeToEvict::kYes;
    if (kind > 18 && kind <= 21) traits.safe_to_evict = SafeToEvict::kOnCompletion;
    if (kind > 21 && kind <= 23) traits.local_volume = "scratch";
    if (kind > 23 && kind <= 25) pod.namespace_name = "kube-system";
    if (kind > 25 && kind <= 28) traits.placeholder = true;
    if (kind > 28 && kind <= 30) traits.phase = PodPhase::kFailed;
    if (kind > 30 && kind <= 33) {
      traits.deleted_s = kDrainNow - Draw("pod.deleted", 0, 100);
      pod.rules.terminating = true;
    }
    if (kind > 33 && kind <= 36) traits.owner->kind = "Rollout";
    if (kind > 23 && kind <= 25 && Percent("pod.old", 50)) {
      traits.created_s = kDrainNow - Draw("pod.age", 0, 7'200);
    }
    if (Percent("pod.port", 5)) pod.rules.host_ports = {{80, "TCP", "0.0.0.0"}};
    if (Percent("pod.tolerates", 10)) pod.rules.tolerations = {{.key = "dedicated", .op = "Exists"}};
    if (Percent("pod.selects", 5))
      pod.rules.node_selector = MakeLabels({{"zone", "z" + std::to_string(Draw("pod.selected_zone", 0, 2))}});
    if (rules_ && !traits.placeholder) AddRules(app, &pod);
    return pod;
  }

 private:
  void AddRules(const std::string& app, FitPod* pod) {
    const std::string key = Percent("rules.key", 50) ? "zone" : "kubernetes.io/hostname";
    const std::string other(1, static_cast<char>('a' + Draw("rules.other", 0, 3)));
    const int64_t kind = Draw("rules.kind", 1, 100);
    if (kind <= 10) pod->rules.anti_affinity = {Term(Select("app", app), key, {"default", "kube-system"})};
    if (kind > 10 && kind <= 18)
      pod->rules.affinity = {Term(Select("app", other), key, {"default", "kube-system"})};
    if (kind > 18 && kind <= 30) {
      pod->rules.has_spread = true;
      pod->rules.spread = {{.max_skew = static_cast<int32_t>(Draw("rules.skew", 1, 2)),
                            .topology_key = key,
                            .selector = Select("app", app)}};
    }
  }

  DrainBudget Budget(std::string name) {
    DrainBudget entry;
    entry.name = std::move(name);
    if (Percent("budget.system", 10)) entry.namespace_name = "kube-system";
    DisruptionBudget& budget = entry.budget;
    budget.selector = Select("app", std::string(1, static_cast<char>('a' + Draw("budget.app", 0, 3))));
    budget.disruptions_allowed = static_cast<int32_t>(Draw("budget.allowed", -1, 6));
    budget.desired_healthy = static_cast<int32_t>(Draw("budget.desired", -1, 3));
    budget.expected_pods = budget.desired_healthy + static_cast<int32_t>(Draw("budget.spare", -1, 4));
    budget.current_healthy = static_cast<int32_t>(Draw("budget.healthy", 0, 5));
    budget.generation = 2;
    budget.observed_generation = Percent("budget.stale", 8) ? 1 : 2;
    if (Percent("budget.policy", 50))
      budget.unhealthy_policy = DisruptionBudget::UnhealthyPolicy::kAlwaysAllow;
    if (Percent("budget.invalid", 4)) budget.selector_error = "invalid";
    return entry;
  }

  const int64_t seed_;
  std::map<absl::string_view, int64_t> draws_;
  bool rules_ = false;
  bool plain_ = false;
  int64_t serial_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_DRAIN_RANDOM_DRAIN_CLUSTER_H_
