#include "plugin/service/drain_turn.h"

#include <string>
#include <utility>
#include <vector>

#include "core/drain/being_deleted.h"
#include "core/drain/brakes.h"
#include "core/drain/drain_progress.h"
#include "core/drain/timers.h"
#include "core/drain/vanished_pods.h"
#include "core/grow/expected_pods.h"
#include "core/observe/see_fleet.h"
#include "plugin/convert/startup_taints.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Returns the state where nothing is remembered.
DrainState FirstState(const ClusterState& cluster, const TimerOptions& options, int64_t now_s,
                      const DrainTurn::Timers& timers) {
  std::vector<TimedNode> known;
  if (timers != nullptr) known = timers(now_s, options.candidate_ttl_s);
  return StateFromTimers(cluster, options, now_s, known);
}

// Returns the state from which the question starts; nullopt: it is the one that the planner has.
absl::StatusOr<std::optional<DecodedDrainState>> StateOf(const v1::PlanDrainRequest& request,
                                                         const TimerOptions& options, const KeptDrain& kept,
                                                         const DrainTurn::Timers& timers,
                                                         const ReadOptions& read, View* view) {
  std::optional<DecodedDrainState> state;
  if (request.has_state()) {
    absl::StatusOr<DecodedDrainState> handed_in = DecodeDrainState(request.state(), read, view);
    if (!handed_in.ok()) return Annotate(handed_in.status(), "state");
    state = *std::move(handed_in);
  } else if (kept.last.state.at_s < 0) {
    state.emplace().state = FirstState(view->cluster(), options, request.now_s(), timers);
  }
  const DecodedDrainState& before = state.has_value() ? *state : kept.last;
  if (!TellsMore(request.progress(), view->cluster(), before.state)) return state;
  if (!state.has_value()) state = kept.last;
  if (absl::Status status = ApplyDrainProgress(request.progress(), request.now_s(), read, view, &*state);
      !status.ok()) {
    return Annotate(status, "progress");
  }
  return state;
}

// Notes what a loop in which no drain was planned knows of the cluster.
void Count(const ClusterState& cluster, int64_t now_s, DrainState* state) {
  const std::vector<Slot> leaving = RememberedDeleting(cluster, state->deleting);
  for (DeletingNode& node : state->deleting) node.left_out = true;
  state->at_s = now_s;
  state->nodes = cluster.node_count() - static_cast<int64_t>(leaving.size());
  state->pods = CountPods(cluster);
  TakeAwayPods(cluster, leaving, &state->pods);
}

}  // namespace

absl::Status DrainTurn::LeaveOutNodesThatStart(const v1::StartupTaints& message) {
  const absl::StatusOr<StartupTaints> startup_taints = DecodeStartupTaints(message);
  if (startup_taints.ok()) TakeOutNodesThatStart(*startup_taints, problem_.get());
  return startup_taints.status();
}

void DrainTurn::ExpectOnNodes(const DecodedProblem& waiting, Snapshot* snapshot, WorkBudget* budget) {
  left_out_.Add(waiting.left_out);
  loadline::ExpectOnNodes(waiting.pods, PodsOfDeleting::kStay, options().fit, snapshot, budget,
                          problem_.get());
}

absl::StatusOr<DrainTurn> DrainTurn::Begin(const v1::PlanDrainRequest& request, absl::string_view options,
                                           UndoUnlessKept* undo, const Timers& timers) {
  SharedView* const shared = &undo->shared();
  DrainTurn turn;
  turn.shared_ = shared;
  turn.view_ = &undo->view();
  turn.now_s_ = request.now_s();
  turn.fit_ = request.fit().SerializeAsString();
  absl::StatusOr<DecodedDrainOptions> decoded = DecodeDrainOptions(request.options(), request.fit());
  if (!decoded.ok()) return Annotate(decoded.status(), options);
  turn.options_ = *std::move(decoded);
  View& view = undo->view();
  shared->UseProfiles(view, &turn.options_.options.fit);
  const ReadOptions read = shared->OptionsOfQuestion(view);
  absl::StatusOr<DrainProblem> problem = DecodeDrainProblem(request, read, &view, &turn.left_out_);
  if (!problem.ok()) return problem.status();
  turn.problem_ = std::make_unique<DrainProblem>(*std::move(problem));
  KeptDrain& kept = shared->drain;
  if (kept.cluster != view.cluster_number() || kept.label_keys != view.label_keys().size()) {
    ReadEvictionsAgain(read, &view, &kept.last);
  }
  absl::StatusOr<std::optional<DecodedDrainState>> state =
      StateOf(request, turn.options().deletion.timers, kept, timers, read, &view);
  if (!state.ok()) return state.status();
  turn.handed_in_ = *std::move(state);
  if (turn.handed_in_.has_value())
    turn.left_out_.Add(std::exchange(turn.handed_in_->left_out, LeftOutList()));
  const int64_t seen_s = request.seen_s() > 0 ? request.seen_s() : request.now_s();
  const BrakeOptions& brakes = turn.options_.brakes;
  turn.problem_->doubt = WhatIsNotKnown(view.cluster().objects(), brakes, seen_s, request.now_s());
  turn.problem_->unhealthy = WhatIsUnhealthy(view.cluster(), brakes);
  const bool same_cluster = kept.cluster == view.cluster_number() &&
                            kept.label_keys == view.label_keys().size() && kept.fit == turn.fit_ &&
                            kept.expected == turn.options_.options.fit.load_line.sums.expected;
  DrainPlanner* const planner = undo->drain();
  if (!same_cluster) {
    planner->SetState(turn.state());
  } else if (turn.handed_in_.has_value()) {
    planner->ReplaceState(turn.state());
  }
  return turn;
}

void DrainTurn::Finish(bool planned) {
  const KeptDrain& kept = shared_->drain;
  planned_ = planned;
  const DecodedDrainState& before = handed_in_.has_value() ? *handed_in_ : shared_->drain.last;
  next_.evicted = before.evicted;
  ForgetEvictions(now_s_, options().recent_eviction_s, &next_.evicted);
  if (planned) {
    next_.state = kept.planner.state();
  } else {
    next_.state = before.state;
    Count(view_->cluster(), now_s_, &next_.state);
  }
}

void DrainTurn::Keep() {
  KeptDrain& kept = shared_->drain;
  kept.last = std::move(next_);
  kept.label_keys = view_->label_keys().size();
  kept.fit = std::move(fit_);
  kept.expected = options_.options.fit.load_line.sums.expected;
  // A state that was handed in and with which nothing was planned yet is handed in again.
  kept.cluster.reset();
  if (planned_) kept.cluster = view_->cluster_number();
}

v1::DrainState DrainTurn::EncodeState() const { return EncodeDrainState(next_.state, next_.evicted); }

}  // namespace loadline
