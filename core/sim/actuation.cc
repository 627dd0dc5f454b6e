#include "core/sim/actuation.h"

#include <algorithm>
#include <utility>

#include "core/removal/step_removal.h"
#include "core/sim/observed_cluster.h"

namespace loadline {
namespace {

RemovalRules RulesOf(const SimSettings& settings) {
  RemovalRules rules;
  rules.eviction_retry_ms = settings.eviction_retry_ms;
  rules.poll_ms = settings.poll_ms;
  return rules;
}

EvictionAnswer AnswerOf(SimEviction eviction) {
  switch (eviction) {
    case SimEviction::kDone:
      return {.code = 201};
    case SimEviction::kRefused:
      return {.code = 429, .cause = EvictionAnswer::Cause::kBudget, .error = "the budget has nothing left"};
    case SimEviction::kTwoBudgets:
      return {.code = 500, .error = "the pod has more than one PodDisruptionBudget"};
    case SimEviction::kFailed:
      return {.code = 500, .error = "the API server failed"};
  }
  return {};
}

AskOutcome OutcomeOf(CloudAnswer answer) {
  using Result = AskOutcome::Result;
  switch (answer) {
    case CloudAnswer::kDone:
    case CloudAnswer::kRefused:  // it is on its way out already: the node is removed without us
      return {};
    case CloudAnswer::kUnknown:
      return {.result = Result::kUnknown, .error = "the answer was lost"};
    case CloudAnswer::kNoCapacity:
    case CloudAnswer::kThrottled:
    case CloudAnswer::kFailed:
      break;
  }
  return {.result = Result::kRefused, .error = "the call failed"};
}

}  // namespace

Actuation::Actuation(World* world, Cloud* cloud, ActObserver* observer)
    : world_(*world), cloud_(*cloud), observer_(*observer), rules_(RulesOf(world->scenario().settings)) {}

CloudAnswer Actuation::Grow(const SimGrowth& growth) {
  observer_.Grows(growth);
  ++world_.counts().growths;
  const CloudAnswer answer = cloud_.Grow(growth.group, growth.machines);
  observer_.Grew(growth.group, answer);
  return answer;
}

CloudAnswer Actuation::DeleteLate(SimMachineIndex machine) {
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

Actuation::Going* Actuation::Find(SimNodeIndex node) {
  const auto found =
      std::find_if(going_.begin(), going_.end(), [&](const Going& going) { return going.node == node; });
  return found == going_.end() ? nullptr : &*found;
}

bool Actuation::Start(SimNodeIndex node, std::vector<SimPodIndex> pods, bool of_move) {
  if (world_.WriteFails()) return false;
  observer_.StartsToGo(node, pods.empty(), of_move);
  Going& going = going_.emplace_back();
  going.node = node;
  going.removal.empty = pods.empty();
  going.removal.since_ms = world_.now_ms();
  going.planned = std::move(pods);
  std::sort(going.planned.begin(), going.planned.end());
  under_way_.push_back(node);
  progress_.started.push_back(node);
  world_.SetTainted(node, true);
  Advance(&going, {});
  return true;
}

void Actuation::End(SimNodeIndex node) {
  std::erase_if(going_, [&](const Going& entry) { return entry.node == node; });
  std::erase(under_way_, node);
  world_.After(0, SimEventKind::kRemovalEnded);
}

void Actuation::Release(SimNodeIndex node) {
  if (world_.WriteFails()) return;
  observer_.GivesBack(node);
  world_.SetTainted(node, false);
}

void Actuation::Fail(SimNodeIndex node) {
  progress_.failed.push_back(node);
  End(node);
  observer_.GivesUp(node);
}

void Actuation::GiveBack(SimNodeIndex node) {
  Fail(node);
  // If somebody else has its machine deleted meanwhile, no pod is to be placed there.
  if (world_.machine(world_.node(node).machine).state != SimMachine::State::kDeleting) Release(node);
}

void Actuation::Finish(SimNodeIndex node, const RemovalEnd& end) {
  if (end.result == RemovalResult::kDeleted) {
    acknowledged_.insert(node);
    progress_.removed.push_back(node);
    End(node);
  } else if (end.give_back) {
    GiveBack(node);
  } else {
    Fail(node);
  }
}

void Actuation::Look(const Going& going, RemovalFacts* seen) const {
  const SimNode& node = world_.node(going.node);
  if (going.look_at_node) {
    seen->node.emplace();
    if (!node.present) seen->node = {.standing = NodeStanding::kGone, .error = "the node is gone"};
    if (node.present && !node.tainted) {
      seen->node = {.standing = NodeStanding::kNotOurs, .error = "somebody has taken the taint away"};
    }
  }
  if (!going.look_at_pods) return;
  seen->pods.emplace();
  for (const SimPodIndex pod : node.pods) {
    RemovalPod& to = seen->pods->pods.emplace_back();
    to.uid = ObservedCluster::PodName(pod);
    to.name = to.uid;
    to.planned = std::binary_search(going.planned.begin(), going.planned.end(), pod) ? PlannedPod::kMoves
                                                                                     : PlannedPod::kNew;
    const SimWorkload& workload = world_.workload(world_.pod(pod).workload);
    to.priority = workload.priority;
    to.grace_s = workload.grace_s;
    if (world_.IsTerminating(pod)) to.deleted_s = world_.now_ms() / 1000;
    to.daemon_set = world_.IsDaemon(pod);
    to.evict_daemon_set = false;  // they end with their node
  }
}

RemovalFacts Actuation::CarryOut(const RemovalOrders& orders, SimNodeIndex node) {
  RemovalFacts seen;
  for (const EvictionOrder& order : orders.evictions) {
    const SimPodIndex pod = ObservedCluster::PodNamed(order.uid);
    const SimEviction eviction = world_.Evict(pod);
    if (eviction == SimEviction::kDone) progress_.evicted.push_back({pod, world_.now_ms()});
    seen.evictions.push_back(AnswerOf(eviction));
    seen.evictions.back().uid = order.uid;
  }
  if (orders.mark) {
    seen.marked.emplace();
    if (world_.WriteFails()) {
      seen.marked = {.standing = NodeStanding::kUnreadable, .error = "the API server failed"};
    } else {
      world_.SetAsked(node, std::max<int64_t>(0, world_.now_ms() + clock_ms_));
    }
  }
  if (orders.ask) {
    const SimMachineIndex machine = world_.node(node).machine;
    observer_.Deletes(machine, /*late=*/false);
    seen.asked = OutcomeOf(cloud_.Delete(machine));
  }
  return seen;
}

void Actuation::Advance(Going* going, RemovalFacts seen) {
  for (;;) {
    const RemovalOrders orders = StepRemoval(rules_, seen, world_.now_ms(), &going->removal);
    if (orders.end.has_value()) return Finish(going->node, *orders.end);
    seen = CarryOut(orders, going->node);
    going->look_at_node = orders.look_at_node;
    going->look_at_pods = orders.look_at_pods;
    if (orders.due_ms > world_.now_ms()) {
      going->next_ms = orders.due_ms;
      world_.After(orders.due_ms - world_.now_ms(), SimEventKind::kActuate, going->node);
      return;
    }
    Look(*going, &seen);
  }
}

void Actuation::Step(SimNodeIndex node) {
  Going* const going = Find(node);
  // Another process may have begun it again, at another time.
  if (going == nullptr || going->next_ms != world_.now_ms()) return;
  if (!world_.node(node).present) {
    End(node);
    return;
  }
  RemovalFacts seen;
  Look(*going, &seen);
  Advance(going, std::move(seen));
}

}  // namespace loadline
