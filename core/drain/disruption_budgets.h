// Counts the pods that may still be disrupted, by budget.
#ifndef LOADLINE_CORE_DRAIN_DISRUPTION_BUDGETS_H_
#define LOADLINE_CORE_DRAIN_DISRUPTION_BUDGETS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_vector.h"
#include "core/base/work_budget.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"

namespace loadline {

// An eviction that was accepted a short time ago.
struct AcceptedEviction {
  std::string pod_name;
  PodShape shape;  // of the pod, with its labels
};

// The reason for which a pod may not be evicted.
enum class BudgetRefusal {
  kNone,
  kExhausted,        // no disruption is left for now
  kNeverAllows,      // none is left, and none will be: see NeverAllows()
  kStale,            // the status is older than the budget
  kUnhealthy,        // the pod is not ready, and the budget protects such pods while too few are healthy
  kSeveralBudgets,   // the eviction API refuses such a pod
  kInvalidSelector,  // a budget of the namespace does not say which pods it means
  kTooCostly,        // to find out which pods the budgets of the namespace mean costs too much
};
absl::string_view Name(BudgetRefusal refusal);
// Returns whether it is for the count of a budget alone that the pod may not move.
inline bool NothingIsLeft(BudgetRefusal refusal) {
  return refusal == BudgetRefusal::kExhausted || refusal == BudgetRefusal::kNeverAllows;
}

// Returns whether a budget lets no pod go, also once all of its pods are healthy, such as one that wants all
// of them. False while its status is older than the budget.
bool NeverAllows(const DisruptionBudget& budget);

// The position of a budget among those of a cluster, in key order.
enum class BudgetIndex : int32_t {};

// The amounts of budgets that moving one pod takes.
struct BudgetUse {
  // A budget that covers it, the first one of several in key order; none: none does, or counts for this pod.
  OptionalIndex<BudgetIndex> budget;
  // It takes one of what is left.
  bool takes = false;
  // Neither kExhausted nor kNeverAllows: others may take what is left.
  BudgetRefusal refusal = BudgetRefusal::kNone;
  friend bool operator==(const BudgetUse&, const BudgetUse&) = default;
};

// Disruptions that are left. Of a budget that are
//   min(disruptionsAllowed, ready pods seen - desiredHealthy) - evictions not yet in disruptedPods
// and none where the status is stale. Ready pods seen are those that are not terminating and not in
// disruptedPods. Counts that make no sense end in "none left".
//
// A pod that is not ready takes nothing: it is not among the ready pods seen. By unhealthyPodEvictionPolicy
// it moves always (AlwaysAllow), or while currentHealthy >= desiredHealthy (IfHealthyBudget); where
// desiredHealthy is 0 it takes one of what is left, as the eviction API asks. Finished pods, pods in phase
// Pending, pods that are terminating and placeholders of slack take nothing. Not thread-safe while Take() or
// GiveBack() run.
class DisruptionBudgets {
 public:
  // Budgets for tests of rules alone: none.
  DisruptionBudgets() = default;
  // `state` outlives the object and does not change meanwhile. `work`: what matching costs is taken from it.
  // Cost: O(shapes * budgets of their namespace that may match them * requirements), and O(pods) while a
  // budget names pods that are disrupted. Those that ask for one value of a label are found by it. It is
  // bounded: in each namespace by half of what those leave that seem cheaper. Where it would be more, the
  // budgets cover all pods of the namespace and let none of them go. That depends on the state only, and not
  // on `work`, so that all who ask get the same answers.
  explicit DisruptionBudgets(const ClusterState& state, std::span<const AcceptedEviction> evictions = {},
                             WorkBudget* work = nullptr);

  // The budgets of `objects` alone, for NeverAllow(): nothing is counted. `objects` outlives the object and
  // does not change meanwhile. Cost: O(budgets).
  explicit DisruptionBudgets(const ClusterObjects& objects);

  // Returns what moving a pod of this shape takes. `shape` is in ClusterState::pod_shapes() and in use.
  const BudgetUse& UseOf(int32_t shape) const {
    static constexpr BudgetUse kNone;
    return budgets_.empty() ? kNone : uses_[static_cast<size_t>(shape)];
  }
  // Same as UseOf(), for a shape that no pod of the state has. Cost: O(budgets of its namespace).
  BudgetUse Find(const PodShape& shape) const;
  // Returns whether any budget matches pods of the shape, also where it does not count for them.
  bool Covers(const PodShape& shape) const;
  // Returns whether budgets refuse each eviction of pods of the shape for as long as they are as they are:
  // one that NeverAllows() or whose selector is invalid, several, or too many to ask them. Whether the pod is
  // ready plays no part. Cost: O(labels + budgets that may match), bounded.
  bool NeverAllow(const PodShape& shape) const;
  // The first budget of each namespace that costs too much, in order.
  std::vector<ObjectKey> TooCostly() const;

  bool empty() const { return budgets_.empty(); }
  IndexRange<BudgetIndex> indices() const { return budgets_.indices(); }
  const ObjectKey& key(BudgetIndex budget) const { return budgets_[budget].key; }
  // May be below 0.
  int64_t left(BudgetIndex budget) const { return budgets_[budget].left; }

  // Returns why one pod may not move now.
  BudgetRefusal Refuses(const BudgetUse& use) const;
  // Returns whether it might move, had Take() taken nothing.
  bool WouldBeLeft(const BudgetUse& use) const;
  // Returns whether it may move once all pods of its budget are healthy. A budget that wants all of them
  // allows no eviction.
  bool MayBeLeftLater(const BudgetUse& use) const;

  // The answer for pods that are to move together.
  struct Answer {
    // The first pod that may not move, a position; nullopt: all may.
    std::optional<size_t> refused;
    BudgetRefusal refusal = BudgetRefusal::kNone;
    // They may, but not all at once: a budget has less left than they take. Such a node is drained last, and
    // alone.
    bool risky = false;
    friend bool operator==(const Answer&, const Answer&) = default;
  };
  // Cost: O(pods).
  Answer Ask(std::span<const BudgetUse> uses) const;

  // Takes what a pod takes, whether or not it is left, and gives it back. Cost: O(1).
  void Take(const BudgetUse& use) {
    if (use.takes) Change(*use.budget, -1);
  }
  void GiveBack(const BudgetUse& use) {
    if (use.takes) Change(*use.budget, 1);
  }

 private:
  struct Budget {
    ObjectKey key;
    const DisruptionBudget* object = nullptr;
    bool stale = false;
    int64_t left = 0;
    int64_t taken = 0;  // by Take()
  };
  void Change(BudgetIndex budget, int64_t by) {
    budgets_[budget].left += by;
    budgets_[budget].taken -= by;
  }

  // Budgets that may match, and what it costs to ask them.
  struct Candidates {
    std::vector<BudgetIndex> budgets;
    int64_t cost = 0;
  };
  // The budgets of one namespace by what they ask for, of those that may match pods with a label.
  struct ByLabel {
    absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, Candidates> with_label;
    Candidates others;  // which ask for no single value
    std::optional<BudgetIndex> first;
    bool too_costly = false;
  };
  // The next one. What is kept refers to what is given.
  void IndexBudget(absl::string_view namespace_name, const DisruptionBudget& budget);
  // Candidates for pods of a shape; `cost`: of asking all of them. Cost: O(labels).
  static std::vector<const Candidates*> CandidatesFor(const PodShape& shape, const ByLabel& of,
                                                      int64_t* cost);
  // The budgets that match, in order.
  std::vector<BudgetIndex> Matching(const PodShape& shape) const;
  std::vector<BudgetIndex> MatchingAmong(const PodShape& shape, std::span<const Candidates* const> all) const;
  // By shape, the budgets that match; and marks the namespaces that cost too much.
  using MatchingByShape = std::vector<std::vector<BudgetIndex>>;
  MatchingByShape MatchAll(const ClusterState& state, WorkBudget* work);
  // Returns what it cost, at most `most`; beyond it the namespace is given up.
  int64_t MatchNamespace(const ClusterState& state, std::span<const int32_t> shapes, int64_t most,
                         ByLabel* of, MatchingByShape* matching) const;
  BudgetUse UseBy(const PodShape& shape, std::span<const BudgetIndex> matching) const;
  // By shape: budgets that match its pods, which are ready, and of which pods are disrupted.
  using ByName = std::vector<std::vector<BudgetIndex>>;
  StrongVector<BudgetIndex, int64_t> ReadyPodsSeen(const ClusterState& state,
                                                   const MatchingByShape& matching);
  void CountByName(const ClusterState& state, const ByName& by_name,
                   StrongVector<BudgetIndex, int64_t>* seen) const;

  StrongVector<BudgetIndex, Budget> budgets_;
  absl::flat_hash_map<absl::string_view, ByLabel> index_;  // by namespace
  std::vector<BudgetUse> uses_;                            // by shape
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DISRUPTION_BUDGETS_H_
