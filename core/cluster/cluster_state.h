// The model of one cluster: nodes with their pods, and per-node sums that are kept, never recomputed.
#ifndef LOADLINE_CORE_CLUSTER_CLUSTER_STATE_H_
#define LOADLINE_CORE_CLUSTER_CLUSTER_STATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/resource_names.h"
#include "core/cluster/journal.h"
#include "core/cluster/objects.h"
#include "core/cluster/shape_table.h"
#include "core/cluster/shapes.h"

namespace loadline {

// A node's dense number in one cluster, chosen by the client. Ordered, no arithmetic.
enum class Slot : int32_t {};
constexpr size_t IndexOf(Slot slot) { return static_cast<size_t>(slot); }

// One pod to be put on a node: views into memory that outlives the call.
struct PodContent {
  int32_t shape;  // index in ClusterState::pod_shapes()
  int32_t tag;    // the client's own number for it, kept with the pod
  absl::string_view name;
  absl::string_view uid;
  // Hash of the pod but for name and UID, with all its labels: those that the shape left out count as well,
  // so that the fingerprint of a node does not depend on which selectors came before.
  uint64_t fingerprint = 0;
};

// The pods of one node: 16 bytes each beside the text of names and UIDs, which lies in one piece and stays
// where it is when the object is moved.
class NodePods {
 public:
  struct Pod {
    int32_t shape;
    int32_t tag;
    uint32_t name_end;  // the name starts where the UID before it ends
    uint32_t uid_end;
  };

  NodePods() = default;
  explicit NodePods(std::span<const PodContent> pods);

  std::span<const Pod> pods() const { return pods_; }
  absl::string_view name(size_t i) const;
  absl::string_view uid(size_t i) const;
  void set_shape(size_t i, int32_t shape) { pods_[i].shape = shape; }

 private:
  std::vector<Pod> pods_;
  // Not a string, whose text moves with it where it is short: snapshots refer to it.
  std::vector<char> text_;
};

// Columns of one resource, indexed by slot; empty slots hold 0. Sums saturate at 2^62.
struct ResourceColumns {
  std::vector<int64_t> allocatable;
  std::vector<int64_t> requested;  // effective requests of the pods there
  std::vector<int64_t> limits;     // effective limits of those that have one, as they are
};

// A node that is shown with another shape than it has, or the shape that it has.
struct ShownNode {
  Slot slot{-1};
  NodeShape shape;
};

// Nodes in slots. Slots need not be dense; memory grows with the largest one.
// Not thread-safe; const members may run together.
class ClusterState {
 public:
  // Puts a node into a slot, in place of what was there; `hostname` is the value of that label, if it has
  // one, and `traits` what planners read. Precondition: no other slot has a node of this name, and all shapes
  // were acquired in pod_shapes(). Cost: O(pods of the node, now and before).
  void SetNode(Slot slot, absl::string_view name, NodeShape shape, std::span<const PodContent> pods,
               std::optional<std::string> hostname = std::nullopt, NodeTraits traits = {});
  // Checks all sums, counts and look-ups against nodes and pods. For tests. Cost: O(nodes * resources +
  // pods).
  void CheckConsistent() const;
  // Empties a slot, which may be empty.
  void RemoveNode(Slot slot);

  // Gives each pod the shape `shapes[tag]` in place of the one that it has and that counts the same. The
  // former shapes are still acquired. Cost: O(pods).
  void ReplacePodShapes(std::span<const int32_t> shapes);

  const ClusterObjects& objects() const { return objects_; }
  ClusterObjects& objects() { return objects_; }

  // One past the largest slot ever used.
  int32_t slot_end() const { return static_cast<int32_t>(nodes_.size()); }
  bool Occupied(Slot slot) const { return IndexOf(slot) < nodes_.size() && nodes_[IndexOf(slot)].occupied; }
  // The slot of the node of this name.
  std::optional<Slot> Find(absl::string_view name) const;

  // These hold for an occupied slot.
  absl::string_view name(Slot slot) const { return At(slot).name; }
  const NodeShape& node_shape(Slot slot) const { return node_shapes_[At(slot).shape]; }
  // Returns a number that nodes have in common whose shapes are equal.
  int32_t shape_number(Slot slot) const { return At(slot).shape; }
  const std::optional<std::string>& hostname(Slot slot) const { return At(slot).hostname; }
  const NodeTraits& traits(Slot slot) const { return At(slot).traits; }
  const NodePods& pods(Slot slot) const { return At(slot).pods; }
  // Pods that are not finished.
  int32_t pod_count(Slot slot) const { return At(slot).unfinished_pods; }
  // Hash of all that a decision reads of the node and its pods, whatever the order of the pods.
  uint64_t fingerprint(Slot slot) const { return At(slot).fingerprint; }

  // These hold for the whole cluster.
  int64_t node_count() const { return static_cast<int64_t>(slots_by_name_.size()); }
  int64_t total_pods() const { return total_pods_; }
  // Pods on nodes of each shape, by its index; what lies beyond has none.
  std::span<const int64_t> pods_of_shape() const { return pods_of_shape_; }
  // Nodes with NodeTraits::unreadable.
  int64_t unreadable_nodes() const { return unreadable_nodes_; }
  // Hash of all nodes, whatever their slots, and all objects.
  uint64_t fingerprint() const { return fingerprint_ + objects_.fingerprint(); }

  // Columns of a resource, or nullptr when no node or pod has it.
  const ResourceColumns* columns(ResourceId resource) const;
  int32_t resource_end() const { return static_cast<int32_t>(columns_.size()); }

  const ShapeTable<PodShape>& pod_shapes() const { return pod_shapes_; }
  ShapeTable<PodShape>& pod_shapes() { return pod_shapes_; }

  // The names that ids in this state refer to. Setting them may only add names.
  const ResourceNames& resource_names() const { return resource_names_; }
  void set_resource_names(ResourceNames names) {
    LOADLINE_CHECK(names.size() >= resource_names_.size())
        << resource_names_.size() - names.size() << " are lost";
    resource_names_ = std::move(names);
  }

  // The journal of changed slots, for those who keep sums of their own: the slots that changed since
  // position `since`, with repeats, or nullopt when the journal does not hold that position: then all did.
  std::optional<std::span<const Slot>> changes(int64_t since) const { return changes_.Since(since); }
  // The position after the last change.
  int64_t change_count() const { return changes_.end(); }
  // Forgets the journal and starts it at `first`. Of a state that takes the place of another one: larger than
  // any position there, so that whoever read that journal finds all slots changed.
  void RestartJournal(int64_t first) { changes_ = Journal<Slot>(first); }

 private:
  struct Node {
    bool occupied = false;
    int32_t shape = -1;  // in node_shapes_
    int32_t unfinished_pods = 0;
    uint64_t fingerprint = 0;
    std::string name;
    std::optional<std::string> hostname;
    NodeTraits traits;
    NodePods pods;
  };

  ABSL_ATTRIBUTE_ALWAYS_INLINE const Node& At(Slot slot) const {
    return nodes_[CheckedIndex("slot", IndexOf(slot), nodes_.size())];
  }
  void CheckColumns() const;
  void CheckPodsOfShapes() const;
  void CountPods(const NodePods& pods, int64_t sign);
  void Clear(Node* node, Slot slot);
  void AddToColumns(Slot slot, const Node& node);
  int64_t& Cell(std::vector<int64_t> ResourceColumns::*column, ResourceId resource, Slot slot);
  uint64_t NodeFingerprint(const Node& node, std::span<const PodContent> pods) const;
  void Record(Slot slot);

  ResourceNames resource_names_;
  ShapeTable<PodShape> pod_shapes_;
  ShapeTable<NodeShape> node_shapes_;
  ClusterObjects objects_;
  std::vector<Node> nodes_;  // by slot
  absl::flat_hash_map<std::string, Slot> slots_by_name_;
  std::vector<ResourceColumns> columns_;  // by resource id
  int64_t total_pods_ = 0;
  std::vector<int64_t> pods_of_shape_;  // by shape
  int64_t unreadable_nodes_ = 0;
  uint64_t fingerprint_ = 0;  // sum of those of the nodes
  Journal<Slot> changes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_CLUSTER_STATE_H_
