// Which nodes are asked for, for placeholders that fit nowhere now.
#ifndef LOADLINE_CORE_SLACK_SLACK_GROWTH_H_
#define LOADLINE_CORE_SLACK_SLACK_GROWTH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/slack/placeholder_set.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

inline constexpr int64_t kNoNodeLimit = std::numeric_limits<int64_t>::max();

// A class of which nodes may come.
struct GrowableClass {
  std::string name;
  std::string family;
  EmptyNode empty;      // what a new one offers
  int64_t may_add = 0;  // nodes
};

struct AskedPlaceholders {
  PlaceholderGroup group;
  int64_t count = 0;
  friend bool operator==(const AskedPlaceholders&, const AskedPlaceholders&) = default;
};

// What is asked of one class.
struct SlackDemand {
  std::string class_name;
  int64_t nodes = 0;
  std::vector<AskedPlaceholders> placeholders;
  // Positions of the groups of the question whose nodes are of the class.
  std::vector<int32_t> groups = {};
  friend bool operator==(const SlackDemand&, const SlackDemand&) = default;
};

// Nodes to be added, filled one after the other.
class GrowthSketch {
 public:
  // Takes classes in any order.
  explicit GrowthSketch(std::vector<GrowableClass> classes);

  // By size: less cpu, then less memory, then by name.
  const std::vector<GrowableClass>& classes() const { return classes_; }
  bool MayAdd(size_t position) const { return added_[position] < classes_[position].may_add; }

  // A node of a class that comes anyway, with this room. To be called before AddNode(). What it takes is not
  // asked for.
  void AddComing(size_t position, const EmptyNode& room);
  // One more node of a class. Returns its number.
  size_t AddNode(size_t position);
  size_t node_end() const { return nodes_.size(); }
  size_t ClassOf(size_t node) const { return nodes_[node].position; }
  bool FitsOn(size_t node, const CpuMemory& size) const;
  // Puts some onto a node where they fit.
  void Take(size_t node, const PlaceholderGroup& group, int64_t count);

  // Asks for nodes of one family, for what nodes that come anyway do not take: of the smallest class that
  // takes all sizes and may grow, and where none takes all, for each by itself. Returns how many find no
  // node. Cost: O(sizes * (classes + nodes)).
  int64_t Ask(const std::string& family, std::vector<AskedPlaceholders> placeholders);

  // By class name; sizes in the order of the groups.
  std::vector<SlackDemand> demands() const;

 private:
  struct Node {
    size_t position;
    CpuMemory free;
    int64_t slots;
  };

  std::optional<size_t> SmallestFor(const std::string& family,
                                    std::span<const AskedPlaceholders> placeholders) const;
  // Fills nodes of a family that come anyway; what is left stays in `asked`.
  void FillComing(const std::string& family, AskedPlaceholders* asked);
  // Fills nodes of one class; what is left stays in `asked`.
  void Fill(size_t position, AskedPlaceholders* asked);

  std::vector<GrowableClass> classes_;
  std::vector<int64_t> added_;  // by position
  std::vector<Node> nodes_;
  size_t coming_ = 0;                                              // the first of them
  std::vector<absl::btree_map<PlaceholderGroup, int64_t>> taken_;  // by position
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_GROWTH_H_
