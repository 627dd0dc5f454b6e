// One step of a view's drain planner: the state from which it starts, and the state after it.
#ifndef LOADLINE_PLUGIN_SERVICE_DRAIN_TURN_H_
#define LOADLINE_PLUGIN_SERVICE_DRAIN_TURN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/drain/timers.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/drain_state.h"
#include "plugin/convert/scale_up_problem.h"
#include "plugin/service/undo.h"

namespace loadline {

// Begin(), a plan of the drain planner for problem(), or none, then Finish(); and Keep() once the answer is
// given for sure. What ends before that, as by an error or exception, leaves the state as it was, and the
// next turn starts over from it.
class DrainTurn {
 public:
  // Since when nodes are not needed where nothing else is remembered; by the time of the question, and for
  // how long such a time counts.
  using Timers = std::function<std::vector<TimedNode>(int64_t now_s, int64_t ttl_s)>;

  // Readies the planner for a question, whose cluster is not read: that of `undo` is. Errors name the field;
  // `options` is what the options are called there. `timers` may be null.
  static absl::StatusOr<DrainTurn> Begin(const v1::PlanDrainRequest& request, absl::string_view options,
                                         UndoUnlessKept* undo, const Timers& timers = nullptr);

  // Has nodes that start stay as NotStarted, for a question about drains alone: a loop reads them from its
  // machines. Errors name the field.
  absl::Status LeaveOutNodesThatStart(const v1::StartupTaints& message);

  // Has pods that wait keep their room, likewise: a loop plans with them. `budget` is that of the question.
  void ExpectOnNodes(const DecodedProblem& waiting, Snapshot* snapshot, WorkBudget* budget);

  const DrainProblem& problem() const { return *problem_; }
  // Gives the problem away: a turn needs it only to plan.
  DrainProblem TakeProblem() { return std::move(*problem_); }
  const DrainOptions& options() const { return options_.options; }
  // Returns the state that the planner has before it plans.
  const DrainState& state() const {
    return handed_in_.has_value() ? handed_in_->state : shared_->drain.last.state;
  }
  // Pods and placeholders of the question that could not be taken.
  const LeftOutList& left_out() const { return left_out_; }

  // Works out the next state: `planned` says whether the planner was asked, and the problem that it was asked
  // is still there.
  void Finish(bool planned);
  // The state after Finish().
  v1::DrainState EncodeState() const;
  // Keeps that state with the view. Nothing in it fails.
  void Keep();

 private:
  SharedView* shared_ = nullptr;
  const View* view_ = nullptr;
  int64_t now_s_ = 0;
  std::string fit_;
  DecodedDrainOptions options_;
  std::unique_ptr<DrainProblem> problem_;
  // Not the state that is kept with the view, but one that the question brings or leads to.
  std::optional<DecodedDrainState> handed_in_;
  bool planned_ = false;
  DecodedDrainState next_;
  LeftOutList left_out_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_DRAIN_TURN_H_
