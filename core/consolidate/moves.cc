#include "core/consolidate/moves.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/cluster/leaving.h"
#include "core/consolidate/as_scheduled.h"
#include "core/consolidate/net_moves.h"
#include "core/consolidate/place_as_found.h"

namespace loadline {
namespace {

// The number of times that a move is tried in the order of moves before it is given up. Chosen: it may wait
// for the room that a few others make; each try costs a search for all of its pods.
constexpr int kMostTries = 4;
// The number of removed nodes of one move for which it is tried in vain to stay in the place of equal new
// ones. Chosen: each try costs as much as the move itself.
constexpr size_t kMostSwapTries = 8;

class MoveOrder {
 public:
  MoveOrder(TrialCluster* trial_cluster, const std::vector<MadeMove>& made)
      : trial_cluster_(*trial_cluster),
        net_(NetMovesOf(*trial_cluster, made)),
        places_(trial_cluster->movers().size(), kNoTarget),
        leaves_(static_cast<size_t>(trial_cluster->snapshot().node_end())) {
    for (const NetMove& net : net_) {
      for (const MoverIndex mover : net.movers) {
        const NodeIndex to = trial_cluster_.movers()[mover].node;
        if (!absl::c_linear_search(net.add, to)) used_by_others_.insert(to);
      }
    }
  }

  std::vector<ConsolidationMove> Order() {
    std::vector<size_t> found(net_.size());
    std::iota(found.begin(), found.end(), size_t{0});
    const std::vector<NetMove> net = net_;
    bool all = Emitted(ByGain());
    if (!all) {
      // Pods with rules may have got into each other's way. In the order in which moves were found they did
      // not.
      std::vector<ConsolidationMove> by_gain = std::exchange(moves_, {});
      const std::vector<std::map<int32_t, int64_t>> takes = std::exchange(takes_, {});
      const std::vector<std::set<size_t>> after = std::exchange(after_, {});
      net_ = net;
      Emitted(found);
      if (Saved(by_gain) > Saved(moves_)) {
        moves_ = std::move(by_gain);
        takes_ = takes;
        after_ = after;
      }
    }
    SetWaves();
    return std::move(moves_);
  }

 private:
  static double Saved(const std::vector<ConsolidationMove>& moves) {
    double saved = 0;
    for (const ConsolidationMove& move : moves) saved += move.saves;
    return saved;
  }

  // Makes the moves in this order on the snapshot, and takes them back. Whether all could be made.
  bool Emitted(const std::vector<size_t>& wanted) {
    group_nodes_.clear();
    for (const NodeGroup& group : trial_cluster_.problem().groups) group_nodes_.push_back(group.target);
    node_count_ = trial_cluster_.problem().cluster->node_count();
    sizes_ = trial_cluster_.SizesBeforeMoves();
    last_number_.clear();
    brought_.clear();
    copies_.clear();
    move_of_.assign(net_.size(), 0);
    leaves_.assign(leaves_.size(), false);
    for (const NetMove& move : net_) {
      for (const NodeIndex node : move.remove) leaves_[IndexOf(node)] = true;
    }
    trial_cluster_.snapshot().Fork();
    FollowAll(AddingFirst(trial_cluster_, net_, wanted));
    trial_cluster_.snapshot().Revert();
    return std::all_of(net_.begin(), net_.end(), [](const NetMove& move) { return move.done; });
  }

  std::vector<size_t> ByGain() const {
    std::vector<size_t> order(net_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto gain = [&](size_t i) {
      const NetMove& net = net_[i];
      return net.disrupted > 0 ? net.saves / static_cast<double>(net.disrupted)
                               : std::numeric_limits<double>::max();
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (gain(a) != gain(b)) return gain(a) > gain(b);
      return net_[a].saves > net_[b].saves;
    });
    return order;
  }

  bool Pays(const NetMove& net) const {
    MoveTerms terms;
    for (const NodeIndex node : net.remove)
      terms.Remove(trial_cluster_.node(node).usd, trial_cluster_.node(node).age_hours);
    for (const GroupIndex group : GroupsOfNew(net)) terms.Add(UsdOf(trial_cluster_.problem().groups[group]));
    terms.Disturb(net.disturbance);
    return net.saves > 0 && net.saves + 1e-9 >= terms.Required(trial_cluster_.options()) &&
           !net.remove.empty();
  }

  bool WithinLimits(const NetMove& net) const {
    StrongVector<GroupIndex, int64_t> nodes = group_nodes_;
    const std::vector<GroupIndex> added = GroupsOfNew(net);
    for (const GroupIndex group : added) {
      if (++nodes[group] > std::max(MostNodes(trial_cluster_.problem().groups[group]), group_nodes_[group]))
        return false;
    }
    const std::optional<int64_t>& most = trial_cluster_.problem().max_nodes;
    if (most.has_value() && !added.empty() && node_count_ + static_cast<int64_t>(added.size()) > *most)
      return false;
    // New nodes are there before the old ones are removed.
    MinimumSizes sizes = *sizes_;
    for (const GroupIndex group : added) sizes.Restore(group, trial_cluster_.OfferOf(group));
    for (const NodeIndex node : net.remove) {
      const GroupIndex group = *trial_cluster_.node(node).group;
      const NodeOffer offer = trial_cluster_.OfferOf(node);
      if (sizes.Reached(group, offer) != MinimumReached::kNone) return false;
      sizes.Remove(group, offer);
    }
    return true;
  }

  // The best of those whose predecessors are done, one after the other. One that cannot be made now is tried
  // again after each of the next few that could.
  void FollowAll(const std::vector<size_t>& wanted) {
    std::vector<size_t> rank(net_.size()), missing(net_.size());
    std::vector<std::vector<size_t>> followers(net_.size());
    std::set<size_t> ready, blocked;  // ranks
    for (size_t i = 0; i < wanted.size(); ++i) rank[wanted[i]] = i;
    for (size_t move = 0; move < net_.size(); ++move) {
      missing[move] = net_[move].after.size();
      for (const size_t before : net_[move].after) followers[before].push_back(move);
      if (missing[move] == 0 && !net_[move].done) ready.insert(rank[move]);
    }
    std::vector<int> tries(net_.size(), 0);
    while (!ready.empty()) {
      const size_t move = wanted[*ready.begin()];
      ready.erase(ready.begin());
      if (net_[move].done) continue;  // its node stays
      if (!Follow(&net_[move])) {
        if (++tries[move] < kMostTries) blocked.insert(rank[move]);
        continue;
      }
      for (const size_t follower : followers[move]) {
        if (--missing[follower] == 0) ready.insert(rank[follower]);
      }
      ready.insert(blocked.begin(), blocked.end());
      blocked.clear();
    }
  }

  // The groups of all new nodes of a move.
  std::vector<GroupIndex> GroupsOfNew(const NetMove& net) const {
    std::vector<GroupIndex> groups;
    for (const NodeIndex node : net.add) groups.push_back(*trial_cluster_.node(node).group);
    groups.insert(groups.end(), net.further.begin(), net.further.end());
    return groups;
  }

  // Returns the move without swaps of a node for an equal one, which cost evictions for nothing, as far as
  // all pods have a place then.
  NetMove WithoutSwaps(NetMove net) {
    std::set<NodeIndex> failed;
    for (const auto& pair : EqualNodes(trial_cluster_, net, RemovedAlone(net_, net))) {
      if (failed.size() == kMostSwapTries || trial_cluster_.work()->ended()) break;
      const auto& [old, added] = pair;
      const bool open = !absl::c_linear_search(net.stay, old) && absl::c_linear_search(net.add, added);
      if (!open || failed.contains(old) || used_by_others_.contains(added)) continue;
      NetMove without = WithoutSwap(trial_cluster_, pair, net);
      if (!Pays(without) || !WithinLimits(without)) continue;
      leaves_[IndexOf(old)] = false;
      trial_cluster_.snapshot().Fork();
      const bool fits = Make(without, /*further=*/nullptr);
      trial_cluster_.snapshot().Revert();
      if (fits) {
        net = std::move(without);
      } else {
        leaves_[IndexOf(old)] = true;
        failed.insert(old);
      }
    }
    return net;
  }

  // Makes a move on the snapshot, with a few further nodes where it needs them and still pays; false, and
  // nothing changed: not now.
  bool Follow(NetMove* net) {
    NetMove tried = WithoutSwaps(*net);
    const auto may_come = [&](GroupIndex group) { return MayCome(&tried, group); };
    for (;;) {
      if (!Pays(tried) || !WithinLimits(tried)) return false;
      FurtherNode node{may_come, std::nullopt};
      if (Make(tried, &node)) break;
      if (!node.group.has_value()) return false;
      tried.further.push_back(*node.group);
      tried.saves -= UsdOf(trial_cluster_.problem().groups[*node.group]);
    }
    *net = std::move(tried);
    net->done = true;
    for (NetMove& other : net_) {
      const std::optional<NodeIndex> node = other.OnlyRemoved();
      if (node.has_value() && absl::c_linear_search(net->stay, *node)) other.done = true;
    }
    move_of_[static_cast<size_t>(net - net_.data())] = moves_.size();
    for (const GroupIndex group : GroupsOfNew(*net)) {
      ++group_nodes_[group];
      sizes_->Restore(group, trial_cluster_.OfferOf(group));
    }
    for (const NodeIndex node : net->remove) {
      const GroupIndex group = *trial_cluster_.node(node).group;
      --group_nodes_[group];
      sizes_->Remove(group, trial_cluster_.OfferOf(node));
    }
    node_count_ += static_cast<int64_t>(net->add.size() + net->further.size()) -
                   static_cast<int64_t>(net->remove.size());
    Emit(*net);
    return true;
  }

  // Returns whether the move may get a further node of a group. The search decides whether spot nodes may
  // come; see ConsolidationOptions::least_spot_groups.
  // Leaves the move as it is.
  bool MayCome(NetMove* net, GroupIndex group) const {
    if (trial_cluster_.options().mode != ConsolidationMode::kReplace ||
        net->further.size() == kMostFurtherNodes)
      return false;
    const auto spot = [&](GroupIndex of) { return trial_cluster_.problem().groups[of].priced.spot; };
    const std::vector<GroupIndex> added = GroupsOfNew(*net);
    if (spot(group) && std::none_of(added.begin(), added.end(), spot)) return false;
    net->further.push_back(group);
    const bool within = WithinLimits(*net);
    net->further.pop_back();
    return within;
  }

  // False: some pod has no place, which a node of the group in `further` would have, and nothing changed.
  bool Make(const NetMove& net, FurtherNode* further) {
    Snapshot& snapshot = trial_cluster_.snapshot();
    snapshot.Fork();
    Leave(net);
    brought_now_.clear();
    const std::vector<GroupIndex> groups = GroupsOfNew(net);
    for (size_t i = 0; i < groups.size(); ++i) {
      const NodeIndex copy = trial_cluster_.AddToSnapshot(groups[i]);
      if (i < net.add.size()) copies_[net.add[i]] = copy;
      brought_now_[groups[i]].push_back(copy);
    }
    if (!PlaceAll(net, further)) {
      snapshot.Revert();
      return false;
    }
    snapshot.Commit();
    return true;
  }

  void Leave(const NetMove& net) {
    std::map<NodeIndex, std::vector<int32_t>> shapes;
    for (const NodeIndex node : net.remove) shapes[node];
    for (const MoverIndex mover : net.movers)
      shapes[trial_cluster_.movers()[mover].home].push_back(trial_cluster_.KindOf(mover).shape);
    for (const auto& [node, of] : shapes) Vacate(node, of, &trial_cluster_.snapshot());
  }

  bool PlaceAll(const NetMove& net, FurtherNode* further) {
    if (!trial_cluster_.options().as_scheduled) {
      return PlaceAsFound(net, copies_, &trial_cluster_, &places_);
    }
    std::vector<MoverIndex> movers = net.movers;
    std::sort(movers.begin(), movers.end());
    std::vector<NodeIndex> places;
    if (!PlaceAsScheduled(&trial_cluster_, movers, leaves_, &places, further)) return false;
    for (size_t i = 0; i < movers.size(); ++i) places_[movers[i]] = places[i];
    return true;
  }

  void Emit(const NetMove& net) {
    ConsolidationMove& move = moves_.emplace_back();
    const Snapshot& snapshot = trial_cluster_.snapshot();
    for (const NodeIndex node : net.remove) move.remove.push_back(SlotOf(node));
    for (const auto& [group, copies] : brought_now_) {
      int32_t& last = last_number_[group];
      move.add.push_back({group, static_cast<int64_t>(copies.size())});
      move.first_number.push_back(last + 1);
      for (const NodeIndex copy : copies) brought_[copy] = {{Slot{-1}, group, ++last}, moves_.size() - 1};
    }
    std::set<size_t>& after = after_.emplace_back();
    for (const size_t before : net.after) after.insert(move_of_[before]);
    for (const MoverIndex number : net.movers) {
      const Mover& mover = trial_cluster_.movers()[number];
      const NodeIndex place = places_[number];
      MoveTarget to{snapshot.slot(place)};
      if (const auto brought = brought_.find(place); brought != brought_.end()) {
        to = brought->second.as;
        if (brought->second.move + 1 < moves_.size()) after.insert(brought->second.move);
      }
      move.pods.push_back({SlotOf(mover.home), mover.pod.position, mover.pod.placeholder, to});
    }
    std::sort(move.pods.begin(), move.pods.end(), [](const PodTransfer& a, const PodTransfer& b) {
      return std::tie(a.from, a.placeholder, a.position) < std::tie(b.from, b.placeholder, b.position);
    });
    move.saves = net.saves;
    move.disturbance = net.disturbance;
    move.disrupted = net.disrupted;
    std::map<int32_t, int64_t>& takes = takes_.emplace_back();
    for (const MoverIndex number : net.movers) {
      const int32_t budget = trial_cluster_.movers()[number].pod.budget;
      if (budget >= 0) ++takes[budget];
    }
    for (const auto& [budget, pods] : takes) {
      const int64_t left =
          std::max<int64_t>(1, trial_cluster_.problem().budgets[static_cast<size_t>(budget)]);
      move.turns = std::max(move.turns, (pods + left - 1) / left);
    }
  }

  Slot SlotOf(NodeIndex node) const {
    return trial_cluster_.problem().nodes[*trial_cluster_.node(node).problem].slot;
  }

  // A move joins the wave of the one before if budgets and limits hold for all of them together.
  void SetWaves() {
    const ConsolidationOptions& options = trial_cluster_.options();
    std::map<int32_t, int64_t> taken;
    int64_t wave = 0, nodes = 0, pods = 0;
    size_t first = 0;  // of the wave
    for (size_t i = 0; i < moves_.size(); ++i) {
      ConsolidationMove& move = moves_[i];
      const int64_t removed = static_cast<int64_t>(move.remove.size());
      bool joins = nodes == 0 || (nodes + removed <= options.max_nodes_at_once &&
                                  pods + move.disrupted <= options.max_pods_at_once);
      // It counts on nodes that come with a move of the same wave.
      if (after_[i].lower_bound(first) != after_[i].end()) joins = false;
      for (const auto& [budget, count] : takes_[i]) {
        const auto before = taken.find(budget);
        if (before == taken.end()) continue;
        joins =
            joins && before->second + count <= trial_cluster_.problem().budgets[static_cast<size_t>(budget)];
      }
      if (!joins) {
        ++wave;
        first = i;
        nodes = pods = 0;
        taken.clear();
      }
      move.wave = wave;
      nodes += removed;
      pods += move.disrupted;
      for (const auto& [budget, count] : takes_[i]) taken[budget] += count;
    }
  }

  TrialCluster& trial_cluster_;
  std::vector<NetMove> net_;
  std::map<NodeIndex, NodeIndex> copies_;                     // of new nodes, as they are made again
  std::map<GroupIndex, std::vector<NodeIndex>> brought_now_;  // copies that come with the move that is made
  StrongVector<GroupIndex, int64_t> group_nodes_;
  int64_t node_count_ = 0;
  std::optional<MinimumSizes> sizes_;  // against the minima
  std::map<GroupIndex, int32_t> last_number_;
  struct Brought {
    MoveTarget as;
    size_t move = 0;  // of those that are reported
  };
  std::map<NodeIndex, Brought> brought_;           // by copy
  StrongVector<MoverIndex, NodeIndex> places_;     // as the move of the pod was made
  std::vector<bool> leaves_;                       // by node: it is removed by some move
  std::set<NodeIndex> used_by_others_;             // nodes that take pods of moves that do not add them
  std::vector<size_t> move_of_;                    // by net move: its number among those that are reported
  std::vector<std::set<size_t>> after_;            // by move: those before it
  std::vector<std::map<int32_t, int64_t>> takes_;  // by move: of budgets
  std::vector<ConsolidationMove> moves_;
};

}  // namespace

std::vector<ConsolidationMove> OrderMoves(TrialCluster* trial_cluster, const std::vector<MadeMove>& made) {
  return MoveOrder(trial_cluster, made).Order();
}

}  // namespace loadline
