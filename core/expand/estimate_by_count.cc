#include "core/expand/estimate_by_count.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/fit/trial_memory.h"
#include "core/pack/fill.h"

namespace loadline {
namespace {

class Runs {
 public:
  Runs(const CountedEstimateInput& input, NodeLimiter limiter, WorkBudget* budget)
      : input_(input), limiter_(limiter), budget_(budget), memory_(budget) {
    least_.assign(input.columns->width(), std::numeric_limits<int64_t>::max());
    for (const size_t pods : input.order) {
      if (!input.admitted[pods]) continue;
      const auto request = input.columns->request(pods);
      for (size_t i = 0; i < request.size(); ++i) least_[i] = std::min(least_[i], request[i]);
    }
  }

  NodeEstimate Fill() {
    NodeEstimate estimate;
    estimate.placed.resize(input_.counts.size());
    for (const size_t pods : input_.order) {
      int64_t left = input_.counts[pods];
      if (left == 0 || (input_.mode == EstimateMode::kExact && !input_.admitted[pods])) continue;
      // Each run is looked at, resource by resource.
      const size_t columns = 1 + input_.columns->width() / kColumnsPerUnit;
      if (!budget_->Spend(static_cast<int64_t>(1 + runs_.size() * columns / kRunsPerUnit))) {
        estimate.end = EstimateEnd::kBudget;
        break;
      }
      if (input_.admitted[pods]) left -= FillRuns(pods, left);
      if (left > 0) left -= AddNodes(pods, left);
      estimate.placed[pods] = input_.counts[pods] - left;
      estimate.pods += estimate.placed[pods];
    }
    if (estimate.end == EstimateEnd::kComplete && refused_) estimate.end = EstimateEnd::kNodeLimit;
    for (Run& run : full_) runs_.push_back(std::move(run));
    for (Run& run : runs_) {
      if (run.pods.empty()) continue;
      estimate.nodes += run.nodes;
      estimate.runs.push_back({run.nodes, std::move(run.pods)});
    }
    return estimate;
  }

 private:
  static constexpr size_t kRunsPerUnit = 16;
  static constexpr size_t kColumnsPerUnit = 16;

  struct Run {
    int64_t nodes;
    std::vector<int64_t> free;
    std::vector<PodCount> pods;
  };

  // `count` pods more on each of `nodes` nodes like those of `run`.
  Run With(const Run& run, int64_t nodes, size_t pods, int64_t count) {
    // Copied: where the budget ends at that, the next pods are not looked at.
    const size_t values = run.free.size() + 2 * run.pods.size();
    budget_->Spend(static_cast<int64_t>(values / kColumnsPerUnit));
    memory_.Take(static_cast<int64_t>(sizeof(Run) + values * sizeof(int64_t)));
    Run filled{nodes, run.free, run.pods};
    TakeCopies(input_.columns->request(pods), count, &filled.free);
    filled.pods.push_back({static_cast<int32_t>(pods), count});
    return filled;
  }

  // First fit into nodes that are there. Returns how many pods were placed.
  int64_t FillRuns(size_t pods, int64_t wanted) {
    int64_t left = wanted;
    std::vector<Run> next;
    next.reserve(runs_.size() + 2);
    for (Run& run : runs_) {
      const int64_t each =
          left == 0 ? 0 : std::min(left, CopiesThatFit(run.free, input_.columns->request(pods)));
      const int64_t filled = each == 0 ? 0 : std::min(run.nodes, left / each);
      if (each > 0 && run.pods.empty()) empty_ = false;
      if (filled > 0) {
        Keep(With(run, filled, pods, each), &next);
        left -= filled * each;
        run.nodes -= filled;
      }
      if (run.nodes > 0 && each > 0 && left > 0) {
        Keep(With(run, 1, pods, left), &next);
        left = 0;
        --run.nodes;
      }
      if (run.nodes > 0) next.push_back(std::move(run));
    }
    runs_ = std::move(next);
    return wanted - left;
  }

  // Runs that can take no pod of any kind need not be looked at again.
  void Keep(Run run, std::vector<Run>* to) {
    const bool full = [&] {
      for (size_t i = 0; i < least_.size(); ++i) {
        if (run.free[i] < least_[i]) return true;
      }
      return false;
    }();
    (full ? full_ : *to).push_back(std::move(run));
  }

  int64_t AddNodes(size_t pods, int64_t wanted) {
    // The node that was added last is empty: another one would not do better.
    if (empty_) return 0;
    const int64_t each = input_.admitted[pods]
                             ? std::min(wanted, CopiesThatFit(input_.free, input_.columns->request(pods)))
                             : 0;
    if (each == 0) {
      AddEmptyNode();
      return 0;
    }
    const int64_t needed = wanted / each + (wanted % each != 0 ? 1 : 0);
    const int64_t nodes = limiter_.Grant(needed);
    refused_ = refused_ || nodes < needed;
    const int64_t filled = std::min(nodes, wanted / each);
    const Run empty{0, input_.free, {}};
    if (filled > 0) Keep(With(empty, filled, pods, each), &runs_);
    if (nodes > filled) Keep(With(empty, 1, pods, wanted % each), &runs_);
    return filled * each + (nodes > filled ? wanted % each : 0);
  }

  // Cluster Autoscaler adds a node before it knows that the pod does not fit it, and keeps it for later pods.
  void AddEmptyNode() {
    if (limiter_.Grant(1) == 0) {
      refused_ = true;
      return;
    }
    runs_.push_back({1, input_.free, {}});
    empty_ = true;
  }

  const CountedEstimateInput& input_;
  NodeLimiter limiter_;
  WorkBudget* budget_;
  TrialMemory memory_;
  std::vector<int64_t> least_;  // by column: the smallest request of any pods
  std::vector<Run> runs_;       // in the order in which the nodes came
  std::vector<Run> full_;
  bool refused_ = false;
  bool empty_ = false;
};

}  // namespace

NodeEstimate EstimateByCount(const CountedEstimateInput& input, NodeLimiter limiter, WorkBudget* budget) {
  return Runs(input, limiter, budget).Fill();
}

}  // namespace loadline
