// The views of an engine, shared by its threads.
#ifndef LOADLINE_PLUGIN_SERVICE_VIEWS_H_
#define LOADLINE_PLUGIN_SERVICE_VIEWS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/expected_use.h"
#include "core/cluster/view.h"
#include "core/consolidate/consolidator.h"
#include "core/drain/lasting_blockers.h"
#include "core/loop/growth_turn.h"
#include "core/loop/nominated.h"
#include "core/slack/slack_planner.h"
#include "loadline/v1/cluster_state.pb.h"
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

// One view and what its threads share. A batch is decoded under `writer` alone, so that questions to the same
// view do not wait for it.
struct SharedView {
  explicit SharedView(const EngineLimits& of_engine)
      : limits(of_engine), view(limits.view), columns(limits.policies) {}

  // Returns the bounds for reading the objects of a batch, and of a question.
  ReadOptions OptionsOfBatch() const {
    ReadOptions options;
    options.names.names = static_cast<size_t>(view.limits().resources);
    options.slack_namespace = limits.slack_namespace;
    return options;
  }
  ReadOptions OptionsOfQuestion() const {
    ReadOptions options =
        loadline::OptionsOfQuestion(view.cluster().resource_names(), limits.slack_namespace);
    options.resize_rule = view.resize_rule();
    return options;
  }

  // Returns what was left out of the view, which is worked out once for each of its states; `turn` is locked.
  const LeftOutList& LeftOut() {
    if (left_out_version != view.version()) left_out = view.LeftOut();
    left_out_version = view.version();
    return left_out;
  }

  // Returns the profiles of the view by which pods count with these options; nullptr: none. `turn` is locked
  // or shared.
  std::shared_ptr<const ExpectedUse> Expected(const ExpectedUseOptions& options) const {
    const MutexLock lock(&profiles);
    return expected.For(options, view.cluster().objects(), view.time_s());
  }
  // Has the load line of a question count by the profiles of the view. `turn` is locked or shared.
  void UseProfiles(LoadLine* line) const { line->sums.expected = Expected(line->expected_use); }
  void UseProfiles(FitOptions* options) const;
  // The columns of a policy by which limits count. `turn` is locked or shared until they are given back.
  PolicyColumns::Lease Columns(const LimitPolicy& policy,
                               std::shared_ptr<const ExpectedUse> profiles_of_policy) const {
    std::shared_ptr<const DrainBlockers> rule;
    if (policy.blockers_together > 0) {
      const MutexLock lock(&profiles);
      rule = blockers.For(view.cluster().objects());
    }
    return columns.For(policy, view.cluster(), std::move(profiles_of_policy), std::move(rule));
  }

  // Checks all of it; `turn` is locked. For tests.
  void CheckConsistent() const;

  const EngineLimits limits;
  Turn setter;  // orders calls that set the whole cluster; taken before `writer`
  Turn writer;  // orders batches; taken before `turn`
  Turn turn;    // shared by questions that change nothing
  // Changed with both turns, so either is enough to read it; questions add label keys and derive shapes anew
  // with `turn`, which a batch that is being decoded does not read.
  View view;
  std::atomic<int64_t> bytes = 0;  // view.bytes(), for those who have neither turn
  mutable PolicyColumns columns;   // has a lock of its own
  mutable Mutex profiles;
  mutable ExpectedUseCache expected ABSL_GUARDED_BY(profiles);
  mutable LastingBlockersCache blockers ABSL_GUARDED_BY(profiles);
  KeptSnapshot snapshot;  // guarded by `turn`
  // The states that planners left for their next loop. Guarded by `turn`.
  v1::SizeState size_state;
  GrowthTurn growth_turn;  // guarded by `turn`; not part of a state that is handed out: it begins anew
  std::vector<ReservedNode> reserved_nodes;  // likewise
  KeptDrain drain;                           // guarded by `turn`
  SlackPlanner slack;                        // guarded by `turn`
  Consolidator consolidator;  // guarded by `turn`; what was tried in vain, also by calls that failed
  ClusterBooks books;         // guarded by `turn`
  LeftOutList left_out;       // guarded by `turn`; see LeftOut()
  int64_t left_out_version = -1;
};

// A view that nobody changes, and that other threads may read as well.
class ReadView {
 public:
  // Errors: kDeadlineExceeded  other calls did not let go of it in time; see Turn::Share()
  static absl::StatusOr<ReadView> Wait(std::shared_ptr<const SharedView> shared, Turn* turn,
                                       const Deadline& deadline) {
    absl::StatusOr<Turn::Shared> lock = turn->Share(deadline);
    if (!lock.ok()) return lock.status();
    return ReadView(std::move(shared), *std::move(lock));
  }
  ReadView(std::shared_ptr<const SharedView> shared, Turn::Shared lock)
      : shared_(std::move(shared)), lock_(std::move(lock)) {}
  ReadView(ReadView&&) = default;
  ReadView& operator=(ReadView&&) = delete;  // would let go of the view before the turn

  const SharedView* operator->() const { return shared_.get(); }

 private:
  std::shared_ptr<const SharedView> shared_;  // before the turn, which it outlives
  Turn::Shared lock_;
};

// A view that this thread has to itself.
class LockedView {
 public:
  // Errors: kDeadlineExceeded  other calls did not let go of it in time; see Turn::Take()
  static absl::StatusOr<LockedView> Wait(std::shared_ptr<SharedView> shared, const Deadline& deadline) {
    absl::StatusOr<Turn::Lock> lock = shared->turn.Take(deadline);
    if (!lock.ok()) return lock.status();
    return LockedView(std::move(shared), *std::move(lock));
  }
  LockedView(LockedView&&) = default;
  LockedView& operator=(LockedView&&) = delete;  // would let go of the view before the turn

  SharedView* operator->() const { return shared_.get(); }

  // Lets others read it as well, from now on.
  ReadView Share() && { return ReadView(std::move(shared_), Turn::Downgrade(std::move(lock_))); }

 private:
  LockedView(std::shared_ptr<SharedView> shared, Turn::Lock lock)
      : shared_(std::move(shared)), lock_(std::move(lock)) {}

  std::shared_ptr<SharedView> shared_;  // before the turn, which it outlives
  Turn::Lock lock_;
};

// A view after a batch.
struct Applied {
  LockedView view;
  int64_t clamped_amounts;  // of the batch
};

// Thread-safe.
class Views {
 public:
  explicit Views(const EngineLimits& limits) : limits_(limits) {}

  const EngineLimits& limits() const { return limits_; }

  // Applies a batch to its view, which the first chunk of a full list creates.
  // Errors: those of ClusterState.Sync. Nothing was applied then.
  absl::StatusOr<Applied> Apply(const v1::Changes& changes, const Deadline& deadline);

  // The same, for a question that changes nothing else. It does not wait for others of its kind if there is
  // nothing to apply.
  absl::StatusOr<ReadView> Read(const v1::Changes& changes, const Deadline& deadline);

  // Returns the view of this name; nullptr: there is none.
  std::shared_ptr<SharedView> Find(absl::string_view name);
  // kNotFound: no such view. kDeadlineExceeded: other calls did not let go of it in time.
  absl::StatusOr<LockedView> Lock(absl::string_view name, const Deadline& deadline);
  absl::StatusOr<ReadView> Read(absl::string_view name, const Deadline& deadline);
  absl::Status Drop(absl::string_view name);

  // All views in name order.
  std::vector<std::pair<std::string, std::shared_ptr<SharedView>>> All() const;

  // Calls that ended because a check of our own failed.
  int64_t failed_checks() const { return failed_checks_; }
  void CountFailedCheck() { ++failed_checks_; }

  // Returns whether a simulation may begin: one runs at a time in an engine. EndSimulation() follows then.
  bool BeginSimulation() { return !simulating_.exchange(true); }
  void EndSimulation() { simulating_ = false; }

  // Returns whether the call that this thread makes has applied the changes that it brought, or found that
  // they were applied before. A call runs on one thread from begin to end, and begins with ForgetApplied().
  static bool HasApplied() { return has_applied; }
  static void ForgetApplied() { has_applied = false; }

  // Checks all views that are not in use. For tests.
  void CheckConsistent() const;

 private:
  struct Entry {
    std::shared_ptr<SharedView> shared;
    Deadline::Clock::time_point named;  // when a call last did
  };
  using ByName = std::map<std::string, Entry, std::less<>>;

  using Silenced = std::vector<std::shared_ptr<SharedView>>;

  // Adds a view under a name that is free. Where there are as many as may be, or all take kFullViews times
  // the memory that one may take, those that were not named for the longest time give way, if that is long
  // enough and no call has them. Errors: kResourceExhausted  no view gives way
  absl::Status Add(absl::string_view name, std::shared_ptr<SharedView> shared);
  // The views that gave way are put into `silenced`.
  absl::Status AddLocked(absl::string_view name, std::shared_ptr<SharedView> shared, Silenced* silenced);
  // Errors: kResourceExhausted  there is no room for this view beside the others
  absl::Status CheckRoom(absl::string_view name, const SharedView& shared) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<LockedView> Lock(absl::string_view name, const std::shared_ptr<SharedView>& shared,
                                  const Deadline& deadline);
  absl::StatusOr<ReadView> Share(absl::string_view name, const std::shared_ptr<SharedView>& shared,
                                 const Deadline& deadline);
  // Applies changes to a view that is known, or about to be.
  absl::StatusOr<Applied> ApplyTo(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                  const Deadline& deadline);
  absl::StatusOr<Applied> Update(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                 const Deadline& deadline);
  absl::StatusOr<Applied> CheckState(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                     const Deadline& deadline);
  absl::Status CheckWhole(absl::string_view name, const SharedView& shared, const Deadline& deadline);
  void Forget(absl::string_view name, const SharedView* shared);
  // The view that may give way to another one at this time; the end if there is none.
  ByName::iterator Silent(Deadline::Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // All views take at most so many times the memory of one, beside ordinary objects. Chosen: scheduler,
  // autoscaler and a command; with the defaults of a container of 512 MiB that are 192 MiB, beside 128 MiB of
  // a question.
  static constexpr int64_t kFullViews = 3;

  static thread_local bool has_applied;
  const EngineLimits limits_;
  std::atomic<int64_t> failed_checks_ = 0;
  std::atomic<bool> simulating_ = false;
  mutable Mutex mutex_;
  // Ordered: Describe lists by name.
  ByName views_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_VIEWS_H_
