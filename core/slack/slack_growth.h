// Chooses the nodes to ask for, for placeholders that fit nowhere now.
#ifndef LOADLINE_CORE_SLACK_SLACK_GROWTH_H_
#define LOADLINE_CORE_SLACK_SLACK_GROWTH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/base/cpu_memory.h"
#include "core/base/work_budget.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// The position of a group in SlackQuestion::groups.
enum class SlackGroupIndex : int32_t {};

// Nodes that may come: of one node group, or where groups are not known of one class.
struct GrowableNodes {
  std::string class_name;
  EmptyNode empty;                       // what a new one offers
  std::optional<int64_t> may_add = 0;    // nodes, >= 0; nullopt: any number
  std::optional<double> usd_per_hour;    // of one; nullopt: not known
  std::optional<SlackGroupIndex> group;  // nullopt: groups are not known
  std::string name;                      // of the group
  std::optional<int64_t> priority;       // of the group; see NodeGroup
};

// Equal placeholders that need a new node, with their number.
struct AskedPlaceholders {
  PlaceholderGroup group;
  int64_t count = 0;
  friend bool operator==(const AskedPlaceholders&, const AskedPlaceholders&) = default;
};

// A way to get room: so many nodes of a group for these placeholders.
struct SlackOption {
  std::optional<SlackGroupIndex> group;
  int64_t nodes = 0;
  std::vector<AskedPlaceholders> placeholders;
};
// Returns positions in the options, best first, each once.
using SlackRanking = std::function<std::vector<size_t>(const std::vector<SlackOption>&)>;

// The nodes that one group of the question is to grow by.
struct NewNodesOfGroup {
  SlackGroupIndex group{};
  int64_t nodes = 0;
  friend bool operator==(const NewNodesOfGroup&, const NewNodesOfGroup&) = default;
};

// The demand of one class.
struct SlackDemand {
  std::string class_name;
  int64_t nodes = 0;
  std::vector<AskedPlaceholders> placeholders;
  // In the order of the groups of the question; empty where groups are not known.
  std::vector<NewNodesOfGroup> groups = {};
  friend bool operator==(const SlackDemand&, const SlackDemand&) = default;
};

// Nodes to be added, filled one after the other.
class GrowthSketch {
 public:
  // By position: whether nodes may be used.
  using Allowed = std::vector<bool>;

  // Takes nodes in any order. Without a ranking the options of the highest priority are the best, and of
  // these the one that costs least. Options without a price come last, those of the smallest nodes first. All
  // options together add at most `max_new_nodes`; nullopt: any number.
  explicit GrowthSketch(std::vector<GrowableNodes> growable, SlackRanking ranking = nullptr,
                        std::optional<int64_t> max_new_nodes = std::nullopt);

  // By size: less cpu, then less memory, then by name.
  const std::vector<GrowableNodes>& growable() const { return growable_; }
  bool MayAdd(size_t position) const { return MayStillAdd(position, 1) > 0; }
  // Returns how many more nodes of this position may be added, of so many.
  int64_t MayStillAdd(size_t position, int64_t wanted) const {
    const int64_t more = growable_[position].may_add.value_or(added_[position] + wanted) - added_[position];
    return std::min({wanted, more, left_in_all_.value_or(wanted)});
  }
  // Returns how many nodes all options together may still add; nullopt: any number.
  const std::optional<int64_t>& left_in_all() const { return left_in_all_; }
  bool by_ranking() const { return ranking_ != nullptr; }

  // Adds a node that is upcoming anyway, with this room. To be called before AddNode(). What it takes is not
  // asked for.
  void AddComing(size_t position, const EmptyNode& room);
  // One more node. Returns its number.
  size_t AddNode(size_t position);
  size_t node_end() const { return nodes_.size(); }
  size_t PositionOf(size_t node) const { return nodes_[node].position; }
  // Returns what a node has left.
  EmptyNode RoomOf(size_t node) const { return {nodes_[node].free, nodes_[node].slots}; }
  bool FitsOn(size_t node, const CpuMemory& size) const;
  // The number of nodes that are upcoming anyway: they have the first numbers.
  size_t coming() const { return coming_; }
  // Takes room of a node for something that is no placeholder.
  void TakeRoom(size_t node, const CpuMemory& room, int64_t slots);
  // Puts some onto a node where they fit.
  void Take(size_t node, const PlaceholderGroup& group, int64_t count);

  // Positions that are allowed, may add nodes, and whose empty nodes have room for each of these, best first.
  std::vector<size_t> Ranked(const Allowed& allowed, std::span<const AskedPlaceholders> placeholders) const;

  // Asks for nodes for what nodes that come anyway do not take: of the best option that takes all sizes and
  // may grow, and where none takes all, for each by itself. Returns how many find no node. One unit of work
  // for each option that is looked at, and for each node. Cost: O(sizes * (options + nodes)).
  int64_t Ask(const Allowed& allowed, std::vector<AskedPlaceholders> placeholders, WorkBudget* budget);

  // By class name; sizes in the order of the groups.
  std::vector<SlackDemand> demands() const;

 private:
  struct Node {
    size_t position;
    CpuMemory free;
    int64_t slots;
  };

  // Fills nodes that come anyway or are asked for already; what is left stays in `asked`.
  void FillPlanned(const Allowed& allowed, AskedPlaceholders* asked, WorkBudget* budget);
  // Fills new nodes of one position; what is left stays in `asked`.
  void FillNew(size_t position, AskedPlaceholders* asked, WorkBudget* budget);

  std::vector<GrowableNodes> growable_;
  SlackRanking ranking_;
  std::optional<int64_t> left_in_all_;
  std::vector<int64_t> added_;  // by position
  std::vector<Node> nodes_;
  size_t coming_ = 0;                                              // the first of them
  std::vector<absl::btree_map<PlaceholderGroup, int64_t>> taken_;  // by position
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_GROWTH_H_
