#include "core/sim/actuation.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

constexpr int64_t kLookAgainMs = 2'000;
constexpr int64_t kEvictAgainMs = 10'000;
// How long evictions that are refused are tried again, and pods that end are waited for.
constexpr int64_t kGiveUpEvictionsMs = 120'000;
constexpr int64_t kGiveUpPodsMs = 900'000;
constexpr int64_t kMostRefusedDeletions = 5;

}  // namespace

Actuation::Actuation(World* world, Cloud* cloud, ActObserver* observer)
    : world_(*world), cloud_(*cloud), observer_(*observer) {}

CloudAnswer Actuation::Grow(int32_t group, int64_t machines) {
  observer_.Grows(group, machines);
  return cloud_.Grow(group, machines);
}

CloudAnswer Actuation::DeleteLate(int32_t machine) {
  observer_.Deletes(machine, /*late=*/true);
  return cloud_.Delete(machine);
}

Actuation::Progress Actuation::TakeProgress() { return std::exchange(progress_, {}); }

Actuation::Going* Actuation::Find(int32_t node) {
  const auto found =
      std::find_if(going_.begin(), going_.end(), [&](const Going& going) { return going.node == node; });
  return found == going_.end() ? nullptr : &*found;
}

void Actuation::Start(int32_t node, int64_t pods) {
  observer_.StartsToGo(node, pods == 0);
  going_.push_back({.node = node, .since_ms = world_.now_ms(), .planned_pods = pods});
  progress_.started.push_back(node);
  world_.SetTainted(node, true);
  world_.After(0, SimEventKind::kActuate, node);
}

void Actuation::GiveBack(Going* going) {
  const int32_t node = going->node;
  observer_.GivesBack(node);
  progress_.failed.push_back(node);
  std::erase_if(going_, [&](const Going& entry) { return entry.node == node; });
  world_.SetTainted(node, false);
}

void Actuation::DeleteMachine(Going* going) {
  const int32_t machine = world_.node(going->node).machine;
  observer_.Deletes(machine, /*late=*/false);
  switch (cloud_.Delete(machine)) {
    case CloudAnswer::kDone:
    case CloudAnswer::kRefused:  // it is on its way out already: the node goes without us
      going->acknowledged = true;
      return;
    case CloudAnswer::kNoCapacity:
    case CloudAnswer::kThrottled:
    case CloudAnswer::kFailed:
      break;
  }
  if (++going->refused_deletions > kMostRefusedDeletions) {
    GiveBack(going);
  } else {
    world_.After(kEvictAgainMs, SimEventKind::kActuate, going->node);
  }
}

void Actuation::Step(int32_t node) {
  Going* const going = Find(node);
  if (going == nullptr || going->acknowledged) return;
  if (!world_.node(node).present) {
    std::erase_if(going_, [&](const Going& entry) { return entry.node == node; });
    return;
  }
  std::vector<int32_t> to_evict;
  bool ending = false;
  for (const int32_t pod : world_.node(node).pods) {
    if (world_.IsDaemon(pod)) continue;
    const bool terminating = world_.pod(pod).phase == SimPodPhase::kTerminating;
    ending = ending || terminating;
    if (!terminating) to_evict.push_back(pod);
  }
  // Pods that came since it was planned have no place elsewhere.
  if (!std::exchange(going->looked, true) && static_cast<int64_t>(to_evict.size()) > going->planned_pods) {
    GiveBack(going);
    return;
  }
  bool refused = false;
  for (const int32_t pod : to_evict) {
    if (world_.Evict(pod)) {
      progress_.evicted.push_back({pod, world_.now_s()});
      ending = true;
    } else {
      refused = true;
    }
  }
  if (!refused && !ending) {
    DeleteMachine(going);
    return;
  }
  const int64_t waited_ms = world_.now_ms() - going->since_ms;
  if (waited_ms > (refused ? kGiveUpEvictionsMs : kGiveUpPodsMs)) {
    GiveBack(going);
    return;
  }
  world_.After(refused ? kEvictAgainMs : kLookAgainMs, SimEventKind::kActuate, node);
}

}  // namespace loadline
