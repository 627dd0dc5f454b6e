#include "core/consolidate/net_moves.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

class NetMaker {
 public:
  NetMaker(const TrialCluster& trial_cluster, const std::vector<MadeMove>& made)
      : trial_cluster_(trial_cluster), made_(made) {}

  std::vector<NetMove> Make() {
    Join();
    MakeNet();
    BreakCircles();
    return std::move(net_);
  }

 private:
  size_t RootOf(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Unite(size_t a, size_t b) {
    a = RootOf(a);
    b = RootOf(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  // A move that takes off what another one brought, or where it put pods, is one with it.
  void Join() {
    parent_.resize(made_.size());
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    StrongVector<NodeIndex, std::vector<size_t>> users(trial_cluster_.nodes().size());
    StrongVector<MoverIndex, std::vector<std::pair<size_t, NodeIndex>>> steps(trial_cluster_.movers().size());
    for (size_t i = 0; i < made_.size(); ++i) {
      for (const NodeIndex node : made_[i].removed) {
        for (const size_t user : users[node]) Unite(user, i);
      }
      for (const NodeIndex node : made_[i].added) users[node].push_back(i);
      for (const auto& [mover, from] : made_[i].moved) {
        // The move before put it where it was until now.
        std::vector<std::pair<size_t, NodeIndex>>& path = steps[mover];
        if (!path.empty()) Unite(path.back().first, i);
        path.emplace_back(i, from);
      }
    }
  }

  void MakeNet() {
    std::map<size_t, size_t> number;
    for (size_t i = 0; i < made_.size(); ++i) {
      const auto [found, is_new] = number.try_emplace(RootOf(i), net_.size());
      if (is_new) net_.emplace_back();
      NetMove& net = net_[found->second];
      for (const NodeIndex node : made_[i].removed) {
        if (trial_cluster_.node(node).is_new) continue;
        net.remove.push_back(node);
        net.saves += trial_cluster_.node(node).usd;
      }
      for (const NodeIndex node : made_[i].added) {
        if (!Stays(node)) continue;
        net.add.push_back(node);
        net.saves -= trial_cluster_.node(node).usd;
        brought_by_[node] = found->second;
      }
      for (const auto& [mover, from] : made_[i].moved) {
        if (trial_cluster_.movers()[mover].home == from) net.movers.push_back(mover);
      }
    }
    for (size_t n = 0; n < net_.size(); ++n) Complete(n);
  }

  bool Stays(NodeIndex node) const { return !gone().contains(node); }
  const std::set<NodeIndex>& gone() const {
    if (gone_.empty()) {
      gone_.insert(kNoTarget);
      for (const MadeMove& move : made_) gone_.insert(move.removed.begin(), move.removed.end());
    }
    return gone_;
  }

  void Complete(size_t n) {
    NetMove& net = net_[n];
    std::sort(net.remove.begin(), net.remove.end());
    std::sort(net.add.begin(), net.add.end());
    const auto key = [&](MoverIndex mover) {
      const MoverKind& kind = trial_cluster_.KindOf(mover);
      return std::tuple(kind.only_room, -kind.size, trial_cluster_.movers()[mover].kind, mover);
    };
    std::sort(net.movers.begin(), net.movers.end(),
              [&](MoverIndex a, MoverIndex b) { return key(a) < key(b); });
    for (const MoverIndex number : net.movers) {
      const Mover& mover = trial_cluster_.movers()[number];
      net.disturbance += mover.pod.usd;
      if (!mover.pod.placeholder) ++net.disrupted;
      const auto brought = brought_by_.find(mover.node);
      if (brought != brought_by_.end() && brought->second != n) net.after.insert(brought->second);
    }
  }

  // Moves that wait for each other become one.
  void BreakCircles() {
    for (size_t start = 0; start < net_.size(); ++start) {
      for (std::vector<size_t> circle = CircleThrough(start); !circle.empty();
           circle = CircleThrough(start)) {
        for (const size_t other : circle) {
          if (other != start) Merge(start, other);
        }
      }
    }
  }

  // Returns a circle of moves that wait for each other, found depth first; empty: there is none.
  std::vector<size_t> CircleThrough(size_t start) const {
    std::vector<std::optional<size_t>> came_from(net_.size());
    std::vector<size_t> open = {start};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const size_t next : net_[at].after) {
        if (next == start) {
          std::vector<size_t> circle;
          for (size_t i = at; i != start; i = *came_from[i]) circle.push_back(i);
          circle.push_back(start);
          return circle;
        }
        if (came_from[next].has_value()) continue;
        came_from[next] = at;
        open.push_back(next);
      }
    }
    return {};
  }

  void Merge(size_t into, size_t from) {
    NetMove& a = net_[into];
    NetMove& b = net_[from];
    a.remove.insert(a.remove.end(), b.remove.begin(), b.remove.end());
    a.add.insert(a.add.end(), b.add.begin(), b.add.end());
    a.movers.insert(a.movers.end(), b.movers.begin(), b.movers.end());
    a.saves += b.saves;
    a.disturbance = 0;
    a.disrupted = 0;
    b = NetMove();
    b.done = true;
    for (auto& [node, net] : brought_by_) {
      if (net == from) net = into;
    }
    for (NetMove& net : net_) {
      if (net.after.erase(from) > 0) net.after.insert(into);
    }
    a.after.clear();
    Complete(into);
  }

  const TrialCluster& trial_cluster_;
  const std::vector<MadeMove>& made_;
  std::vector<size_t> parent_;
  std::vector<NetMove> net_;
  mutable std::set<NodeIndex> gone_;
  std::map<NodeIndex, size_t> brought_by_;
};

}  // namespace

std::vector<NodeIndex> RemovedAlone(const std::vector<NetMove>& moves, const NetMove& net) {
  std::vector<NodeIndex> nodes;
  if (net.add.empty()) return nodes;
  for (const NetMove& other : moves) {
    const std::optional<NodeIndex> node = other.OnlyRemoved();
    if (node.has_value() && !absl::c_linear_search(net.remove, *node)) nodes.push_back(*node);
  }
  return nodes;
}

std::vector<size_t> AddingFirst(const TrialCluster& trial_cluster, const std::vector<NetMove>& moves,
                                std::vector<size_t> order) {
  std::set<GroupIndex> grow;
  for (const NetMove& net : moves) {
    for (const NodeIndex node : net.add) grow.insert(*trial_cluster.node(node).group);
  }
  std::stable_partition(order.begin(), order.end(), [&](size_t i) {
    const std::optional<NodeIndex> node = moves[i].OnlyRemoved();
    return !node.has_value() || !grow.contains(*trial_cluster.node(*node).group);
  });
  return order;
}

std::vector<std::pair<NodeIndex, NodeIndex>> EqualNodes(const TrialCluster& trial_cluster,
                                                        const NetMove& move,
                                                        const std::vector<NodeIndex>& others) {
  std::map<std::pair<NodeIndex, NodeIndex>, int64_t> shared;
  std::map<NodeIndex, int64_t> pods;
  std::map<NodeIndex, std::vector<int64_t>> requests;  // by new node
  for (const NodeIndex added : move.add) requests[added].resize(trial_cluster.room().width());
  for (const MoverIndex number : move.movers) {
    const Mover& mover = trial_cluster.movers()[number];
    ++shared[{mover.home, mover.node}];
    ++pods[mover.home];
    const auto of = requests.find(mover.node);
    if (of == requests.end()) continue;
    const std::vector<int64_t>& request = trial_cluster.KindOf(number).request;
    for (size_t i = 0; i < request.size(); ++i) of->second[i] = SaturatingAdd(of->second[i], request[i]);
  }
  using Key = std::tuple<int64_t, int64_t, NodeIndex, NodeIndex>;
  std::vector<Key> keys;
  for (const NodeIndex old : move.remove) {
    for (const NodeIndex added : move.add) {
      const TrialNode &a = trial_cluster.node(old), &b = trial_cluster.node(added);
      if (a.group == b.group && a.usd <= b.usd)
        keys.emplace_back(-shared[{old, added}], -pods[old], old, added);
    }
  }
  for (const NodeIndex old : others) {
    const std::vector<int64_t> free = trial_cluster.room().FreeOn(old);
    for (const auto& [added, request] : requests) {
      const TrialNode &a = trial_cluster.node(old), &b = trial_cluster.node(added);
      if (a.group != b.group || a.usd > b.usd) continue;
      if (absl::c_equal(request, free,
                        [](int64_t asked, int64_t left) { return asked == 0 || asked <= left; }))
        keys.emplace_back(0, 0, old, added);
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::pair<NodeIndex, NodeIndex>> pairs;
  for (const Key& key : keys) pairs.emplace_back(std::get<2>(key), std::get<3>(key));
  return pairs;
}

NetMove WithoutSwap(const TrialCluster& trial_cluster, const std::pair<NodeIndex, NodeIndex>& pair,
                    NetMove move) {
  const auto& [old, added] = pair;
  if (std::erase(move.remove, old) > 0) move.saves -= trial_cluster.node(old).usd;
  if (std::erase(move.add, added) > 0) move.saves += trial_cluster.node(added).usd;
  move.stay.push_back(old);
  move.spared.push_back(added);
  std::vector<MoverIndex> movers;
  for (const MoverIndex number : move.movers) {
    const Mover& mover = trial_cluster.movers()[number];
    if (mover.home != old) {
      movers.push_back(number);
      continue;
    }
    move.vacated.push_back(mover.node);
    move.disturbance -= mover.pod.usd;
    if (!mover.pod.placeholder) --move.disrupted;
  }
  move.movers = std::move(movers);
  return move;
}

std::vector<NetMove> NetMovesOf(const TrialCluster& trial_cluster, const std::vector<MadeMove>& made) {
  return NetMaker(trial_cluster, made).Make();
}

}  // namespace loadline
