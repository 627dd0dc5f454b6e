// Small clusters for tests of slack, stated in plain numbers, from which expectations are counted.
#ifndef LOADLINE_TEST_CORE_SLACK_SLACK_WORLD_H_
#define LOADLINE_TEST_CORE_SLACK_SLACK_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/slack/slack_planner.h"
#include "test/testing/fit_cluster.h"

namespace loadline {

// With as much work as it takes.
inline SlackPlan PlanSlackOnce(SlackPlanner* planner, const SlackQuestion& question) {
  WorkBudget unlimited;
  return planner->Plan(question, &unlimited);
}

// Nodes of one size in one zone.
struct WorldKind {
  std::string zone;
  CpuMemory allocatable;
  int64_t slots;
  CpuMemory daemon;  // what the DaemonSet pod on each node requests
  CpuMemory Empty() const { return Minus(allocatable, daemon); }
};

struct WorldPod {
  CpuMemory requests;
  std::string owner;  // empty: none
};

struct WorldNode {
  std::string name;
  size_t kind;
  bool cordoned = false;
  std::vector<WorldPod> pods;
  CpuMemory Requested() const {
    CpuMemory sum;
    for (const WorldPod& pod : pods) sum = Plus(sum, pod.requests);
    return sum;
  }
};

class SlackWorld {
 public:
  std::vector<WorldKind> kinds;
  std::map<int32_t, WorldNode> nodes;  // by slot

  // Tells the cluster about a slot.
  void Sync(int32_t slot) {
    const auto found = nodes.find(slot);
    if (found == nodes.end()) {
      cluster_.Remove(Slot{slot});
      return;
    }
    const WorldNode& node = found->second;
    const WorldKind& kind = kinds[node.kind];
    std::vector<FitPod> pods;
    if (kind.daemon != CpuMemory{}) {
      FitPod& daemon = pods.emplace_back();
      daemon.requests = Requests(kind.daemon);
      daemon.traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "agent"};
      daemon.name = "agent-" + node.name;
    }
    for (size_t i = 0; i < node.pods.size(); ++i) {
      FitPod& pod = pods.emplace_back();
      pod.requests = Requests(node.pods[i].requests);
      if (!node.pods[i].owner.empty()) {
        pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", node.pods[i].owner, node.pods[i].owner};
      }
      pod.name = node.name + "-" + std::to_string(i);
    }
    cluster_.Put(Slot{slot},
                 {.name = node.name,
                  .allocatable = {{"cpu", kind.allocatable.cpu},
                                  {"memory", kind.allocatable.memory},
                                  {"pods", kind.slots}},
                  .labels = {{"topology.kubernetes.io/zone", kind.zone}},
                  .unschedulable = node.cordoned},
                 pods);
  }
  void SyncAll() {
    for (const auto& [slot, node] : nodes) Sync(slot);
  }
  int32_t AddNode(size_t kind) {
    const int32_t slot = next_slot_++;
    nodes[slot] = {"node-" + std::to_string(slot), kind, false, {}};
    Sync(slot);
    return slot;
  }

  // Says whether copies may be kept for pods of a namespace.
  void AllowCopies(const std::string& name, bool allowed = true) {
    ClusterObject object;
    object.key = {ObjectKind::kNamespace, "", name};
    object.content = Namespace{allowed ? MakeLabels({{kCopiesLabel, kCopiesAllowed}}) : Labels()};
    cluster_.state().objects().Set(object);
  }

  // A Deployment that asks for copies of its pod, where it may.
  void Mirror(const std::string& name, const FitPod& pod, int32_t copies, int64_t replicas = 0) {
    AllowCopies("default");
    ClusterObject object;
    object.key = {ObjectKind::kDeployment, "default", name};
    Workload workload;
    workload.uid = name;
    workload.target_replicas = replicas;
    workload.slack.copies = copies;
    workload.pod = cluster_.Shape(pod);
    cluster_.state().set_resource_names(cluster_.names());
    object.content = workload;
    cluster_.state().objects().Set(object);
  }

  SlackQuestion Question(const SlackOptions& options, int64_t now_s = 1000) {
    SlackQuestion question;
    question.cluster = &cluster_.state();
    question.options = options;
    question.fit = &fit_;
    question.now_s = now_s;
    question.snapshot = [this] {
      snapshot_ = std::make_unique<Snapshot>(cluster_.state());
      return snapshot_.get();
    };
    return question;
  }

  FitCluster& cluster() { return cluster_; }
  FitOptions& fit() { return fit_; }
  // The kind of a class of the plan.
  size_t KindOf(const ClassSlack& slack) const {
    const std::string* const zone = slack.key.labels.Find("topology.kubernetes.io/zone");
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i].zone == *zone && kinds[i].Empty() == slack.empty.room) return i;
    }
    return kinds.size();
  }

  static std::vector<std::pair<std::string, int64_t>> Requests(const CpuMemory& size) {
    return {{"cpu", size.cpu}, {"memory", size.memory}};
  }

 private:
  FitCluster cluster_;
  FitOptions fit_;
  std::unique_ptr<Snapshot> snapshot_;
  int32_t next_slot_ = 0;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool OneIn(int64_t n) { return Pick(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

inline CpuMemory RandomPod(Dice* dice) {
  return {dice->OneIn(8) ? 0 : dice->Pick(1, 12) * 100, dice->OneIn(8) ? 0 : dice->Pick(1, 40) * 97};
}

// Fills a node with pods, mostly within what it has.
inline void FillNode(Dice* dice, const WorldKind& kind, WorldNode* node) {
  for (int64_t i = dice->Pick(0, 8); i > 0; --i) {
    const WorldPod pod{RandomPod(dice), dice->OneIn(5) ? "" : "owner-" + std::to_string(dice->Pick(1, 6))};
    if (Within(Plus(node->Requested(), pod.requests), kind.Empty()) || dice->OneIn(20))
      node->pods.push_back(pod);
  }
}

// 1 to 12 nodes of up to three sizes in up to two zones.
inline std::unique_ptr<SlackWorld> RandomWorld(Dice* dice) {
  auto world = std::make_unique<SlackWorld>();
  const int64_t zones = dice->Pick(1, 2);
  for (int64_t size = dice->Pick(1, 3); size > 0; --size) {
    for (int64_t zone = 0; zone < zones; ++zone) {
      world->kinds.push_back({zone == 0 ? "a" : "b",
                              {size * 4000, size * 16'000},
                              dice->OneIn(4) ? 40 : 110,
                              {dice->OneIn(3) ? 0 : 100, dice->OneIn(3) ? 0 : 200}});
    }
  }
  for (int64_t i = dice->Pick(1, 12); i > 0; --i) {
    const size_t kind = static_cast<size_t>(dice->Pick(0, static_cast<int64_t>(world->kinds.size()) - 1));
    const int32_t slot = world->AddNode(kind);
    FillNode(dice, world->kinds[kind], &world->nodes[slot]);
    world->nodes[slot].cordoned = dice->OneIn(10);
    world->Sync(slot);
  }
  for (int64_t i = dice->Pick(-2, 2); i > 0; --i) {
    FitPod pod;
    pod.requests = SlackWorld::Requests({dice->Pick(1, 39) * 100, dice->Pick(1, 30) * 500});
    pod.labels = {{"app", "m" + std::to_string(i)}};
    if (dice->OneIn(2)) {
      pod.rules.anti_affinity = {Term(Select("app", "m" + std::to_string(i)), kHostnameLabel)};
    }
    world->Mirror("m" + std::to_string(i), pod, static_cast<int32_t>(dice->Pick(1, 3)));
  }
  return world;
}

inline SlackOptions RandomOptions(Dice* dice) {
  SlackOptions options;
  options.rate = dice->Pick(0, 10) * kWholeRate / 20;
  options.basis = dice->OneIn(2) ? SlackBasis::kRequested : SlackBasis::kCapacity;
  options.reserve = static_cast<ReserveMode>(dice->Pick(0, 3));
  options.granularity = dice->Pick(1, 6);
  options.removal_delay_s = dice->OneIn(2) ? 0 : 600;
  return options;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_SLACK_SLACK_WORLD_H_
