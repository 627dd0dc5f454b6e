// A cluster to try things out on: moves that can be undone in the order in which they were made.
#ifndef LOADLINE_CORE_CLUSTER_SNAPSHOT_H_
#define LOADLINE_CORE_CLUSTER_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/anti_affinity_terms.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/domain_counts.h"
#include "core/cluster/journal.h"
#include "core/cluster/topology.h"

namespace loadline {

// A pod on a node. Text lies in the cluster state or in the snapshot.
struct SnapshotPod {
  int32_t shape = -1;  // see Snapshot::pod_shape()
  absl::string_view name;
  absl::string_view uid;
  friend bool operator==(const SnapshotPod&, const SnapshotPod&) = default;
};

// A port that pods of a node take, and how many of them: a pod may be put where it does not fit.
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

// What a node to be added is.
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
// on a node is part of the state and comes back as well. Not thread-safe; const members may run together.
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
  // There, and not a ghost.
  bool Placeable(NodeIndex node) const { return Contains(node) && !nodes_[IndexOf(node)].ghost; }
  std::optional<NodeIndex> FindSlot(Slot slot) const;
  const std::string& name(NodeIndex node) const { return nodes_[IndexOf(node)].name; }
  Slot slot(NodeIndex node) const { return nodes_[IndexOf(node)].slot; }
  int32_t node_shape_id(NodeIndex node) const { return nodes_[IndexOf(node)].shape; }
  const NodeShape& node_shape(NodeIndex node) const { return *node_shapes_[nodes_[IndexOf(node)].shape]; }
  int32_t node_shape_end() const { return node_shapes_.size(); }
  NodeLabels labels(NodeIndex node) const;
  std::span<const SnapshotPod> pods(NodeIndex node) const { return nodes_[IndexOf(node)].pods; }
  std::span<const UsedPort> ports(NodeIndex node) const { return nodes_[IndexOf(node)].ports; }
  // Of a resource that neither node nor pods know, all 0.
  const NodeAmount& amount(NodeIndex node, ResourceId resource) const;
  // One per resource id below resource_end().
  std::span<const NodeAmount> amounts(NodeIndex node) const {
    return {amounts_.data() + IndexOf(node) * width_, width_};
  }

  // --- pods and their shapes ---------------------------------------------------------------------------

  // The number of a shape; equal shapes have equal numbers. Resource ids are those of the cluster state's
  // names, which may have been added to.
  int32_t InternShape(const PodShape& shape);
  const PodShape& pod_shape(int32_t shape) const { return *pod_shapes_[shape]; }
  int32_t pod_shape_end() const { return pod_shapes_.size(); }
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
  void MakeGhost(NodeIndex node);

  // Makes the nodes in these slots what the cluster state says now: pods that were placed there are gone,
  // those that were removed are back, and none is a ghost. Slots of all nodes that the state changed are
  // among them, each slot at most once; of Source::kChanges, outside of forks. Nodes that are new, or of
  // which name or shape changed, are numbered behind all others. Cost: O(slots + their pods + shapes).
  void Reload(std::span<const Slot> slots);

  // --- counts ------------------------------------------------------------------------------------------

  // The counts of each spec, which are worked out when they are asked for first and kept from then on. They
  // live as long as the snapshot. Cost: O(shapes) for each that is new; O(nodes + pods) for all of these
  // together, unless no pod is counted by any of them and none is for CountUse::kSpread.
  std::vector<const DomainCounts*> Counts(std::vector<CountSpec> specs);
  const TopologyKey& Topology(const std::string& key);

  // The required anti-affinity terms of all shapes.
  const AntiAffinityTerms& anti_affinity_terms() const { return anti_affinity_terms_; }

  // The journal of nodes that lost a pod, came, or are no longer ghosts: where what did not fit before may
  // fit now. As Journal::Since().
  std::optional<std::span<const NodeIndex>> freed(int64_t since) const { return freed_.Since(since); }
  int64_t freed_end() const { return freed_.end(); }

 private:
  struct Node {
    bool present = false;
    bool ghost = false;
    int32_t shape = -1;
    Slot slot = Slot{-1};
    std::string name;
    std::optional<std::string> hostname;
    std::vector<SnapshotPod> pods;
    std::vector<UsedPort> ports;  // sorted
  };
  struct Move {
    enum class Kind { kPlace, kRemove, kAddNode, kRemoveNode, kGhost };
    Kind kind;
    NodeIndex node;
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
    const Shape* operator[](int32_t id) const { return shapes_[static_cast<size_t>(id)]; }
    int32_t size() const { return static_cast<int32_t>(shapes_.size()); }

   private:
    std::vector<const Shape*> shapes_;
    std::deque<Shape> owned_;
    absl::flat_hash_map<uint64_t, std::vector<int32_t>> by_fingerprint_;
  };

  int32_t Intern(const PodShape& shape, bool copy);
  bool follows() const { return source_ == Source::kChanges; }
  void AttachPodsOf(Slot slot, NodeIndex node);
  void Join(NodeIndex node);
  void Leave(NodeIndex node);
  void Attach(NodeIndex node, const SnapshotPod& pod);
  void Detach(NodeIndex node, size_t position);
  void Count(NodeIndex node, const SnapshotPod& pod, int32_t sign);
  void CountRules(Node* node, const PodShape& shape, int32_t sign);
  void Widen(const ResourceAmounts& amounts);
  void Undo(const Move& move);
  void Log(Move move);
  absl::string_view Keep(absl::string_view text);
  void RecordFreed(NodeIndex node);
  const std::vector<DomainCounts*>& CountsOf(int32_t shape);
  void Fill(std::span<DomainCounts* const> added);

  const ClusterState& state_;
  const Source source_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<int32_t, NodeIndex> by_slot_;
  Numbers<NodeShape> node_shapes_;
  Numbers<PodShape> pod_shapes_;
  std::vector<int32_t> pods_of_;  // by shape: how many are on nodes
  AntiAffinityTerms anti_affinity_terms_;
  std::vector<int32_t> shape_of_state_;  // by shape of the cluster state; -1: not asked for yet
  size_t width_ = 0;                     // resources
  std::vector<NodeAmount> amounts_;      // node * width_ + resource
  absl::flat_hash_map<std::string, int32_t> claim_users_;
  std::deque<std::string> texts_;
  std::vector<Move> log_;  // empty outside of forks
  std::vector<Mark> forks_;
  absl::flat_hash_map<std::string, std::unique_ptr<TopologyKey>> topologies_;
  absl::flat_hash_map<std::string, std::unique_ptr<DomainCounts>> counts_;
  std::vector<DomainCounts*> all_counts_;              // in the order of their making
  std::vector<std::vector<DomainCounts*>> counts_of_;  // by shape: those that count it
  std::vector<size_t> counts_seen_;                    // by shape: how many of all_counts_ were asked
  Journal<NodeIndex> freed_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SNAPSHOT_H_
