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
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/base/mutex.h"
#include "plugin/convert/config.h"
#include "plugin/service/deadline.h"
#include "plugin/service/planned_view.h"
#include "plugin/service/shared_view.h"
#include "plugin/service/turn.h"

namespace loadline {

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
  absl::StatusOr<Applied> Apply(const v1::Changes& changes, const Deadline& deadline) {
    return Apply(changes, deadline, nullptr);
  }

  // The same, for a question that changes nothing else. It does not wait for others of its kind if there is
  // nothing to apply.
  absl::StatusOr<ReadView> Read(const v1::Changes& changes, const Deadline& deadline);

  // The same, for a question that plans: it waits for those before it.
  absl::StatusOr<std::unique_ptr<PlannedView>> Plan(const v1::Changes& changes, const Deadline& deadline);

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
  // The same as the public one. `planner`: takes the turn of plans as well; nullptr: does not.
  absl::StatusOr<Applied> Apply(const v1::Changes& changes, const Deadline& deadline, PlannerTurn* planner);
  // Applies changes to a view that is known, or about to be.
  absl::StatusOr<Applied> ApplyTo(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                  const Deadline& deadline, PlannerTurn* planner);
  absl::StatusOr<Applied> Update(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                 const Deadline& deadline);
  absl::StatusOr<Applied> CheckState(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                     const Deadline& deadline);
  absl::Status CheckWhole(absl::string_view name, const SharedView& shared, const View& view,
                          const Deadline& deadline);
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
