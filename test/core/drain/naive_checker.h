// Recounts from the objects whether a drain plan is one that may be carried out. Shares no code with the
// planner, the filters or the model: objects are read as the tests state them.
#ifndef LOADLINE_TEST_CORE_DRAIN_NAIVE_CHECKER_H_
#define LOADLINE_TEST_CORE_DRAIN_NAIVE_CHECKER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/core/drain/drain_cluster.h"

namespace loadline {

struct NamedMove {
  std::string pod;  // or placeholder
  std::string to;
};
struct NamedRemoval {
  std::string node;
  bool empty = false;
  bool risky = false;
  bool start = false;
  int64_t since_s = 0;
  std::vector<NamedMove> moves;
};
// A plan by names.
struct NamedPlan {
  std::vector<NamedRemoval> remove;
  std::vector<std::string> keep;
  bool braked = false;
};
NamedPlan Named(const DrainModel& model, const DrainPlan& plan);

// A pod whose eviction was accepted; it may still be on its node.
struct Evicted {
  FitPod pod;
  std::string node;
  int64_t at_s = 0;
};
// The removals under way, and the question.
struct CheckedState {
  std::vector<std::string> deleting;
  std::set<std::string> draining;     // of `deleting` those that have, or had, pods to move
  std::set<std::string> risky;        // of `draining` those beside which no other drain may start
  std::vector<Evicted> evictions;     // whose replacements are waited for
  std::optional<int64_t> last_now_s;  // of the plan before
  DrainOptions options;
};

// Returns the faults of the plan, each by the number of the invariant; empty: none. Budgets have selectors of
// one value, terms of pods one label, and pods one spread constraint at most.
std::vector<std::string> CheckPlan(const DrainCluster& cluster, const CheckedState& state,
                                   const NamedPlan& plan);

// Finds the pods of a node that need another place when it is removed: positions. False: one of them keeps
// the node there, other than for budgets.
bool MovablePods(const DrainCluster& cluster, const DrainNode& node, std::vector<size_t>* pods, bool* waits,
                 const DrainRuleOptions& rules = {});

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_DRAIN_NAIVE_CHECKER_H_
