#include "core/grow/left_as_scheduled.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include "core/base/resource_names.h"
#include "core/base/shuffle.h"
#include "core/fit/shares_left.h"
#include "core/fit/trial_memory.h"

namespace loadline {
namespace {

// The most pods times nodes of all orders together, and the most orders. Chosen: 10 million comparisons of
// some nanoseconds each are a part of a second.
constexpr int64_t kMostShares = 10'000'000;
constexpr int64_t kMostOrders = 6;
// The part of the rest of the budget that all orders may take. Chosen: the other half remains for further
// attempts.
constexpr double kForOrders = 0.5;
// The nodes for each unit of work, about 100 ns: to compare a share takes some nanoseconds.
constexpr int64_t kNodesPerUnit = 64;

int64_t Total(const std::vector<PendingPods>& pods) {
  return std::accumulate(pods.begin(), pods.end(), int64_t{0},
                         [](int64_t sum, const PendingPods& entry) { return sum + entry.count; });
}

// Positions of all pods: first those that request little come first, then kinds and single pods come by
// chance.
std::vector<size_t> OrderOf(const std::vector<PendingPods>& pods, int64_t number, Shuffler* shuffler) {
  std::vector<size_t> kinds(pods.size());
  std::iota(kinds.begin(), kinds.end(), size_t{0});
  const auto cpu_of = [&](size_t kind) { return pods[kind].pod.shape.requests.Get(kCpu); };
  if (number == 0) {
    std::stable_sort(kinds.begin(), kinds.end(), [&](size_t a, size_t b) { return cpu_of(a) < cpu_of(b); });
  } else {
    shuffler->Shuffle(&kinds);
  }
  std::vector<size_t> order;
  for (const size_t kind : kinds) order.insert(order.end(), static_cast<size_t>(pods[kind].count), kind);
  if (number % 2 == 1) shuffler->Shuffle(&order);
  return order;
}

// Returns the number of pods without a place; the budget may end before.
int64_t PlaceInOrder(const std::vector<size_t>& order, SharesLeft shares, Estimator* estimator,
                     Snapshot* snapshot, WorkBudget* budget) {
  TrialMemory memory(budget);
  int64_t left = 0;
  for (const size_t pods : order) {
    PodFit& fit = estimator->fit(pods);
    if (!memory.Pod(fit.UnitsPerNode() + snapshot->node_end() / kNodesPerUnit)) return left;
    if (const auto node = shares.Take(estimator->pods()[pods].pod.shape, &fit)) {
      estimator->Place(pods, *node);
    } else {
      ++left;
    }
  }
  return left;
}

}  // namespace

int64_t LeftAsScheduled(const std::vector<PendingPods>& pods, const std::vector<IncomingPod>& daemons,
                        const std::vector<ComingNodes>& coming, const FitOptions& fit, Snapshot* snapshot,
                        WorkBudget* budget) {
  const int64_t all = Total(pods);
  const int64_t nodes =
      std::accumulate(coming.begin(), coming.end(), int64_t{snapshot->node_end()},
                      [](int64_t sum, const ComingNodes& entry) { return sum + entry.nodes; });
  if (all == 0 || nodes == 0 || all > kMostShares) return 0;
  const int64_t orders = std::min(kMostOrders, kMostShares / all / nodes);
  if (orders == 0) return 0;
  // The plan that is asked about continues with the rest, whatever it takes to ask.
  const WorkPhase phase(budget, kForOrders);
  ReservedMemory memory_of_order(budget, all * static_cast<int64_t>(2 * sizeof(size_t)));
  if (!memory_of_order.ok()) return 0;
  snapshot->Fork();
  int64_t most = 0;
  {
    Estimator estimator(snapshot, &fit, pods, daemons, budget);
    TrialMemory memory(budget);
    for (const ComingNodes& entry : coming) {
      for (int64_t i = 0; i < entry.nodes && memory.Node(*snapshot); ++i)
        estimator.AddCopy(*entry.group, &memory);
    }
    const SharesLeft shares(*snapshot, /*leaves=*/{});
    Shuffler shuffler;
    for (int64_t i = 0; i < orders; ++i) {
      snapshot->Fork();
      most = std::max(most, PlaceInOrder(OrderOf(pods, i, &shuffler), shares, &estimator, snapshot, budget));
      snapshot->Revert();
    }
  }
  snapshot->Revert();
  return budget->ended() ? 0 : most;
}

}  // namespace loadline
