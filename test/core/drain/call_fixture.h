// One call of the planner up to where its decisions begin.
#ifndef LOADLINE_TEST_CORE_DRAIN_CALL_FIXTURE_H_
#define LOADLINE_TEST_CORE_DRAIN_CALL_FIXTURE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/drain_memory.h"
#include "core/drain/eligible_nodes.h"
#include "core/drain/trial_follower.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {

// A node of 1,000m and plenty of memory, in the first group.
inline DrainNode NodeWith(const std::string& name, std::vector<FitPod> pods) {
  return {{.name = name, .allocatable = {{"cpu", 1'000}, {"memory", 1'000}, {"pods", 110}}}, std::move(pods)};
}

// `model` outlives it, and so does what it is given.
class CallFixture {
 public:
  explicit CallFixture(DrainModel* model, DrainState state = {}, WorkBudget work = {})
      : model_(*model), work_(std::move(work)) {
    options_.eligibility.utilization_threshold = 1;
    memory_.Set(std::move(state));
    Begin();
  }

  // The next call: the cluster may have changed.
  void Begin() {
    if (call_.has_value()) follower_.CheckConsistent(memory_.planned());
    call_.emplace(model_.problem(), options_, memory_.state(), &work_);
    TrialFollower::Followed followed = follower_.Follow(*call_, memory_.TakePlanned());
    formers_ = std::move(followed.formers);
    for (FormerNode& former : memory_.TakeTimers()) formers_.push_back({std::nullopt, std::move(former)});
    follower_.CheckConsistent({});
    call_->SetNodes(follower_.trial().snapshot(), formers_, {});
    eligible_.Judge(followed.changes, &*call_);
  }

  DrainCall& call() { return *call_; }
  TrialFollower& follower() { return follower_; }
  DrainMemory& memory() { return memory_; }
  WorkBudget& work() { return work_; }
  DrainOptions& options() { return options_; }
  std::vector<FormerEntry>& formers() { return formers_; }
  const JudgedNode& judged(int32_t slot) const { return call_->judged(Slot{slot}); }

  // Names of the nodes in the plan, in its order.
  std::vector<std::string> Planned() const {
    std::vector<std::string> names;
    for (const PlannedNode& node : memory_.planned()) names.push_back(model_.name(node.slot));
    return names;
  }

 private:
  DrainModel& model_;
  DrainOptions options_;
  WorkBudget work_;
  std::optional<DrainCall> call_;
  TrialFollower follower_;
  DrainMemory memory_;
  EligibleNodes eligible_;
  std::vector<FormerEntry> formers_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_DRAIN_CALL_FIXTURE_H_
