// The cheapest cluster that holds the pods: what it costs, what it must cost, and how to get there.
#ifndef LOADLINE_CORE_CONSOLIDATE_CONSOLIDATOR_H_
#define LOADLINE_CORE_CONSOLIDATE_CONSOLIDATOR_H_

#include <cstdint>
#include <optional>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidation.h"
#include "core/consolidate/search.h"

namespace loadline {

// Plans again and again for one cluster. Failed attempts are remembered from call to call, so that a plan
// after few changes costs little, and one whose budget ended continues with the nodes that were not tried.
// Equal questions to new objects give equal answers. Not thread-safe.
class Consolidator {
 public:
  // `snapshot` is of the problem's cluster, has all its changes, and is as before when the call returns.
  // Cost: O(pods) and the trials of nodes that changed; see cost_bound.h, search.h and moves.h.
  ConsolidationPlan Plan(Snapshot* snapshot, const ConsolidationProblem& problem,
                         const ConsolidationOptions& options, WorkBudget* budget);

  // Returns whether Plan() may answer something new: the last question differed in more than ages and the
  // time, its budget ended, it found moves, or failed attempts are due again. O(nodes + leaving pods).
  bool Due(const ConsolidationProblem& problem, const ConsolidationOptions& options) const;
  // When it is due again although nothing changes, in seconds since 1970; nullopt: nothing was asked.
  std::optional<int64_t> next_s() const { return next_s_; }
  // Returns whether the last plan is younger than so many seconds.
  bool PlannedWithin(int64_t seconds, int64_t now_s) const {
    return planned_s_.has_value() && now_s - *planned_s_ < seconds;
  }
  // Returns the bill of the last plan.
  const ConsolidationBill& bill() const { return bill_; }

  // Forgets what was tried.
  void Forget() { *this = Consolidator(); }
  const TriedNodes& tried() const { return tried_; }

 private:
  TriedNodes tried_;     // one for each node at most
  uint64_t groups_ = 0;  // a hash of groups and options that it was tried with
  uint64_t asked_ = 0;   // a hash of the last question
  std::optional<int64_t> next_s_;
  std::optional<int64_t> planned_s_;
  ConsolidationBill bill_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_CONSOLIDATOR_H_
