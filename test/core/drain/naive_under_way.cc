#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/core/drain/naive_parts.h"

namespace loadline {
namespace {

// Pods that move in any case: those of nodes being deleted, and replacements of evicted ones. Whatever the
// plan takes, each of them has to find a place on a node that stays.
class UnderWayCheck : public PlanCheck {
 public:
  using PlanCheck::PlanCheck;

  void Run() {
    if (plan_.braked) return;
    CollectPods();
    if (pods_.empty()) return;
    CollectRooms();
    // Large ones first: the search ends sooner.
    std::sort(pods_.begin(), pods_.end(), [](const FitPod* a, const FitPod* b) {
      return a->requests.front().second > b->requests.front().second;
    });
    if (!FindPlaces(0) && tries_ < kMostTries)
      Report("D4", "pods under way have no place, and there is no brake");
  }

 private:
  static constexpr int64_t kMostTries = 100'000;

  struct Room {
    const DrainNode* node;
    std::vector<const FitPod*> pods;
  };

  void CollectPods() {
    for (const std::string& name : state_.deleting) {
      if (!nodes_.contains(name)) continue;
      for (const FitPod& pod : nodes_[name]->pods) {
        if (Finished(pod) || pod.traits.deleted_s.has_value() || IsDaemon(pod) || pod.traits.mirror) continue;
        pods_.push_back(&pod);
      }
    }
    for (const Evicted& evicted : state_.evictions) {
      const PodTraits& traits = evicted.pod.traits;
      // Nobody creates another one of these.
      if (Finished(evicted.pod) || traits.mirror || traits.placeholder || IsDaemon(evicted.pod)) continue;
      pods_.push_back(&evicted.pod);
    }
  }

  void CollectRooms() {
    for (const auto& [name, node] : nodes_) {
      if (removed_.contains(name) || Deleting(name) || node->node.unschedulable || !node->node.traits.ready)
        continue;
      Room room{node, {}};
      for (const FitPod& pod : node->pods) {
        if (!Finished(pod)) room.pods.push_back(&pod);
      }
      for (const TestPlaceholder& placeholder : cluster_.placeholders) {
        if (placeholder.node == name) room.pods.push_back(&placeholder.pod);
      }
      for (const NamedRemoval& removal : plan_.remove) AddMoved(removal, name, &room);
      rooms_.push_back(std::move(room));
    }
  }

  void AddMoved(const NamedRemoval& removal, const std::string& to, Room* room) const {
    for (const NamedMove& move : removal.moves) {
      if (move.to != to || !nodes_.contains(removal.node)) continue;
      for (const FitPod& pod : nodes_.at(removal.node)->pods) {
        if (pod.name == move.pod) room->pods.push_back(&pod);
      }
      for (const TestPlaceholder& placeholder : cluster_.placeholders) {
        if (placeholder.name == move.pod) room->pods.push_back(&placeholder.pod);
      }
    }
  }

  bool FindPlaces(size_t next) {
    if (next == pods_.size()) return true;
    for (Room& room : rooms_) {
      if (++tries_ >= kMostTries) return false;
      if (!Fits(*pods_[next], room)) continue;
      room.pods.push_back(pods_[next]);
      if (FindPlaces(next + 1)) return true;
      room.pods.pop_back();
    }
    return false;
  }

  static bool Fits(const FitPod& pod, const Room& room) {
    const FitNode& node = room.node->node;
    for (const auto& [resource, allocatable] : node.allocatable) {
      if (resource == "pods" && static_cast<int64_t>(room.pods.size()) >= allocatable) return false;
      const int64_t wanted = RequestOf(pod, resource);
      int64_t used = 0;
      for (const FitPod* other : room.pods) used += RequestOf(*other, resource);
      if (wanted > 0 && used + wanted > allocatable) return false;
    }
    for (const Label& label : pod.rules.node_selector) {
      if (LabelOf(node.labels, label.key) != label.value) return false;
    }
    for (const Taint& taint : node.taints) {
      const bool tolerated =
          std::any_of(pod.rules.tolerations.begin(), pod.rules.tolerations.end(),
                      [&](const Toleration& toleration) { return toleration.key == taint.key; });
      if (taint.effect == "NoSchedule" && !tolerated) return false;
    }
    return std::none_of(room.pods.begin(), room.pods.end(), [&](const FitPod* other) {
      return std::any_of(pod.rules.host_ports.begin(), pod.rules.host_ports.end(), [&](const HostPort& port) {
        return std::any_of(other->rules.host_ports.begin(), other->rules.host_ports.end(),
                           [&](const HostPort& taken) { return taken.port == port.port; });
      });
    });
  }

  static int64_t RequestOf(const FitPod& pod, const std::string& resource) {
    for (const auto& [name, amount] : pod.requests) {
      if (name == resource) return amount;
    }
    return 0;
  }

  std::vector<const FitPod*> pods_;
  std::vector<Room> rooms_;
  int64_t tries_ = 0;
};

}  // namespace

void CheckUnderWay(const DrainCluster& cluster, const CheckedState& state, const NamedPlan& plan,
                   std::vector<std::string>* errors) {
  UnderWayCheck(cluster, state, plan, errors).Run();
}

}  // namespace loadline
