#include "plugin/service/drain_handler.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/drain/brakes.h"
#include "core/drain/timers.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/text.h"
#include "plugin/service/answer_size.h"
#include "plugin/service/question_cluster.h"

namespace loadline {
namespace {

WorkBudget BudgetOf(const v1::PlanDrainRequest& request, const Deadline& deadline) {
  std::function<bool()> stop = [deadline] { return !deadline.Check().ok(); };
  if (request.max_milliseconds() > 0) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.max_milliseconds());
    stop = [deadline, end] { return std::chrono::steady_clock::now() >= end || !deadline.Check().ok(); };
  }
  constexpr int64_t kNoLimit = INT64_MAX / 2;
  return WorkBudget(request.max_work() > 0 ? request.max_work() : kNoLimit, std::move(stop));
}

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

absl::Status CheckLimits(const v1::PlanDrainRequest& request) {
  if (request.max_work() < 0 || request.max_work() > int64_t{1} << 62) {
    return absl::InvalidArgumentError(absl::StrCat("max_work: ", request.max_work(), " is out of range"));
  }
  if (request.max_milliseconds() < 0 || request.max_milliseconds() > 3'600'000) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_milliseconds: ", request.max_milliseconds(), " is out of range"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::PlanDrainResponse> PlanDrain(const v1::PlanDrainRequest& request, const Deadline& deadline,
                                                Views* views) {
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  const absl::StatusOr<DecodedDrainOptions> decoded = DecodeDrainOptions(request.options(), request.fit());
  if (!decoded.ok()) return Annotate(decoded.status(), "options");
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();
  View& view = cluster->shared().view;
  KeptDrain& kept = cluster->shared().drain;

  absl::StatusOr<DrainProblem> problem = DecodeDrainProblem(request, &view);
  if (!problem.ok()) return problem.status();
  bool fresh = false;
  absl::StatusOr<DecodedDrainState> state =
      StateOf(request, decoded->options.deletion.timers, kept, &view, &fresh);
  if (!state.ok()) return state.status();
  const int64_t seen_s = request.seen_s() > 0 ? request.seen_s() : request.now_s();
  problem->doubt = WhatIsNotKnown(view.cluster().objects(), decoded->brakes, seen_s, request.now_s());
  problem->unhealthy = WhatIsUnhealthy(view.cluster(), decoded->brakes);

  const std::string fit = request.fit().SerializeAsString();
  fresh = fresh || kept.cluster != &view.cluster() || kept.label_keys != view.label_keys().size() ||
          kept.fit != fit;
  if (fresh) kept.planner.SetState(state->state);
  kept.cluster = nullptr;  // an exception leaves the planner half done
  WorkBudget budget = BudgetOf(request, deadline);
  const DrainPlan& plan = kept.planner.Plan(*problem, decoded->options, &budget);
  v1::PlanDrainResponse response = EncodeDrainPlan(plan, *problem, request.compact());
  std::erase_if(state->evicted, [&](const v1::EvictedPod& evicted) {
    return request.now_s() - evicted.at_s() >= decoded->options.recent_eviction_s;
  });
  kept.last = {kept.planner.state(), std::move(state->evicted)};
  kept.label_keys = view.label_keys().size();
  kept.fit = fit;
  kept.cluster = &view.cluster();
  if (!request.compact()) *response.mutable_state() = EncodeDrainState(kept.last.state, kept.last.evicted);
  return Sized(std::move(response), "ask for a compact one");
}

}  // namespace loadline
