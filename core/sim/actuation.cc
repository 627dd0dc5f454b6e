#include "core/sim/actuation.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

// The defaults of the autoscaler: from taint to drain; how long evictions are tried; and how long pods may
// take to end, with what they may take beyond their grace period.
constexpr int64_t kDelayAfterTaintMs = 5'000;
constexpr int64_t kGiveUpEvictionsMs = 120'000;
constexpr int64_t kGiveUpPodsMs = 630'000;

}  // namespace

Actuation::Actuation(World* world, Cloud* cloud, ActObserver* observer)
    : world_(*world), cloud_(*cloud), observer_(*observer) {}

CloudAnswer Actuation::Grow(int32_t group, int64_t machines, int64_t for_slack, int64_t for_moves) {
  observer_.Grows(group, machines, for_slack, for_moves);
  ++world_.counts().growths;
  const CloudAnswer answer = cloud_.Grow(group, machines);
  observer_.Grew(group, answer);
  return answer;
}

CloudAnswer Actuation::DeleteLate(int32_t machine) {
  observer_.Deletes(machine, /*late=*/true);
  return cloud_.Delete(machine);
}

Actuation::Progress Actuation::TakeProgress() { return std::exchange(progress_, {}); }

void Actuation::Forget(int64_t clock_ms) {
  clock_ms_ = clock_ms;
  going_.clear();
  under_way_.clear();
  acknowledged_.clear();
  progress_ = {};
}

const Actuation::Going* Actuation::Find(int32_t node) const {
  const auto found =
      std::find_if(going_.begin(), going_.end(), [&](const Going& going) { return going.node == node; });
  return found == going_.end() ? nullptr : &*found;
}

void Actuation::Again(Going* going, int64_t after_ms) {
  going->next_ms = world_.now_ms() + after_ms;
  world_.After(after_ms, SimEventKind::kActuate, going->node);
}

bool Actuation::Start(int32_t node, std::vector<int32_t> pods, bool of_move) {
  if (world_.WriteFails()) return false;
  observer_.StartsToGo(node, pods.empty(), of_move);
  std::sort(pods.begin(), pods.end());
  going_.push_back({.node = node, .since_ms = world_.now_ms(), .planned = std::move(pods)});
  under_way_.push_back(node);
  progress_.started.push_back(node);
  world_.SetTainted(node, true);
  Again(&going_.back(), kDelayAfterTaintMs);
  return true;
}

void Actuation::End(int32_t node) {
  std::erase_if(going_, [&](const Going& entry) { return entry.node == node; });
  std::erase(under_way_, node);
  world_.After(0, SimEventKind::kRemovalEnded);
}

void Actuation::Release(int32_t node) {
  if (world_.WriteFails()) return;
  observer_.GivesBack(node);
  world_.SetTainted(node, false);
}

void Actuation::Fail(int32_t node) {
  progress_.failed.push_back(node);
  End(node);
  observer_.GivesUp(node);
}

void Actuation::GiveBack(int32_t node) {
  Fail(node);
  // Where somebody else has its machine deleted meanwhile, no pod is to come.
  if (world_.machine(world_.node(node).machine).state != SimMachine::State::kDeleting) Release(node);
}

void Actuation::DeleteMachine(Going* going) {
  const int32_t node = going->node;
  const int32_t machine = world_.node(node).machine;
  observer_.Deletes(machine, /*late=*/false);
  world_.SetAsked(node, std::max<int64_t>(0, world_.now_ms() + clock_ms_));
  switch (cloud_.Delete(machine)) {
    case CloudAnswer::kDone:
    case CloudAnswer::kRefused:  // it is on its way out already: the node goes without us
      acknowledged_.insert(node);
      progress_.removed.push_back(node);
      End(node);
      return;
    case CloudAnswer::kUnknown:
      // It may have been taken: the mark stays on the node, and nobody takes the taint off for some time.
      Fail(node);
      return;
    case CloudAnswer::kNoCapacity:
    case CloudAnswer::kThrottled:
    case CloudAnswer::kFailed:
      world_.SetAsked(node, -1);
      GiveBack(node);
      return;
  }
}

bool Actuation::LookAgain(Going* going) const {
  going->looked_ms = world_.now_ms();
  for (const int32_t pod : world_.node(going->node).pods) {
    if (world_.IsDaemon(pod)) continue;
    // Pods that came since it was planned have no place elsewhere.
    if (!world_.IsTerminating(pod) &&
        !std::binary_search(going->planned.begin(), going->planned.end(), pod)) {
      return false;
    }
    going->leaving.push_back(pod);
  }
  return true;
}

void Actuation::Evict(Going* going, bool* refused, bool* ending) {
  const auto& there = world_.node(going->node).pods;
  std::erase_if(going->leaving,
                [&](int32_t pod) { return std::find(there.begin(), there.end(), pod) == there.end(); });
  for (const int32_t pod : going->leaving) {
    if (!world_.IsTerminating(pod)) {
      if (world_.Evict(pod) != SimEviction::kDone) {
        *refused = true;
        continue;
      }
      progress_.evicted.push_back({pod, world_.now_ms()});
    }
    *ending = true;
  }
}

void Actuation::Step(int32_t node) {
  Going* const going = const_cast<Going*>(Find(node));
  // Another process may have begun it again, at another time.
  if (going == nullptr || going->next_ms != world_.now_ms()) return;
  if (!world_.node(node).present) {
    End(node);
    return;
  }
  if (going->looked_ms < 0 && !LookAgain(going)) {
    GiveBack(node);
    return;
  }
  const SimSettings& settings = world_.scenario().settings;
  bool refused = false;
  bool ending = false;
  Evict(going, &refused, &ending);
  if (refused) {
    if (world_.now_ms() + settings.eviction_retry_ms >= going->looked_ms + kGiveUpEvictionsMs) {
      GiveBack(node);
    } else {
      Again(going, settings.eviction_retry_ms);
    }
    return;
  }
  if (going->accepted_ms < 0) going->accepted_ms = world_.now_ms();
  if (ending) {
    if (world_.now_ms() >= going->accepted_ms + kGiveUpPodsMs) {
      GiveBack(node);
    } else {
      Again(going, settings.poll_ms);
    }
    return;
  }
  const auto& there = world_.node(node).pods;
  if (std::all_of(there.begin(), there.end(), [&](int32_t pod) { return world_.IsDaemon(pod); })) {
    DeleteMachine(going);
  } else {  // pods that tolerate all taints came meanwhile
    GiveBack(node);
  }
}

}  // namespace loadline
