// One view of an engine, which its threads share.
#ifndef LOADLINE_PLUGIN_SERVICE_SHARED_VIEW_H_
#define LOADLINE_PLUGIN_SERVICE_SHARED_VIEW_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/expected_use.h"
#include "core/cluster/view.h"
#include "core/consolidate/consolidator.h"
#include "core/drain/lasting_blockers.h"
#include "core/grow/growth_turn.h"
#include "core/grow/nominated.h"
#include "core/slack/slack_planner.h"
#include "loadline/v1/size.pb.h"
#include "plugin/base/mutex.h"
#include "plugin/convert/config.h"
#include "plugin/convert/resources.h"
#include "plugin/service/cluster_books.h"
#include "plugin/service/deadline.h"
#include "plugin/service/kept.h"
#include "plugin/service/policy_columns.h"
#include "plugin/service/turn.h"

namespace loadline {

// A view, and what is kept for the next questions about it. The turns are taken in the order in which they
// are declared.
//
// A batch is decoded under `writer` alone, so that questions do not wait for it. A plan takes `planner`, and
// `turn` only while it decodes; then the view is lent to it. Those who come while it is lent read it as well,
// or go on with a copy if they want to change it, or if the plan shows nodes otherwise than they are.
class SharedView {
  // First: what is kept refers to it, and ends before it.
  mutable Mutex pointer_;
  std::shared_ptr<View> current_ ABSL_GUARDED_BY(pointer_);

 public:
  explicit SharedView(const EngineLimits& of_engine)
      : current_(std::make_shared<View>(of_engine.view)),
        limits(of_engine),
        columns(limits.policies),
        snapshot(MostCountBytes()) {}

  // Returns the view as it is at present. To read it takes `turn`, or a share of it; to change it takes
  // `writer` and `turn`, of which either is enough to read it. Questions add label keys and derive shapes
  // anew with `turn`, which a batch that is being decoded does not read.
  std::shared_ptr<View> Current() const;

  // Lends the view to the plan that has `planner`: nobody changes it until EndLoan(). `former`: the nodes
  // that it shows otherwise than they are, as they are. `turn` is locked.
  void Lend(std::vector<ShownNode> former);
  // Puts a copy in the place of a view that is lent. `turn` is locked. Cost: O(1) if it is not; View::Fork().
  void LeaveToPlan();
  // Returns whether the view is lent. `turn` is locked or shared.
  bool IsLent() const { return lent_.has_value(); }
  // Ends the loan. Returns whether the view is still the one that was lent. `turn` is locked.
  bool EndLoan();
  // Drops what refers to the cluster of a plan, and keeps what is remembered for the next one. `planner` is
  // locked.
  void ForgetCluster();
  // Drops what a question with many counts leaves, by the thread that has made them. `planner` is locked.
  void DropLargeTables();
  // Returns whether the view is lent, and shows nodes otherwise than they are. `turn` is locked or shared.
  bool ShowsOtherwise() const { return lent_.has_value() && !lent_->empty(); }

  // Returns the bounds for reading the objects of a batch, and of a question.
  ReadOptions OptionsOfBatch() const;
  ReadOptions OptionsOfQuestion(const View& view) const;

  // Returns what was left out of the view, which is worked out once for each of its states.
  LeftOutList LeftOut(const View& view);

  // Returns the profiles of the view by which pods count with these options; nullptr: none.
  std::shared_ptr<const ExpectedUse> Expected(const View& view, const ExpectedUseOptions& options) const;
  // Has the load line of a question count by the profiles of the view.
  void UseProfiles(const View& view, LoadLine* line) const;
  void UseProfiles(const View& view, FitOptions* options) const;
  // Returns the columns of a policy by which limits count.
  PolicyColumns::Lease Columns(const View& view, const LimitPolicy& policy,
                               std::shared_ptr<const ExpectedUse> profiles_of_policy) const;

  // Checks all of it; `planner` and `turn` are locked. For tests.
  void CheckConsistent() const;

  const EngineLimits limits;
  Turn setter;                     // orders calls that set the whole cluster
  Turn planner;                    // orders plans
  Turn writer;                     // orders batches
  Turn turn;                       // shared by questions that change nothing
  std::atomic<int64_t> bytes = 0;  // View::bytes(), for those who have no turn
  mutable PolicyColumns columns;   // has a lock of its own
  KeptSnapshot snapshot;           // guarded by `planner`
  // The states that planners left for their next loop. Guarded by `planner`.
  v1::SizeState size_state;
  GrowthTurn growth_turn;  // guarded by `planner`; not part of a state that is handed out: it begins anew
  std::vector<ReservedNode> reserved_nodes;  // likewise
  KeptDrain drain;                           // guarded by `planner`
  SlackPlanner slack;                        // guarded by `planner`
  Consolidator consolidator;  // guarded by `planner`; what was tried in vain, also by calls that failed
  ClusterBooks books;         // guarded by `turn`

 private:
  // Returns how much memory each of the tables may take that are kept for the next question. Chosen.
  int64_t MostCountBytes() const { return std::min(int64_t{64} << 20, limits.question_bytes / 4); }

  void ForgetDrains();

  std::optional<std::vector<ShownNode>> lent_;  // guarded by `turn`; see Lend()
  mutable Mutex profiles_;
  mutable ExpectedUseCache expected_ ABSL_GUARDED_BY(profiles_);
  mutable LastingBlockersCache blockers_ ABSL_GUARDED_BY(profiles_);
  Mutex lists_;
  LeftOutList left_out_ ABSL_GUARDED_BY(lists_);  // see LeftOut()
  int64_t left_out_version_ ABSL_GUARDED_BY(lists_) = -1;
};

// The turn of the plans of a view, which lives as long as somebody has it.
struct PlannerTurn {
  std::shared_ptr<SharedView> shared;
  Turn::Lock lock;
};

class LockedView;

// A view that nobody changes, and that other threads may read as well.
class ReadView {
 public:
  // Errors: kDeadlineExceeded  other calls did not let go of it in time; see Turn::Share()
  //         kAborted           it takes a copy of what a plan has, and this call may not wait
  static absl::StatusOr<ReadView> Wait(const std::shared_ptr<SharedView>& shared, const Deadline& deadline);
  ReadView(ReadView&&) = default;
  ReadView& operator=(ReadView&&) = delete;  // would let go of the view before the turn

  const SharedView* operator->() const { return shared_.get(); }
  const View& view() const { return *view_; }

 private:
  friend LockedView;
  ReadView(std::shared_ptr<SharedView> shared, Turn::Shared lock)
      : shared_(std::move(shared)), view_(shared_->Current()), lock_(std::move(lock)) {}

  std::shared_ptr<SharedView> shared_;  // before the turn, which it outlives
  std::shared_ptr<const View> view_;
  Turn::Shared lock_;
};

// A view that this thread has to itself.
class LockedView {
 public:
  // Errors: the same; see Turn::Take()
  static absl::StatusOr<LockedView> Wait(std::shared_ptr<SharedView> shared, const Deadline& deadline);
  LockedView(LockedView&&) = default;
  LockedView& operator=(LockedView&&) = delete;  // would let go of the view before the turn

  SharedView* operator->() const { return shared_.get(); }
  View& view() const { return *view_; }

  // Lets others read it as well, from now on.
  ReadView Share() && { return ReadView(std::move(shared_), Turn::Downgrade(std::move(lock_))); }

 private:
  LockedView(std::shared_ptr<SharedView> shared, Turn::Lock lock)
      : shared_(std::move(shared)), view_(shared_->Current()), lock_(std::move(lock)) {}

  std::shared_ptr<SharedView> shared_;  // before the turn, which it outlives
  std::shared_ptr<View> view_;
  Turn::Lock lock_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SHARED_VIEW_H_
