#include "plugin/service/drain_turn.h"

#include <string>
#include <utility>

#include "core/drain/brakes.h"
#include "core/drain/timers.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// What is known where nothing is remembered.
DrainState StateFromTaints(const ClusterState& cluster, const TimerOptions& options, int64_t now_s) {
  DrainState state;
  for (const TaintedNode& node : RestoreTimers(cluster, options, now_s).unneeded) {
    const absl::string_view name = cluster.name(node.slot);
    state.unneeded.push_back(
        {std::string(name.data(), name.size()), cluster.traits(node.slot).uid, node.since_s, {}});
  }
  return state;
}

// The state that the question goes out from; `fresh`: it is not the one that the planner has.
absl::StatusOr<DecodedDrainState> StateOf(const v1::PlanDrainRequest& request, const TimerOptions& timers,
                                          const KeptDrain& kept, View* view, bool* fresh) {
  DecodedDrainState state;
  if (request.has_state()) {
    absl::StatusOr<DecodedDrainState> handed_in = DecodeDrainState(request.state(), view);
    if (!handed_in.ok()) return Annotate(handed_in.status(), "state");
    state = *std::move(handed_in);
    *fresh = true;
  } else if (kept.last.state.at_s >= 0) {
    state = kept.last;
  } else {
    state.state = StateFromTaints(view->cluster(), timers, request.now_s());
    *fresh = true;
  }
  if (!request.has_progress()) return state;
  *fresh = true;
  if (absl::Status status = ApplyDrainProgress(request.progress(), request.now_s(), view, &state);
      !status.ok()) {
    return Annotate(status, "progress");
  }
  return state;
}

}  // namespace

absl::StatusOr<DrainTurn> DrainTurn::Begin(const v1::PlanDrainRequest& request, absl::string_view options,
                                           SharedView* shared) {
  DrainTurn turn;
  turn.shared_ = shared;
  turn.now_s_ = request.now_s();
  turn.fit_ = request.fit().SerializeAsString();
  absl::StatusOr<DecodedDrainOptions> decoded = DecodeDrainOptions(request.options(), request.fit());
  if (!decoded.ok()) return Annotate(decoded.status(), options);
  turn.options_ = *std::move(decoded);
  View& view = shared->view;
  absl::StatusOr<DrainProblem> problem = DecodeDrainProblem(request, &view);
  if (!problem.ok()) return problem.status();
  turn.problem_ = std::make_unique<DrainProblem>(*std::move(problem));
  KeptDrain& kept = shared->drain;
  bool fresh = false;
  absl::StatusOr<DecodedDrainState> state =
      StateOf(request, turn.options().deletion.timers, kept, &view, &fresh);
  if (!state.ok()) return state.status();
  turn.state_ = *std::move(state);
  const int64_t seen_s = request.seen_s() > 0 ? request.seen_s() : request.now_s();
  const BrakeOptions& brakes = turn.options_.brakes;
  turn.problem_->doubt = WhatIsNotKnown(view.cluster().objects(), brakes, seen_s, request.now_s());
  turn.problem_->unhealthy = WhatIsUnhealthy(view.cluster(), brakes);
  fresh = fresh || kept.cluster != &view.cluster() || kept.label_keys != view.label_keys().size() ||
          kept.fit != turn.fit_;
  if (fresh) kept.planner.SetState(turn.state_.state);
  kept.cluster = nullptr;  // until End(): the planner may be left half done
  return turn;
}

void DrainTurn::End(bool planned) {
  std::erase_if(state_.evicted, [&](const v1::EvictedPod& evicted) {
    return now_s_ - evicted.at_s() >= options().recent_eviction_s;
  });
  KeptDrain& kept = shared_->drain;
  if (planned) state_.state = kept.planner.state();
  kept.last = state_;
  kept.label_keys = shared_->view.label_keys().size();
  kept.fit = fit_;
  // What was handed in and not planned with yet is handed in again.
  kept.cluster = planned ? &shared_->view.cluster() : nullptr;
}

v1::DrainState DrainTurn::EncodeState() const { return EncodeDrainState(state_.state, state_.evicted); }

}  // namespace loadline
