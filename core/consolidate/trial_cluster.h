// The cluster while moves are tried out on it.
#ifndef LOADLINE_CORE_CONSOLIDATE_TRIAL_CLUSTER_H_
#define LOADLINE_CORE_CONSOLIDATE_TRIAL_CLUSTER_H_

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
#include "core/base/strong_vector.h"
#include "core/base/work_budget.h"
#include "core/cluster/minimum_sizes.h"
#include "core/cluster/node_offer.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidation.h"
#include "core/consolidate/node_room.h"
#include "core/fit/fit_search.h"

namespace loadline {

inline constexpr NodeIndex kNoTarget{-1};

// The position of a kind, and of a pod, in the lists of the trial cluster.
enum class MoverKindIndex : int32_t {};
enum class MoverIndex : int32_t {};

// Pods, or placeholders, that are equal for every decision.
struct MoverKind {
  int32_t shape = 0;         // of the snapshot
  MoverIndex first_mover{};  // one of them
  int64_t count = 0;
  std::vector<int64_t> request;  // by column of NodeRoom
  bool by_name = false;          // names decide where it may go: each such pod is a kind of its own
  bool only_room = false;        // it needs no more than room and a node of the right shape
  bool hopeless = false;         // no node takes it, or the budget ended before that was known
  double size = 0;               // larger ones find a place first
  double worth = 0;              // at the shadow prices, US dollars per hour
  std::optional<SearchPod> handle;
  std::unique_ptr<PodFit> on_one_node;  // see MostOn(); made when it is needed
};

// One pod or placeholder of a node that may go.
struct Mover {
  MoverKindIndex kind{};
  NodeIndex home = kNoTarget;  // where it was at first, and where it is
  NodeIndex node = kNoTarget;
  LeavingPod pod;
  absl::string_view name;
  absl::string_view uid;
};

// The facts about a node beside the snapshot.
struct TrialNode {
  std::optional<GroupIndex> group;
  double usd = 0;  // per hour
  std::optional<double> age_hours;
  // The price of the cheapest spot node in this chain of replacements; infinity if there is none.
  double spot_usd = std::numeric_limits<double>::infinity();
  bool may_go = false;
  bool is_new = false;
  // In ConsolidationProblem::nodes; nullopt: a new one, or the problem does not have it.
  std::optional<size_t> problem;
  std::vector<MoverIndex> movers;  // that are on it
};

// The shape and the price of a new node of a group.
struct TrialTemplate {
  std::vector<int64_t> free;     // by column, with its daemons
  std::vector<int32_t> daemons;  // shapes of those that fit it
};

// A trial cluster: snapshot, room, and who is where. Trial makes the moves; all of them are in a Fork() of
// the snapshot that is open as long as this lives. Not thread-safe.
class TrialCluster {
 public:
  // All arguments outlive this. Cost: O(pods of nodes that may go + nodes + groups * daemons).
  TrialCluster(Snapshot* snapshot, const ConsolidationProblem& problem, const ConsolidationOptions& options,
               WorkBudget* budget);
  TrialCluster(const TrialCluster&) = delete;
  TrialCluster& operator=(const TrialCluster&) = delete;

  Snapshot& snapshot() { return snapshot_; }
  const Snapshot& snapshot() const { return snapshot_; }
  const ConsolidationProblem& problem() const { return problem_; }
  const ConsolidationOptions& options() const { return options_; }
  WorkBudget* work() { return budget_; }
  NodeRoom& room() { return *room_; }
  const NodeRoom& room() const { return *room_; }

  StrongVector<MoverKindIndex, MoverKind>& kinds() { return kinds_; }
  const StrongVector<MoverKindIndex, MoverKind>& kinds() const { return kinds_; }
  StrongVector<MoverIndex, Mover>& movers() { return movers_; }
  const StrongVector<MoverIndex, Mover>& movers() const { return movers_; }
  const MoverKind& KindOf(MoverIndex mover) const { return kinds_[movers_[mover].kind]; }
  TrialNode& node(NodeIndex node) { return nodes_[node]; }
  const TrialNode& node(NodeIndex node) const { return nodes_[node]; }
  const StrongVector<NodeIndex, TrialNode>& nodes() const { return nodes_; }
  // Returns whether a node exists and is not about to be deleted. A cordoned node exists too, although it
  // takes no pods.
  bool IsThere(NodeIndex node) const { return snapshot_.Contains(node) && !snapshot_.Leaving(node); }
  // Returns the template of a group, or nullptr if it has none.
  // Returns whether more than half of the nodes of the group are of a dearer kind than its template, as in an
  // Auto Scaling group of mixed instances: the next one may be so, too, and would be replaced again.
  bool MakesDearerNodes(GroupIndex group) const { return dearer_[group] > 0; }
  const TrialTemplate* node_template(GroupIndex group) const { return templates_[group].get(); }
  // Nodes of each group, with those on their way, and of all.
  const StrongVector<GroupIndex, int64_t>& group_nodes() const { return group_nodes_; }
  int64_t node_count() const { return node_count_; }
  void set_node_count(int64_t count) { node_count_ = count; }
  // Counts a node that is removed, or added, in group_nodes() and against the minima.
  void CountRemoved(NodeIndex node);
  void CountAdded(NodeIndex node);
  // Returns the minimum below which the removal of these nodes leads while the others are added.
  MinimumReached MinimumReachedBy(const std::vector<NodeIndex>& removed, const std::vector<NodeIndex>& added);
  // Returns the nodes of the cluster as they count against the minima before all moves.
  MinimumSizes SizesBeforeMoves() const;
  // Returns what a node, or a new node of a group, adds to what the minimum of the cluster bounds.
  NodeOffer OfferOf(NodeIndex node) const;
  NodeOffer OfferOf(GroupIndex group) const { return OfferOf(problem_.groups[group].model->shape); }

  // Returns the worth of the leaving pods of a node.
  double WorthOf(NodeIndex node) const;
  // Sets the worth of one unit of each column at the shadow prices; all 0 until it is set.
  void SetPrices(std::vector<double> prices) { prices_ = std::move(prices); }
  // Returns the worth of all that a new node of a group, or a node of the cluster, offers to pods that may
  // move, over its price: about 1 for the types that the relaxation chooses, less for others.
  double EfficiencyOf(GroupIndex group) const;
  double EfficiencyOf(NodeIndex node) const;

  // Prepares the filters of a kind once; looks again at what may have changed. False: it fits nowhere.
  bool Prepare(MoverKindIndex kind);
  // Returns the filters for a kind that is prepared.
  PodFit& fit(MoverKindIndex kind) { return search_->fit(*kinds_[kind].handle); }
  FitSearch& search() { return *search_; }

  // Adds a new node of a group, with its DaemonSet pods. The group has a template, and the caller has
  // reserved the memory of the node.
  NodeIndex AddNode(GroupIndex group);
  // Adds the same node to the snapshot alone: it has no TrialNode and no room.
  NodeIndex AddToSnapshot(GroupIndex group);
  // Forgets the nodes from `node_end` on, after Revert() has removed them from the snapshot.
  void ForgetNodes(NodeIndex node_end);
  void Place(MoverIndex mover, NodeIndex node);
  // Makes a node leave, without its movers; see Vacate(). A new one was only tried, and is gone at once.
  void Leave(NodeIndex node);

  // Returns the groups whose empty new nodes may take a pod of a kind, the cheapest first; with `by_priority`
  // those of the highest priority before all others.
  std::vector<GroupIndex> PreferredGroups(MoverKindIndex kind);
  // Returns the number of pods of a kind that an empty new node of a group takes, as far as it turns on that
  // node alone; 0: they may not run there.
  int64_t MostOn(MoverKindIndex kind, GroupIndex group);

 private:
  NodeOffer OfferOf(const NodeShape& shape) const;
  void AddMovers(NodeIndex node, const ConsolidationNode& entry);
  void AddKind(GroupIndex group, Slot slot, TrialNode* node);
  MoverKindIndex KindOf(int32_t shape, bool by_name);
  PodFit& FitOnOneNode(MoverKindIndex kind);
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
  StrongVector<MoverKindIndex, MoverKind> kinds_;
  std::vector<std::optional<MoverKindIndex>> kind_of_shape_;  // by shape of the snapshot
  StrongVector<MoverIndex, Mover> movers_;
  StrongVector<NodeIndex, TrialNode> nodes_;
  StrongVector<GroupIndex, std::unique_ptr<TrialTemplate>> templates_;
  StrongVector<GroupIndex, int64_t> dearer_;  // nodes of a dearer kind than the template, less the others
  std::vector<double> prices_;                // by column
  StrongVector<GroupIndex, int64_t> group_nodes_;
  MinimumSizes sizes_;
  int64_t node_count_ = 0;
  int64_t added_ = 0;  // for names of new nodes
  absl::flat_hash_map<std::pair<MoverKindIndex, GroupIndex>, int64_t> most_on_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_TRIAL_CLUSTER_H_
