#include "core/consolidate/as_scheduled.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/shuffle.h"
#include "core/cluster/leaving.h"
#include "core/cluster/scoped_fork.h"
#include "core/cluster/snapshot.h"
#include "core/fit/shares_left.h"

namespace loadline {
namespace {

// The nodes for each unit of work, about 100 ns: to compare a share takes some nanoseconds.
constexpr int64_t kNodesPerUnit = 64;

// The orders in which the pods of a move may come back, as positions: reversed, largest and smallest first,
// shuffled pod by pod and kind by kind (controllers bring back pods of a kind together), and as they are
// numbered.
class ReturnOrders {
 public:
  ReturnOrders(const TrialCluster& trial_cluster, std::span<const MoverIndex> movers)
      : numbered_(movers.size()) {
    std::iota(numbered_.begin(), numbered_.end(), size_t{0});
    for (const MoverIndex mover : movers) kinds_.push_back(trial_cluster.movers()[mover].kind);
    largest_ = numbered_;
    const auto size_of = [&](size_t i) { return trial_cluster.kinds()[kinds_[i]].size; };
    std::stable_sort(largest_.begin(), largest_.end(),
                     [&](size_t a, size_t b) { return size_of(a) > size_of(b); });
    // Few nodes need more orders, and each order costs less.
    const auto nodes = static_cast<int64_t>(trial_cluster.nodes().size());
    count_ = std::clamp<int64_t>(kOrdersTimesNodesSquared / (nodes * nodes), kFewestOrders, kMostOrders);
  }

  int64_t count() const { return count_; }
  // The same, with the pods of one node after those of another.
  std::vector<size_t> NodeByNode(int64_t number, const TrialCluster& trial_cluster,
                                 std::span<const MoverIndex> movers) {
    std::vector<size_t> order = Order(number);
    std::map<NodeIndex, size_t> rank;
    const auto home_of = [&](size_t i) { return trial_cluster.movers()[movers[i]].home; };
    for (const size_t i : order) rank.try_emplace(home_of(i), rank.size());
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return rank[home_of(a)] < rank[home_of(b)]; });
    return order;
  }
  std::vector<size_t> Order(int64_t number) {
    if (number + 1 == count_) return numbered_;
    if (number == 0) return {largest_.rbegin(), largest_.rend()};
    if (number == 1) return largest_;
    if (number == 2) return {numbered_.rbegin(), numbered_.rend()};
    std::vector<size_t> order = numbered_;
    shuffler_.Shuffle(&order);
    if (number % 2 == 0) {
      std::map<MoverKindIndex, size_t> rank;
      for (const size_t i : order) rank.try_emplace(kinds_[i], rank.size());
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return rank[kinds_[a]] < rank[kinds_[b]]; });
    }
    return order;
  }

 private:
  // Chosen: 32 orders up to 25 nodes, and 4 from 71 nodes on, so that all orders together cost about the
  // same.
  static constexpr int64_t kOrdersTimesNodesSquared = 20'000, kFewestOrders = 4, kMostOrders = 32;

  std::vector<size_t> numbered_, largest_;
  std::vector<MoverKindIndex> kinds_;  // by position
  int64_t count_ = 0;
  Shuffler shuffler_;
};

// Finds the group whose new node takes a pod of this kind beside the pods that are placed.
void FindFurther(TrialCluster* trial_cluster, MoverKindIndex kind, FurtherNode* further) {
  for (const GroupIndex group : trial_cluster->PreferredGroups(kind)) {
    if (!trial_cluster->work()->Spend(20)) return;
    if (!further->may_come(group)) continue;
    trial_cluster->snapshot().Fork();
    const NodeIndex node = trial_cluster->AddToSnapshot(group);
    trial_cluster->fit(kind).Refresh(trial_cluster->work());
    const bool fits = trial_cluster->fit(kind).Fits(node);
    trial_cluster->snapshot().Revert();
    if (fits) {
      further->group = group;
      return;
    }
  }
}

// Returns whether it matters for some pod where the others are, while these are on several nodes.
bool DependOnOtherNodes(const TrialCluster& trial_cluster, std::span<const MoverIndex> movers) {
  const NodeIndex first = trial_cluster.movers()[movers.front()].home;
  return absl::c_any_of(movers, [&](MoverIndex i) { return !trial_cluster.KindOf(i).only_room; }) &&
         absl::c_any_of(movers, [&](MoverIndex i) { return trial_cluster.movers()[i].home != first; });
}

// `stay`: pods are on their nodes, and count there, until it is their turn.
bool PlaceInOrder(TrialCluster* trial_cluster, std::span<const MoverIndex> movers,
                  std::vector<size_t> waiting, bool stay, SharesLeft shares, std::vector<NodeIndex>* places,
                  FurtherNode* further) {
  Snapshot& snapshot = trial_cluster->snapshot();
  const auto shape_of = [&](size_t i) { return trial_cluster->KindOf(movers[i]).shape; };
  const auto home_of = [&](size_t i) { return trial_cluster->movers()[movers[i]].home; };
  if (stay) {
    for (const size_t i : waiting) snapshot.PlacePod(home_of(i), shape_of(i));
  }
  while (!waiting.empty()) {
    std::vector<size_t> later;
    for (const size_t i : waiting) {
      const Mover& mover = trial_cluster->movers()[movers[i]];
      const MoverKind& kind = trial_cluster->kinds()[mover.kind];
      if (!trial_cluster->work()->Spend(1 + snapshot.node_end() / kNodesPerUnit)) return false;
      if (stay) TakeOff(home_of(i), shape_of(i), &snapshot);
      trial_cluster->fit(mover.kind).Refresh(trial_cluster->work());
      const std::optional<NodeIndex> node =
          shares.Take(snapshot.pod_shape(kind.shape), &trial_cluster->fit(mover.kind));
      if (!node.has_value()) {
        later.push_back(i);
        continue;
      }
      snapshot.PlacePod(*node, kind.shape, kind.by_name ? mover.name : "", kind.by_name ? mover.uid : "");
      (*places)[i] = *node;
    }
    if (later.size() == waiting.size()) {
      const Mover& stuck = trial_cluster->movers()[movers[later.front()]];
      if (further != nullptr) FindFurther(trial_cluster, stuck.kind, further);
      return false;
    }
    waiting = std::move(later);
    stay = false;
  }
  return true;
}

}  // namespace

bool PlaceAsScheduled(TrialCluster* trial_cluster, std::span<const MoverIndex> movers,
                      const std::vector<bool>& leaves, std::vector<NodeIndex>* places, FurtherNode* further) {
  places->assign(movers.size(), kNoTarget);
  ReturnOrders orders(*trial_cluster, movers);
  const SharesLeft shares(trial_cluster->snapshot(), leaves);
  const bool node_by_node = !movers.empty() && DependOnOtherNodes(*trial_cluster, movers);
  for (int64_t i = 0; i < orders.count() && node_by_node; ++i) {
    const ScopedFork fork(&trial_cluster->snapshot());
    if (!PlaceInOrder(trial_cluster, movers, orders.NodeByNode(i, *trial_cluster, movers), /*stay=*/true,
                      shares, places, further)) {
      return false;
    }
  }
  for (int64_t i = 0; i < orders.count(); ++i) {
    trial_cluster->snapshot().Fork();
    const bool all =
        PlaceInOrder(trial_cluster, movers, orders.Order(i), /*stay=*/false, shares, places, further);
    if (all && i + 1 == orders.count()) {
      trial_cluster->snapshot().Commit();
    } else {
      trial_cluster->snapshot().Revert();
    }
    if (!all) return false;
  }
  return true;
}

}  // namespace loadline
