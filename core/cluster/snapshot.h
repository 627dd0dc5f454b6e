// A cluster to try things out on: moves that can be undone in the order in which they were made.
#ifndef LOADLINE_CORE_CLUSTER_SNAPSHOT_H_
#define LOADLINE_CORE_CLUSTER_SNAPSHOT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/fingerprint_index.h"
#include "core/base/resource_names.h"
#include "core/base/work_budget.h"
#include "core/cluster/anti_affinity_terms.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/domain_counts.h"
#include "core/cluster/journal.h"
#include "core/cluster/limit_sums.h"
#include "core/cluster/topology.h"

namespace loadline {

// A pod on a node. Text lies in the cluster state or in the snapshot.
struct SnapshotPod {
  int32_t shape = -1;  // see Snapshot::pod_shape()
  absl::string_view name;
  absl::string_view uid;
  friend bool operator==(const SnapshotPod&, const SnapshotPod&) = default;
};

// A host port in use on a node, and the number of pods that use it: a pod may be placed where it does not
// fit.
struct UsedPort {
  HostPort port;
  int32_t pods = 0;
  friend bool operator==(const UsedPort&, const UsedPort&) = default;
};

// One resource of one node. Sums are exact, so that they can be taken back.
struct NodeAmount {
  absl::int128 requested = 0;  // below 2^31 pods of at most 2^62 each
  int64_t allocatable = 0;
  int64_t free = 0;  // allocatable - requested, at least -2^62; below 0 where pods hold more than there is
  friend bool operator==(const NodeAmount&, const NodeAmount&) = default;
};

// The properties of a node to be added.
struct NewNode {
  std::string name;
  NodeShape shape;
  std::optional<std::string> hostname;
  Slot slot = Slot{-1};
};

// Nodes and their unfinished pods. PlacePod, RemovePod, AddNode and RemoveNode change it, and nothing else
// does.
//
// A move costs O(what it changes: resources, ports and claims of the pod, and the counts that it takes part
// in), whatever the number of nodes; Revert costs the same as the moves that it undoes. The order of the pods
// on a node is part of the state and is restored as well. Not thread-safe; const members may run together.
class Snapshot {
 public:
  enum class Source {
    kFixed,    // the cluster state does not change as long as the snapshot lives
    kChanges,  // Reload() follows all of its changes, before anything else is asked
  };

  // `state` outlives the snapshot. Cost: O(nodes log nodes + pods).
  explicit Snapshot(const ClusterState& state, Source source = Source::kFixed);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // --- nodes -------------------------------------------------------------------------------------------

  int32_t node_end() const { return static_cast<int32_t>(nodes_.size()); }
  bool Contains(NodeIndex node) const {
    return IndexOf(node) < nodes_.size() && nodes_[IndexOf(node)].present;
  }
  // Returns whether the node exists and pods may be placed on it.
  bool Placeable(NodeIndex node) const { return Contains(node) && !nodes_[IndexOf(node)].closed; }
  // About to be deleted, see MarkLeaving().
  bool Leaving(NodeIndex node) const { return At(node).leaving; }
  std::optional<NodeIndex> FindSlot(Slot slot) const;
  const std::string& name(NodeIndex node) const { return At(node).name; }
  Slot slot(NodeIndex node) const { return At(node).slot; }
  int32_t node_shape_id(NodeIndex node) const { return At(node).shape; }
  const NodeShape& node_shape(NodeIndex node) const { return *node_shapes_[At(node).shape]; }
  NodeLabels labels(NodeIndex node) const;
  std::span<const SnapshotPod> pods(NodeIndex node) const { return At(node).pods; }
  std::span<const UsedPort> ports(NodeIndex node) const { return At(node).ports; }
  // Volumes of the pods of a node, in the mean over all nodes; rounded up.
  int64_t volumes_per_node() const {
    const int64_t nodes = std::max<int64_t>(1, node_end());
    return (volumes_ + nodes - 1) / nodes;
  }
  // If the cluster state had no name for the resource when the snapshot was made: all 0 unless the node
  // offers it, whatever pods there request. A pod that asks for it fits nowhere else, so that a question
  // which brings thousands of names of its own needs no column for them.
  const NodeAmount& amount(NodeIndex node, ResourceId resource) const;
  // Returns the number of resource names of the cluster state.
  size_t amount_end() const { return width_; }
  // One for each of these, by id.
  std::span<const NodeAmount> amounts(NodeIndex node) const {
    return {amounts_.data() + CheckedIndex("node", IndexOf(node), nodes_.size()) * width_, width_};
  }

  // Returns the bytes that a further node takes beside its own text: the rows of all nodes move when they
  // grow.
  int64_t bytes_of_node() const { return static_cast<int64_t>(2 * width_ * sizeof(NodeAmount)); }

  // --- pods and their shapes ---------------------------------------------------------------------------

  // The number of a shape; equal shapes have equal numbers. Resource ids are those of the cluster state's
  // names, which may have been added to.
  int32_t InternShape(const PodShape& shape);
  const PodShape& pod_shape(int32_t shape) const { return *pod_shapes_[shape]; }
  int32_t pod_shape_end() const { return pod_shapes_.size(); }
  // Returns whether any shape, also of pods that are gone, is of a placeholder or has a lower priority.
  bool HasShapesBelow(int32_t priority) const { return has_placeholders_ || lowest_priority_ < priority; }
  // The shape of a pod of the cluster state, or of one that was interned with this number there.
  int32_t ShapeOf(int32_t state_shape);
  // Pods that use a claim by its name; ephemeral volumes do not.
  int32_t ClaimUsers(absl::string_view namespace_name, absl::string_view name) const;

  const ClusterState& state() const { return state_; }
  const ClusterObjects& objects() const { return state_.objects(); }

  // --- moves -------------------------------------------------------------------------------------------

  void Fork() { forks_.push_back({log_.size(), texts_.size()}); }
  // False: there is no Fork left to end, and nothing happened.
  bool Commit();
  bool Revert();
  size_t depth() const { return forks_.size(); }

  // `node` is there; of a name or UID that is not empty a copy is kept.
  void PlacePod(NodeIndex node, int32_t shape, absl::string_view name = "", absl::string_view uid = "");
  // `position` in pods(node); the last pod takes its place.
  void RemovePod(NodeIndex node, size_t position);
  // Adds a node without pods, behind all that were ever there.
  NodeIndex AddNode(NewNode node);
  // Takes a node away with its pods.
  void RemoveNode(NodeIndex node);
  // Nothing may be placed on the node any more; it and its pods go on counting.
  void CloseNode(NodeIndex node);
  // Marks a node after CloseNode() as one that is about to be deleted: it counts as one with
  // kToBeDeletedTaint, so that spread constraints which honor taints leave it and its pods out. Cost: O(pods
  // of the node) if there are any such.
  void MarkLeaving(NodeIndex node);

  // Makes the nodes in these slots what the cluster state says now: pods that were placed there are gone,
  // those that were removed are back, and pods may be placed on all of them. Slots of all nodes that the
  // state changed are among them, each slot at most once; of Source::kChanges, outside of forks. Nodes that
  // are new, or of which name or shape changed, are numbered behind all others. Cost: O(slots + their pods +
  // shapes).
  void Reload(std::span<const Slot> slots);

  // Checks what the snapshot keeps against what it would be if worked out anew from the pods of its nodes.
  // For tests. Cost: O((pods + nodes) * (1 + counts)).
  void CheckConsistent() const;

  // --- counts ------------------------------------------------------------------------------------------

  // The counts of each spec, which are worked out when they are asked for first and kept from then on. They
  // live as long as the snapshot. Cost: for each that is new O(shapes that its predicate is asked about +
  // pods that it counts), with CountUse::kSpread also O(nodes); O(nodes + pods) once where pods have been
  // taken from between others.
  std::vector<const DomainCounts*> Counts(std::vector<CountSpec> specs);
  // The same within a budget, which takes work and memory of what is new; nullopt when it ends: then nothing
  // of it is kept.
  std::optional<std::vector<const DomainCounts*>> Counts(std::vector<CountSpec> specs, WorkBudget* budget);
  const TopologyKey& Topology(const std::string& key);
  // Returns a number for a text, the same as long as the snapshot lives: what thousands of counts have in
  // common is in the identity of each as 8 bytes.
  int64_t NumberOf(std::string text);
  // About the memory, in bytes, of counts, topology keys and numbered texts. It only grows.
  int64_t count_bytes() const { return count_bytes_; }

  // Returns what pods count as by their limits, by node: worked out when it is asked for first and kept up to
  // date from then on, as long as it is used or among the last few that were. Cost: O(pods) for a spec that
  // is new.
  std::shared_ptr<const LimitSums> SumLimits(const LimitSumsSpec& spec);

  // The required anti-affinity terms of all shapes.
  const AntiAffinityTerms& anti_affinity_terms() const { return anti_affinity_terms_; }

  // The journal of nodes that lost a pod, came, or are no longer closed: where what did not fit before may
  // fit now. As Journal::Since().
  std::optional<std::span<const NodeIndex>> freed(int64_t since) const { return freed_.Since(since); }
  int64_t freed_end() const { return freed_.end(); }

 private:
  struct ExtraAmount {
    ResourceId resource;
    NodeAmount amount;
  };
  struct Node {
    bool present = false;
    bool closed = false;
    bool leaving = false;
    int32_t shape = -1;
    Slot slot = Slot{-1};
    std::vector<SnapshotPod> pods;
    std::vector<UsedPort> ports;  // sorted
    std::string name;
    std::optional<std::string> hostname;
    // Resources that the node offers and that have no column, by id; nullptr: none.
    std::unique_ptr<std::vector<ExtraAmount>> extra;
  };
  // The pods of a shape.
  struct PodsOfShape {
    int32_t count = 0;
    // Pods with rules are kept listed, as it is mostly pods like them that look at them. Others are listed
    // once somebody asks.
    bool has_rules = false;
    // `nodes` has an entry for each of them. Ends when one is removed that is not the last of them, because
    // to find it would take a search.
    bool listed = false;
    std::vector<NodeIndex> nodes;
  };
  struct Move {
    enum class Kind { kPlace, kRemove, kAddNode, kRemoveNode, kClose, kLeaving };
    Kind kind = Kind::kPlace;
    NodeIndex node{-1};
    size_t position = 0;   // kRemove
    SnapshotPod pod = {};  // kRemove
  };
  struct Mark {
    size_t moves;
    size_t texts;
  };
  // Shapes numbered in the order in which they came, each once.
  template <typename Shape>
  class Numbers {
   public:
    int32_t Intern(const Shape& shape, bool copy);
    const Shape* operator[](int32_t id) const {
      return shapes_[CheckedIndex("shape", static_cast<size_t>(id), shapes_.size())];
    }
    int32_t size() const { return static_cast<int32_t>(shapes_.size()); }
    void CheckConsistent() const;

   private:
    std::vector<const Shape*> shapes_;
    std::deque<Shape> owned_;
    FingerprintIndex index_;
  };

  Node& At(NodeIndex node) { return nodes_[CheckedIndex("node", IndexOf(node), nodes_.size())]; }
  const Node& At(NodeIndex node) const { return nodes_[CheckedIndex("node", IndexOf(node), nodes_.size())]; }
  // One that is there.
  Node& Present(NodeIndex node) {
    LOADLINE_CHECK(Contains(node)) << "node " << static_cast<int32_t>(node) << " is not in the snapshot";
    return nodes_[IndexOf(node)];
  }
  int32_t Intern(const PodShape& shape, bool copy);
  bool follows() const { return source_ == Source::kChanges; }
  void AttachPodsOf(Slot slot, NodeIndex node);
  void Join(NodeIndex node);
  void Leave(NodeIndex node);
  void Attach(NodeIndex node, const SnapshotPod& pod);
  void Detach(NodeIndex node, size_t position);
  void Count(NodeIndex node, const SnapshotPod& pod, int32_t sign);
  void CountShape(NodeIndex node, PodsOfShape* pods, int32_t sign);
  void CountRules(Node* node, const PodShape& shape, int32_t sign);
  NodeAmount* FindExtra(const Node& node, ResourceId resource) const;
  void SetLeaving(NodeIndex node, bool leaving);
  void ListPods();
  void ReadTopology(TopologyKey* topology);
  bool OnSomeNode(const std::string& key);
  void AddToTopologies(NodeIndex node);
  void AddTo(TopologyKey* topology, NodeIndex node, const std::string* value);
  std::vector<int32_t> ShapesCountedBy(const CountSpec& spec, WorkBudget* budget) const;
  bool ReadNodes(std::span<DomainCounts* const> added, WorkBudget* budget);
  bool ReadPods(std::span<DomainCounts* const> added, WorkBudget* budget);
  bool Counted(const CountSpec& spec, int32_t shape) const;
  void Undo(const Move& move);
  // Filled in place: this is called for every pod that is placed.
  void Log(Move::Kind kind, NodeIndex node) {
    if (forks_.empty()) return;
    Move& move = log_.emplace_back();
    move.kind = kind;
    move.node = node;
  }
  absl::string_view Keep(absl::string_view text);
  void RecordFreed(NodeIndex node);
  const std::vector<DomainCounts*>& CountsOf(int32_t shape);
  void CheckNode(NodeIndex node) const;
  void CheckAmounts(NodeIndex node) const;
  void CheckShapes() const;
  void CheckCounts() const;
  void CheckLimitSums() const;
  void CheckMoves() const;

  const ClusterState& state_;
  const Source source_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<int32_t, NodeIndex> by_slot_;
  Numbers<NodeShape> node_shapes_;
  Numbers<PodShape> pod_shapes_;
  std::vector<PodsOfShape> pods_of_;                                  // by shape
  int32_t lowest_priority_ = std::numeric_limits<int32_t>::max();     // of all shapes
  bool has_placeholders_ = false;                                     // among them
  absl::flat_hash_map<std::string, std::vector<int32_t>> shapes_in_;  // by namespace
  AntiAffinityTerms anti_affinity_terms_;
  std::vector<int32_t> shape_of_state_;  // by shape of the cluster state; -1: not asked for yet
  const size_t width_;                   // resources that have a column
  std::vector<NodeAmount> amounts_;      // node * width_ + resource
  absl::flat_hash_map<std::string, int32_t> claim_users_;
  int64_t volumes_ = 0;  // of all pods
  std::deque<std::string> texts_;
  std::vector<Move> log_;  // empty outside of forks
  std::vector<Mark> forks_;
  absl::flat_hash_map<std::string, std::unique_ptr<TopologyKey>> topologies_;
  absl::flat_hash_map<std::string, std::unique_ptr<DomainCounts>> counts_;
  std::vector<DomainCounts*> all_counts_;               // in the order of their making
  std::vector<DomainCounts*> spread_counts_;            // of these, those with CountUse::kSpread
  std::vector<DomainCounts*> leaving_counts_;           // of these, those that see which nodes are leaving
  std::vector<std::vector<DomainCounts*>> counts_of_;   // by shape: those that count it
  std::vector<size_t> counts_seen_;                     // by shape: how many of all_counts_ were asked
  std::vector<std::shared_ptr<LimitSums>> limit_sums_;  // those asked for last come last
  absl::flat_hash_map<std::string, int64_t> numbers_;
  int64_t count_bytes_ = 0;
  // The number of nodes, from the first on, whose hostname is their own name.
  int32_t named_by_host_ = 0;
  absl::flat_hash_set<std::string> label_keys_;  // of the first label_keys_read_ node shapes
  int32_t label_keys_read_ = 0;
  Journal<NodeIndex> freed_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SNAPSHOT_H_
