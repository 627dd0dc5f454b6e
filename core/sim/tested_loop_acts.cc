// Carries out the plan of the loop under test.
#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/replace/busy.h"
#include "core/replace/replacement.h"
#include "core/sim/tested_loop.h"

namespace loadline {

bool TestedLoop::Act(const std::vector<LoopAction>& actions) {
  absl::btree_map<int32_t, std::vector<const DrainRemoval*>> waves;
  for (const LoopAction& action : actions) {
    if (action.kind != LoopAction::Kind::kRemove) {
      if (!ActOn(action)) return false;
      continue;
    }
    const DrainRemoval& removal =
        *std::find_if(plan_.scale_down.remove.begin(), plan_.scale_down.remove.end(),
                      [&](const DrainRemoval& planned) { return planned.slot == action.slot; });
    waves[action.wave].push_back(&removal);
  }
  for (const auto& [wave, removals] : waves) {
    if (!Begin(removals)) return false;
    if (leader_->outcomes.tainting_failed) break;  // and those of later waves do not begin
  }
  return true;
}

// All of them, or none.
bool TestedLoop::Begin(const std::vector<const DrainRemoval*>& removals) {
  for (size_t i = 0; i < removals.size(); ++i) {
    if (!Remove(*removals[i])) {
      leader_->outcomes.tainting_failed = true;
      for (size_t begun = 0; begun < i; ++begun) {
        actuation_.GiveBack(*seen_.NodeIn(removals[begun]->slot));
      }
      return true;
    }
    if (Ends()) return false;
  }
  return true;
}

bool TestedLoop::ActOn(const LoopAction& action) {
  switch (action.kind) {
    case LoopAction::Kind::kDeleteMachines:
      DeleteMachines(action);
      break;
    case LoopAction::Kind::kGrow:
      Grow(action);
      break;
    case LoopAction::Kind::kGiveBack:
      actuation_.Release(*seen_.NodeIn(action.slot));
      break;
    case LoopAction::Kind::kSoftTaint:
    case LoopAction::Kind::kTakeSoftTaint:
      WriteSoftTaint(action);
      return true;  // in the background: another process finds what is written
    case LoopAction::Kind::kTakeBack:
    case LoopAction::Kind::kSwap:
      // This cloud begins at once with all that it is to make, and swaps are off.
    case LoopAction::Kind::kRemove:  // see Act()
      break;
  }
  return !Ends();
}

void TestedLoop::Grow(const LoopAction& action) {
  const auto growth = std::find_if(plan_.growth.begin(), plan_.growth.end(),
                                   [&](const LoopGrowth& of) { return of.group == action.group; });
  SimGrowth asked{.group = *action.group, .machines = action.nodes};
  if (growth != plan_.growth.end()) {
    asked.for_slack = growth->for_slack;
    asked.for_moves = growth->for_replacement;
    if (growth->for_pods > 0) asked.workloads = WorkloadsOn(*action.group);
  }
  NoteOutcome(action, actuation_.Grow(asked));
}

std::vector<SimWorkloadIndex> TestedLoop::WorkloadsOn(GroupIndex group) const {
  absl::btree_set<SimWorkloadIndex> workloads;
  for (const PlannedNodes& nodes : plan_.scale_up.nodes) {
    if (plan_.grown[nodes.group] != group) continue;
    for (const PodCount& pods : nodes.pods) {
      const auto at = static_cast<size_t>(pods.pods);
      if (at < asked_about_.size()) workloads.insert(world_.pod(asked_about_[at].first).workload);
    }
  }
  return {workloads.begin(), workloads.end()};
}

void TestedLoop::DeleteMachines(const LoopAction& action) {
  CloudAnswer answer = CloudAnswer::kFailed;
  for (const int32_t position : action.machines) {
    const CloudAnswer of_one = actuation_.DeleteLate(view_.MachineAt(*action.group, position));
    if (of_one == CloudAnswer::kDone || of_one == CloudAnswer::kUnknown) answer = of_one;
  }
  NoteOutcome(action, answer);
}

void TestedLoop::WriteSoftTaint(const LoopAction& action) {
  const SimNodeIndex node = *seen_.NodeIn(action.slot);
  leader_->outcomes.soft_taints_tried.push_back(ObservedCluster::NodeUid(node));
  if (world_.WriteFails()) return;
  world_.SetSoftTaint(node, action.kind == LoopAction::Kind::kSoftTaint ? action.since_s : -1);
}

bool TestedLoop::Remove(const DrainRemoval& removal) {
  const ClusterState& cluster = *plan_.scale_down_problem->cluster;
  std::vector<SimPodIndex> pods;
  for (const DrainMove& move : removal.moves()) {
    if (move.pod.is_placeholder()) continue;  // it is dropped without an event
    pods.push_back(ObservedCluster::PodNamed(cluster.pods(removal.slot).name(move.pod.position())));
  }
  const std::vector<ReplacedNode>& replaced = plan_.scale_down_problem->replaced;
  const bool of_move = std::any_of(replaced.begin(), replaced.end(),
                                   [&](const ReplacedNode& node) { return node.slot == removal.slot; });
  return actuation_.Start(*seen_.NodeIn(removal.slot), std::move(pods), of_move);
}

void TestedLoop::NoteOutcome(const LoopAction& action, CloudAnswer answer) {
  ActionOutcome& outcome = leader_->outcomes.actions.emplace_back();
  outcome.id = action.id;
  switch (answer) {
    case CloudAnswer::kDone:
      return;
    case CloudAnswer::kRefused:
      outcome.result = ActionOutcome::Result::kChanged;
      return;
    case CloudAnswer::kUnknown:
      outcome.result = ActionOutcome::Result::kUnknown;
      outcome.error = "the answer was lost";
      return;
    case CloudAnswer::kNoCapacity:
      outcome.error = "no capacity";
      break;
    case CloudAnswer::kThrottled:
    case CloudAnswer::kFailed:
      outcome.error = "the call failed";
      break;
  }
  outcome.result = ActionOutcome::Result::kFailed;
}

// When the answer may become another one although nothing changes.
void TestedLoop::NoteNextTime() {
  next_ms_.reset();
  const auto note_ms = [&](int64_t at_ms) {
    const int64_t after_ms = at_ms - NowMs();
    if (after_ms <= 0) return;
    const int64_t here_ms = world_.now_ms() + after_ms;
    next_ms_ = std::min(next_ms_.value_or(here_ms), here_ms);
  };
  const std::optional<int64_t> look_ms =
      NextLookMs(leader_->memory, view_.observation(), seen_.state(), options_.fleet, NowMs());
  if (look_ms.has_value()) note_ms(*look_ms);
  for (const DrainRemoval& removal : plan_.scale_down.remove) note_ms(removal.ready_at_s * 1000);
  if (const std::optional<int64_t> end_s = seen_.NextLateEndS(NowS())) note_ms(*end_s * 1000);
  if (problem_.decisions.slack) {
    for (const auto& [name, since_s] : leader_->slack.excess_since_s()) {
      note_ms((since_s + problem_.slack.removal_delay_s) * 1000);
    }
  }
  // Until then replacements have their places.
  note_ms((leader_->evicted_s + problem_.scale_down.recent_eviction_s) * 1000);
  if (old_enough_ms_.has_value()) note_ms(*old_enough_ms_);
  if (plan_.batch_wait_ms.has_value()) note_ms(NowMs() + *plan_.batch_wait_ms);
  if (!problem_.decisions.replace) return;
  NoteTimesOfMoves(problem_.replacement, leader_->memory, NowMs(), note_ms);
  for (const PodAges& ages : problem_.batch.ages) note_ms(NowMs() + kLongestWantedMs + 1 - ages.first_ms);
  // Nothing is asked while moves are carried out.
  const std::optional<int64_t> next_s = leader_->consolidator.next_s();
  if (next_s.has_value() && plan_.replacement.moves.empty()) note_ms(std::max(*next_s * 1000, NowMs() + 1));
}

}  // namespace loadline
