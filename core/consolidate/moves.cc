#include "core/consolidate/moves.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr int kMostTries = 4;

// A move without what came to nothing.
struct NetMove {
  std::vector<NodeIndex> remove;  // nodes of the cluster
  std::vector<NodeIndex> add;     // as the board knows them
  std::vector<int32_t> movers;    // largest first
  std::set<int32_t> after;        // moves that come before, by number
  double saves = 0;
  double disturbance = 0;
  int64_t disrupted = 0;
  bool done = false;
};

class MoveOrder {
 public:
  MoveOrder(Board* board, const std::vector<MadeMove>& made) : board_(*board), made_(made) {}

  std::vector<ConsolidationMove> Order() {
    Join();
    MakeNet();
    BreakCircles();
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
    for (const ConsolidationGroup& group : board_.problem().groups)
      group_nodes_.push_back(group.current_nodes);
    node_count_ = board_.problem().cluster->node_count();
    last_number_.clear();
    number_.clear();
    copies_.clear();
    move_of_.assign(net_.size(), 0);
    board_.snapshot().Fork();
    FollowAll(wanted);
    board_.snapshot().Revert();
    return std::all_of(net_.begin(), net_.end(), [](const NetMove& move) { return move.done; });
  }

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
    std::vector<std::vector<size_t>> users(static_cast<size_t>(board_.node_end()));
    std::vector<std::vector<std::pair<size_t, NodeIndex>>> steps(board_.movers().size());
    for (size_t i = 0; i < made_.size(); ++i) {
      for (const NodeIndex node : made_[i].removed) {
        for (const size_t user : users[IndexOf(node)]) Unite(user, i);
      }
      for (const NodeIndex node : made_[i].added) users[IndexOf(node)].push_back(i);
      for (const auto& [mover, from] : made_[i].moved) {
        // Where it was before was put down by the move before.
        std::vector<std::pair<size_t, NodeIndex>>& path = steps[static_cast<size_t>(mover)];
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
        if (board_.node(node).is_new) continue;
        net.remove.push_back(node);
        net.saves += board_.node(node).usd;
      }
      for (const NodeIndex node : made_[i].added) {
        if (!Stays(node)) continue;
        net.add.push_back(node);
        net.saves -= board_.node(node).usd;
        brought_by_[node] = found->second;
      }
      for (const auto& [mover, from] : made_[i].moved) {
        if (board_.movers()[static_cast<size_t>(mover)].home == from) net.movers.push_back(mover);
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
    const auto key = [&](int32_t mover) {
      const int32_t kind = board_.movers()[static_cast<size_t>(mover)].kind;
      const MoverKind& entry = board_.kinds()[static_cast<size_t>(kind)];
      return std::tuple(entry.only_room, -entry.size, kind, mover);
    };
    std::sort(net.movers.begin(), net.movers.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    for (const int32_t number : net.movers) {
      const Mover& mover = board_.movers()[static_cast<size_t>(number)];
      net.disturbance += mover.pod.usd;
      if (!mover.pod.placeholder) ++net.disrupted;
      const auto brought = brought_by_.find(mover.node);
      if (brought != brought_by_.end() && brought->second != n)
        net.after.insert(static_cast<int32_t>(brought->second));
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

  // Depth first; empty: there is none.
  std::vector<size_t> CircleThrough(size_t start) const {
    std::vector<int32_t> came_from(net_.size(), -1);
    std::vector<size_t> open = {start};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const int32_t before : net_[at].after) {
        const size_t next = static_cast<size_t>(before);
        if (next == start) {
          std::vector<size_t> circle;
          for (size_t i = at; i != start; i = static_cast<size_t>(came_from[i])) circle.push_back(i);
          circle.push_back(start);
          return circle;
        }
        if (came_from[next] >= 0) continue;
        came_from[next] = static_cast<int32_t>(at);
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
      if (net.after.erase(static_cast<int32_t>(from)) > 0) net.after.insert(static_cast<int32_t>(into));
    }
    a.after.clear();
    Complete(into);
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
    const ConsolidationOptions& options = board_.options();
    double removed = 0;
    for (const NodeIndex node : net.remove) removed += board_.node(node).usd;
    const double required =
        std::max({options.least_saving_usd_per_hour, options.least_saving_percent / 100 * removed,
                  net.disturbance / options.payback_hours});
    return net.saves > 0 && net.saves + 1e-9 >= required && !net.remove.empty();
  }

  bool WithinLimits(const NetMove& net) const {
    std::vector<int64_t> nodes = group_nodes_;
    for (const NodeIndex node : net.add) {
      const size_t group = static_cast<size_t>(board_.node(node).group);
      if (++nodes[group] > std::max(board_.problem().groups[group].max_nodes, group_nodes_[group]))
        return false;
    }
    const std::optional<int64_t>& most = board_.problem().max_nodes;
    if (most.has_value() && !net.add.empty() && node_count_ + static_cast<int64_t>(net.add.size()) > *most)
      return false;
    for (const NodeIndex node : net.remove) {
      const size_t group = static_cast<size_t>(board_.node(node).group);
      if (--nodes[group] < board_.problem().groups[group].min_nodes) return false;
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
      for (const int32_t before : net_[move].after) followers[static_cast<size_t>(before)].push_back(move);
      if (missing[move] == 0 && !net_[move].done) ready.insert(rank[move]);
    }
    std::vector<int> tries(net_.size(), 0);
    while (!ready.empty()) {
      const size_t move = wanted[*ready.begin()];
      ready.erase(ready.begin());
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

  // Makes a move on the snapshot; false, and nothing changed: not now.
  bool Follow(NetMove* net) {
    if (!Pays(*net) || !WithinLimits(*net)) return false;
    Snapshot& snapshot = board_.snapshot();
    snapshot.Fork();
    for (const NodeIndex node : net->remove) snapshot.RemoveNode(node);
    std::map<NodeIndex, NodeIndex> copies;
    for (const NodeIndex node : net->add) copies[node] = AddCopy(board_.node(node).group);
    if (!PlaceAll(*net, copies)) {
      snapshot.Revert();
      return false;
    }
    snapshot.Commit();
    copies_.insert(copies.begin(), copies.end());
    net->done = true;
    move_of_[static_cast<size_t>(net - net_.data())] = moves_.size();
    for (const NodeIndex node : net->add) ++group_nodes_[static_cast<size_t>(board_.node(node).group)];
    for (const NodeIndex node : net->remove) --group_nodes_[static_cast<size_t>(board_.node(node).group)];
    node_count_ += static_cast<int64_t>(net->add.size()) - static_cast<int64_t>(net->remove.size());
    Emit(*net);
    return true;
  }

  NodeIndex AddCopy(int32_t group) {
    const size_t g = static_cast<size_t>(group);
    const std::string name = absl::StrCat(board_.problem().groups[g].name, "#", ++copied_);
    const NodeIndex copy = board_.snapshot().AddNode({name, *board_.problem().groups[g].node, name});
    for (const int32_t shape : board_.node_template(g)->daemons) board_.snapshot().PlacePod(copy, shape);
    return copy;
  }

  // Pods that do not fit at first may fit once others are there.
  bool PlaceAll(const NetMove& net, const std::map<NodeIndex, NodeIndex>& copies) {
    std::vector<int32_t> waiting = net.movers;
    while (!waiting.empty()) {
      std::vector<int32_t> later;
      for (const int32_t number : waiting) {
        const Mover& mover = board_.movers()[static_cast<size_t>(number)];
        NodeIndex to = mover.node;
        if (board_.node(to).is_new) {
          const auto own = copies.find(to);
          to = own != copies.end() ? own->second : copies_.at(to);
        }
        PodFit& fit = board_.fit(mover.kind);
        if (!board_.snapshot().Contains(to)) return false;
        fit.Refresh(board_.work());
        if (!fit.Fits(to)) {
          later.push_back(number);
          continue;
        }
        const MoverKind& kind = board_.kinds()[static_cast<size_t>(mover.kind)];
        board_.snapshot().PlacePod(to, kind.shape, kind.by_name ? mover.name : "",
                                   kind.by_name ? mover.uid : "");
      }
      if (later.size() == waiting.size()) return false;
      waiting = std::move(later);
    }
    return true;
  }

  void Emit(const NetMove& net) {
    ConsolidationMove& move = moves_.emplace_back();
    const Snapshot& snapshot = board_.snapshot();
    for (const NodeIndex node : net.remove)
      move.remove.push_back(board_.problem().nodes[static_cast<size_t>(board_.node(node).problem)].slot);
    std::map<int32_t, std::vector<NodeIndex>> by_group;
    for (const NodeIndex node : net.add) by_group[board_.node(node).group].push_back(node);
    for (const auto& [group, nodes] : by_group) {
      int32_t& last = last_number_[group];
      move.add.push_back({group, static_cast<int64_t>(nodes.size())});
      move.first_number.push_back(last + 1);
      for (const NodeIndex node : nodes) number_[node] = ++last;
    }
    for (const int32_t number : net.movers) {
      const Mover& mover = board_.movers()[static_cast<size_t>(number)];
      MoveTarget to;
      if (board_.node(mover.node).is_new) {
        to.group = board_.node(mover.node).group;
        to.number = number_.at(mover.node);
      } else {
        to.slot = snapshot.slot(mover.node);
      }
      move.pods.push_back({SlotOf(mover.home), mover.pod.position, mover.pod.placeholder, to});
    }
    std::sort(move.pods.begin(), move.pods.end(), [](const PodTransfer& a, const PodTransfer& b) {
      return std::tie(a.from, a.placeholder, a.position) < std::tie(b.from, b.placeholder, b.position);
    });
    std::set<size_t>& after = after_.emplace_back();
    for (const int32_t before : net.after) after.insert(move_of_[static_cast<size_t>(before)]);
    move.saves = net.saves;
    move.disturbance = net.disturbance;
    move.disrupted = net.disrupted;
    std::map<int32_t, int64_t>& takes = takes_.emplace_back();
    for (const int32_t number : net.movers) {
      const int32_t budget = board_.movers()[static_cast<size_t>(number)].pod.budget;
      if (budget >= 0) ++takes[budget];
    }
    for (const auto& [budget, pods] : takes) {
      const int64_t left = std::max<int64_t>(1, board_.problem().budgets[static_cast<size_t>(budget)]);
      move.turns = std::max(move.turns, (pods + left - 1) / left);
    }
  }

  Slot SlotOf(NodeIndex node) const {
    return board_.problem().nodes[static_cast<size_t>(board_.node(node).problem)].slot;
  }

  // A move joins the wave of the one before if budgets and limits hold for all of them together.
  void SetWaves() {
    const ConsolidationOptions& options = board_.options();
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
        joins = joins && before->second + count <= board_.problem().budgets[static_cast<size_t>(budget)];
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

  Board& board_;
  const std::vector<MadeMove>& made_;
  std::vector<size_t> parent_;
  std::vector<NetMove> net_;
  mutable std::set<NodeIndex> gone_;
  std::map<NodeIndex, size_t> brought_by_;
  std::map<NodeIndex, NodeIndex> copies_;  // of new nodes, as they are made again
  int64_t copied_ = 0;
  std::vector<int64_t> group_nodes_;
  int64_t node_count_ = 0;
  std::map<int32_t, int32_t> last_number_;  // by group
  std::map<NodeIndex, int32_t> number_;
  std::vector<size_t> move_of_;                    // by net move: its number among those that are told
  std::vector<std::set<size_t>> after_;            // by move: those before it
  std::vector<std::map<int32_t, int64_t>> takes_;  // by move: of budgets
  std::vector<ConsolidationMove> moves_;
};

}  // namespace

std::vector<ConsolidationMove> OrderMoves(Board* board, const std::vector<MadeMove>& made) {
  return MoveOrder(board, made).Order();
}

}  // namespace loadline
