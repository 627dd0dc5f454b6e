// The cluster while moves are tried out on it.
#ifndef LOADLINE_CORE_CONSOLIDATE_BOARD_H_
#define LOADLINE_CORE_CONSOLIDATE_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidation.h"
#include "core/consolidate/node_room.h"
#include "core/fit/fit_search.h"

namespace loadline {

inline constexpr NodeIndex kNoTarget{-1};

// Pods, or placeholders, that are equal for every decision.
struct MoverKind {
  int32_t shape = -1;        // of the snapshot
  int32_t first_mover = -1;  // one of them
  int64_t count = 0;
  std::vector<int64_t> request;  // by column of NodeRoom
  bool by_name = false;          // names decide where it may go: each such pod is a kind of its own
  bool only_room = false;        // it needs no more than room and a node of the right shape
  bool hopeless = false;         // no node takes it, or the budget ended before that was known
  double size = 0;               // larger ones find a place first
  double worth = 0;              // at the shadow prices, US dollars per hour
  std::optional<SearchPod> handle;
};

// One pod or placeholder of a node that may go.
struct Mover {
  int32_t kind = -1;
  NodeIndex home = kNoTarget;  // where it was at first, and where it is
  NodeIndex node = kNoTarget;
  LeavingPod pod;
  absl::string_view name;
  absl::string_view uid;
};

// What is known of a node beside the snapshot.
struct BoardNode {
  int32_t group = -1;
  double usd = 0;  // per hour
  std::optional<double> age_hours;
  // What the cheapest spot node costs of those that it is, or came in the place of; infinity: none.
  double spot_usd = std::numeric_limits<double>::infinity();
  bool may_go = false;
  bool is_new = false;
  int32_t problem = -1;         // in ConsolidationProblem::nodes; -1: a new one, or the problem has it not
  std::vector<int32_t> movers;  // that are on it
};

// What a new node of a group is.
struct BoardTemplate {
  std::vector<int64_t> free;     // by column, with its daemons
  std::vector<int32_t> daemons;  // shapes of those that fit it
};

// Snapshot, room, and who is where. Moves are made by Trial; all of them lie in a Fork() of the snapshot that
// is open as long as the board lives. Not thread-safe.
class Board {
 public:
  // All outlive the board. Cost: O(pods of nodes that may go + nodes + groups * daemons).
  Board(Snapshot* snapshot, const ConsolidationProblem& problem, const ConsolidationOptions& options,
        WorkBudget* budget);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  Snapshot& snapshot() { return snapshot_; }
  const Snapshot& snapshot() const { return snapshot_; }
  const ConsolidationProblem& problem() const { return problem_; }
  const ConsolidationOptions& options() const { return options_; }
  WorkBudget* work() { return budget_; }
  NodeRoom& room() { return *room_; }
  const NodeRoom& room() const { return *room_; }

  std::vector<MoverKind>& kinds() { return kinds_; }
  const std::vector<MoverKind>& kinds() const { return kinds_; }
  std::vector<Mover>& movers() { return movers_; }
  const std::vector<Mover>& movers() const { return movers_; }
  BoardNode& node(NodeIndex node) { return nodes_[IndexOf(node)]; }
  const BoardNode& node(NodeIndex node) const { return nodes_[IndexOf(node)]; }
  int32_t node_end() const { return static_cast<int32_t>(nodes_.size()); }
  // nullptr: it has none.
  const BoardTemplate* node_template(size_t group) const { return templates_[group].get(); }
  // Nodes of each group, with those on their way, and of all.
  std::vector<int64_t>& group_nodes() { return group_nodes_; }
  const std::vector<int64_t>& group_nodes() const { return group_nodes_; }
  int64_t node_count() const { return node_count_; }
  void set_node_count(int64_t count) { node_count_ = count; }

  // What the leaving pods of a node are worth.
  double WorthOf(NodeIndex node) const;
  // What one unit of each column is worth at the shadow prices; all 0 until it is set.
  void SetPrices(std::vector<double> prices) { prices_ = std::move(prices); }
  // What all that a new node of a group, or a node of the cluster, offers to pods that may move would be
  // worth over its price: about 1 for the types that the relaxation chooses, less for others.
  double EfficiencyOf(size_t group) const;
  double EfficiencyOf(NodeIndex node) const;

  // Prepares the filters of a kind once; looks again at what may have changed. False: it fits nowhere.
  bool Prepare(int32_t kind);
  // Of a kind that is prepared.
  PodFit& fit(int32_t kind) { return search_->fit(*kinds_[static_cast<size_t>(kind)].handle); }
  FitSearch& search() { return *search_; }

  // A new node of a group, with its daemons; it has a template, and the memory of the node is there.
  NodeIndex AddNode(int32_t group);
  // Takes the last nodes off what is known, when Revert() has taken them off the snapshot.
  void ForgetNodes(int32_t node_end);
  void Place(int32_t mover, NodeIndex node);

  // How many pods of a kind an empty new node of a group takes by itself; 0: it may not go there.
  int64_t MostOn(int32_t kind, int32_t group);

 private:
  void AddMovers(NodeIndex node, const ConsolidationNode& entry);
  int32_t KindOf(int32_t shape, bool by_name);
  void MakeColumns();
  void MakeTemplates();
  IncomingPod PodOf(const MoverKind& kind) const;
  double WorthOfRoom(std::span<const int64_t> free) const;

  Snapshot& snapshot_;
  const ConsolidationProblem& problem_;
  const ConsolidationOptions& options_;
  WorkBudget* budget_;
  std::unique_ptr<FitSearch> search_;
  std::unique_ptr<NodeRoom> room_;
  std::vector<MoverKind> kinds_;
  std::vector<int32_t> kind_of_shape_;  // by shape of the snapshot; -1: not known yet
  std::vector<Mover> movers_;
  std::vector<BoardNode> nodes_;  // by NodeIndex
  std::vector<std::unique_ptr<BoardTemplate>> templates_;
  std::vector<double> prices_;  // by column
  std::vector<int64_t> group_nodes_;
  int64_t node_count_ = 0;
  int64_t added_ = 0;                              // for names of new nodes
  absl::flat_hash_map<int64_t, int64_t> most_on_;  // by kind and group
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_BOARD_H_
