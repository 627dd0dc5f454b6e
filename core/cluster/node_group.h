// A node group: nodes of one model that scale as one.
#ifndef LOADLINE_CORE_CLUSTER_NODE_GROUP_H_
#define LOADLINE_CORE_CLUSTER_NODE_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/strong_vector.h"
#include "core/cluster/node_model.h"
#include "core/cluster/node_price.h"

namespace loadline {

// The position of a group in a list of groups.
enum class GroupIndex : int32_t {};

// The existing nodes of a group that cost something else than a new one.
struct NodesOfOtherPrices {
  std::vector<PricedKind> kinds;
  absl::flat_hash_map<Slot, size_t> kind_of;  // positions in `kinds`
};

// All families of decisions read this one type, each the part that it needs, and keep what is their own
// beside it. Numbers of nodes are in [0, 2^31).
struct NodeGroup {
  std::string name;  // unique; names of new nodes are made from it
  // The nodes that it keeps, and those that it may have.
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  // The nodes that the cloud is to hold: those that are missing from the cluster are on their way. A target
  // below the number of nodes that are there counts, and so does one above it: a group shrinks only while
  // both allow it.
  int64_t target = 0;
  // Machines that are no nodes yet, or nodes that have not started and are none of the cluster: without them
  // it is not removed as a whole.
  int64_t upcoming = 0;
  // Nodes on their way that the provider has not begun to make, and would take back.
  int64_t not_begun = 0;
  // The reason for which it may not grow now, for example "back-off"; empty if it may.
  std::string blocked_reason;

  // nullopt: not known, and the group does not grow.
  std::optional<NodeModel> model;
  // All that the price of a new node depends on; and the price with its sources.
  PricedNode priced;
  NodePrice price;
  // See PriceOtherKinds(); nullptr: each node costs as much as a new one.
  std::shared_ptr<const NodesOfOtherPrices> other_prices;
  // The price of a new node, US dollars per hour: finite, >= 0; nullopt: not known, and the group grows by a
  // ranking only.
  std::optional<double> usd_per_hour;
  bool has_gpu = false;
  // Groups of a higher one grow first, as far as they take pods; with a ranking, where one of its strategies
  // reads it. nullopt: last.
  std::optional<int64_t> priority;
  // Groups with the same number share what they grow by, whatever their nodes cost; nullopt: with nobody.
  std::optional<int32_t> balance_set;

  // It scales to none or to all only.
  bool atomic = false;
  // It is sized by how full it is: it grows by nothing else, and somebody else chooses which of its nodes are
  // removed, whatever is requested on them.
  bool sized = false;
  // Options of its own for the removal of nodes. What is not stated is as for all groups.
  std::optional<double> utilization_threshold;
  std::optional<double> gpu_utilization_threshold;
  std::optional<bool> ignore_daemonsets_utilization;
  std::optional<int64_t> unneeded_time_s;
  std::optional<int64_t> unready_time_s;
  // No node of it starts to be removed before, in seconds since 1970; nullopt: its timers alone decide.
  std::optional<int64_t> stays_until_s;
  // The price by which nodes are chosen for removal, in any currency; nullopt: usd_per_hour.
  std::optional<double> node_price;
};

using NodeGroups = StrongVector<GroupIndex, NodeGroup>;
using NodeGroupSpan = StrongSpan<GroupIndex, const NodeGroup>;

// Returns the price of a new node, 0 where it is not known.
inline double UsdOf(const NodeGroup& group) { return group.usd_per_hour.value_or(0); }

// Returns the kind of an existing node of the group; nullptr: it costs as much as a new one.
inline const PricedKind* OtherKindOf(const NodeGroup& group, Slot slot) {
  if (group.other_prices == nullptr) return nullptr;
  const auto found = group.other_prices->kind_of.find(slot);
  return found == group.other_prices->kind_of.end() ? nullptr : &group.other_prices->kinds[found->second];
}

// Returns the price of an existing node of the group in US dollars per hour; nullopt: not known.
inline std::optional<double> UsdOf(const NodeGroup& group, Slot slot) {
  const PricedKind* const other = OtherKindOf(group, slot);
  return other != nullptr ? other->price.price : group.usd_per_hour;
}

// Returns the price that the removal of a node of the group saves per hour; nullopt: not known.
inline std::optional<double> SavedPrice(const NodeGroup& group, Slot slot) {
  const PricedKind* const other = OtherKindOf(group, slot);
  if (other != nullptr) return other->price.price;
  return group.node_price.has_value() ? group.node_price : group.usd_per_hour;
}

// The groups of nodes, by slot. Cost: 4 bytes for each slot up to the last one that is in a group.
class GroupsOfNodes {
 public:
  // nullopt: the node is in no group.
  std::optional<GroupIndex> operator[](Slot slot) const {
    const bool known = IndexOf(slot) < groups_.size() && groups_[IndexOf(slot)] != kNone;
    return known ? std::optional(groups_[IndexOf(slot)]) : std::nullopt;
  }
  void Set(Slot slot, GroupIndex group) {
    if (IndexOf(slot) >= groups_.size()) groups_.resize(IndexOf(slot) + 1, kNone);
    groups_[IndexOf(slot)] = group;
  }

  // The nodes that are in a group, in the order of slots: for (const auto [slot, group] : groups_of_nodes).
  class Iterator {
   public:
    Iterator(const std::vector<GroupIndex>* groups, size_t at) : groups_(*groups), at_(at) { SkipNone(); }
    std::pair<Slot, GroupIndex> operator*() const { return {IndexAt<Slot>(at_), groups_[at_]}; }
    Iterator& operator++() {
      ++at_;
      SkipNone();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    void SkipNone() {
      while (at_ < groups_.size() && groups_[at_] == kNone) ++at_;
    }
    const std::vector<GroupIndex>& groups_;
    size_t at_;
  };
  Iterator begin() const { return {&groups_, 0}; }
  Iterator end() const { return {&groups_, groups_.size()}; }

  friend bool operator==(const GroupsOfNodes&, const GroupsOfNodes&) = default;

 private:
  static constexpr GroupIndex kNone{-1};
  std::vector<GroupIndex> groups_;  // the last one is not kNone
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_GROUP_H_
