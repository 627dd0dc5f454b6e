// Placeholders on nodes, from one loop to the next.
#ifndef LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_
#define LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/cpu_memory.h"

namespace loadline {

// The kinds of placeholders.
enum class PlaceholderKind {
  kStandard,  // one of equal pieces of a class
  kReserved,  // room for one of the biggest pods of a class
  kMirrored,  // a copy of a pod
};

// One placeholder. Ids go on counting and are never used again. Its size never changes.
struct Placeholder {
  int64_t id = 0;
  PlaceholderKind kind = PlaceholderKind::kStandard;
  // The name of its class; of a mirrored one the key of the pod that it is a copy of.
  std::string owner;
  CpuMemory size;
  // Node that it is on, and where it was last; empty: none.
  std::string node;
  std::string last_node;
  friend bool operator==(const Placeholder&, const Placeholder&) = default;
};

// About the memory of one, with its places in the orders by owner and by node, and in a state.
inline constexpr int64_t kPlaceholderBytes = 1'024;

// A node that placeholders may be on.
struct SlackNode {
  std::string name;
  CpuMemory allocatable;
  // The sum of what real pods request, and the number of pods that still fit the node's limit of pods.
  CpuMemory real;
  int64_t free_slots = INT32_MAX;
  // The class of the node.
  int32_t node_class = 0;
  friend bool operator==(const SlackNode&, const SlackNode&) = default;
};

// Chooses the placeholders that real pods of their node push out, in this order: standard before others,
// then the highest id; until the sum is at most the capacity in both dimensions, or none is left.
struct PushedOut {
  std::vector<size_t> pushed;  // positions
  bool over = false;           // the real pods alone exceed the node
};
PushedOut PushOut(const SlackNode& node, std::span<const Placeholder* const> placeholders);

// Placeholders with one owner, kind and size.
struct PlaceholderGroup {
  PlaceholderKind kind = PlaceholderKind::kStandard;
  std::string owner;
  CpuMemory size;
  friend auto operator<=>(const PlaceholderGroup& a, const PlaceholderGroup& b) {
    return std::tie(a.owner, a.kind, a.size.cpu, a.size.memory) <=>
           std::tie(b.owner, b.kind, b.size.cpu, b.size.memory);
  }
  friend bool operator==(const PlaceholderGroup&, const PlaceholderGroup&) = default;
};

// Steps A, C, E and F of README.md. Nodes are numbered by the caller, densely.
class PlaceholderSet {
 public:
  static constexpr size_t kNoNode = static_cast<size_t>(-1);

  struct Members {
    absl::btree_set<int64_t> ids;
    absl::btree_set<int64_t> unplaced;
    int64_t placed() const { return static_cast<int64_t>(ids.size() - unplaced.size()); }
  };
  using Groups = absl::btree_map<PlaceholderGroup, Members>;

  // `lost`: what lost() starts at.
  explicit PlaceholderSet(int64_t lost = 0) : lost_(lost) {}

  // --- nodes. Cost: O(log nodes + placeholders there).

  // Puts a node under a number. Placeholders stay where name and class are as before, else they lose it.
  void SetNode(size_t node, SlackNode content);
  void RemoveNode(size_t node);
  bool Has(size_t node) const { return node < nodes_.size() && nodes_[node].present; }
  const SlackNode& node(size_t node) const { return At(node).content; }
  // Returns what a node offers less what its real pods and placeholders have.
  CpuMemory Free(size_t node) const;
  bool FitsOn(size_t node, const CpuMemory& size) const;
  // The number of a node, or kNoNode.
  size_t Find(absl::string_view name) const;

  // Lets placeholders give way where they no longer fit, on nodes that were set since the last time.
  void PushOutAll();
  // Nodes where real pods alone exceed what there is.
  const absl::btree_set<std::string>& overcommitted() const { return overcommitted_; }

  // --- placeholders

  // Takes one over from a former set, onto its node if that is there. `last_node` is where it is to go when
  // it loses the node.
  void Restore(const Placeholder& placeholder);
  // Notes the node on which the placeholder is tried first when it loses its own.
  void Expect(int64_t id, const std::string& node);
  bool Has(int64_t id) const { return items_.contains(id); }
  // A new one, without a node.
  void Add(const PlaceholderGroup& group, int64_t id);
  void Remove(int64_t id);
  // Takes `count` of a group away, whole ones: those without a node first, then from the node with the least
  // real pods; ties by name, then the highest id first. Cost: O(group log group).
  void Trim(const PlaceholderGroup& group, int64_t count);
  void Attach(int64_t id, size_t node);
  void Detach(int64_t id);

  // Puts the placeholders of a group without a node back onto their last nodes, if these are of `classes`.
  // Returns their number.
  int64_t PlaceBack(const PlaceholderGroup& group, std::span<const int32_t> classes);
  // Puts those of a group that have no node onto nodes of `classes`, which are tried in this order: each onto
  // the node where it was last, else where it leaves least cpu, then memory; ties by name. Returns how many.
  int64_t Place(const PlaceholderGroup& group, std::span<const int32_t> classes);
  // Puts placeholders of `wanted` that have no node onto nodes of `classes` where fewest of `excess` have to
  // be removed for each; ties by name, the highest id first. Removes at most `most`. Cost: O(excess * log
  // excess).
  struct Replaced {
    int64_t placed = 0;
    int64_t removed = 0;
  };
  Replaced PlaceInstead(const PlaceholderGroup& wanted, const PlaceholderGroup& excess, int64_t most,
                        std::span<const int32_t> classes);
  // The node of `node_class` where one of this size leaves least; kNoNode: it fits none.
  size_t BestFit(int32_t node_class, const CpuMemory& size) const;

  const Placeholder& placeholder(int64_t id) const { return ItemOf(id).placeholder; }
  // kNoNode: none.
  size_t NodeOf(int64_t id) const { return ItemOf(id).node; }
  const Groups& groups() const { return groups_; }
  // nullptr: there is none.
  const Members* Find(const PlaceholderGroup& group) const;
  // All, by id.
  std::vector<Placeholder> Export() const;
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  // How often a placeholder that stayed lost its node.
  int64_t lost() const { return lost_; }

  // Checks what is kept of nodes and groups against the placeholders. For tests. Cost: O(nodes +
  // placeholders).
  void CheckConsistent() const;

 private:
  struct Node {
    bool present = false;
    SlackNode content;
    CpuMemory taken;  // by placeholders
    int64_t slots = 0;
    std::vector<int64_t> placeholders;  // ids
  };
  struct Item {
    Placeholder placeholder;
    size_t node = kNoNode;
  };
  // Nodes by what is left: the tightest that is enough is first.
  using Room = std::tuple<int64_t, int64_t, std::string, size_t>;

  Node& At(size_t node) { return nodes_[CheckedIndex("node", node, nodes_.size())]; }
  const Node& At(size_t node) const { return nodes_[CheckedIndex("node", node, nodes_.size())]; }
  // One that is in the set.
  Item& ItemOf(int64_t id) { return const_cast<Item&>(std::as_const(*this).ItemOf(id)); }
  const Item& ItemOf(int64_t id) const;
  void CheckNode(size_t node) const;
  void CheckGroups() const;
  Room RoomOf(size_t node) const;
  void IndexRoom(size_t node, bool present);
  // Returns how many of `there`, of one size, have to be removed for another one to fit; nullopt: all do not
  // do.
  std::optional<int64_t> RemovedFor(size_t node, const CpuMemory& size, const CpuMemory& removed,
                                    int64_t there) const;
  PlaceholderGroup GroupOf(const Placeholder& placeholder) const {
    return {placeholder.kind, placeholder.owner, placeholder.size};
  }

  std::vector<Node> nodes_;
  absl::btree_map<std::string, size_t> by_name_;
  std::vector<absl::btree_set<Room>> by_room_;  // by class; nodes with a slot left
  std::vector<size_t> touched_;                 // set since PushOutAll(), with repeats
  absl::btree_set<std::string> overcommitted_;
  absl::btree_map<int64_t, Item> items_;
  Groups groups_;
  int64_t lost_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_
