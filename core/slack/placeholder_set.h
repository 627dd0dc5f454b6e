// Placeholders of one class on the nodes of that class, from one loop to the next.
#ifndef LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_
#define LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/cpu_memory.h"

namespace loadline {

// One placeholder. Ids go on counting and are never used again.
struct Placeholder {
  int64_t id = 0;
  CpuMemory size;
  // Stands for a pod that is mirrored or to be reserved for; it gives way last.
  bool mirrored = false;
  // Node that it is on, and where it was last; empty: none.
  std::string node;
  std::string last_node;
  friend bool operator==(const Placeholder&, const Placeholder&) = default;
};

// A node of a class.
struct SlackNode {
  std::string name;
  CpuMemory allocatable;
  // Of real pods, and how many more pods may come.
  CpuMemory real;
  int64_t free_slots = INT32_MAX;
};

// Which of the placeholders of one node give way to its real pods, in this order: standard before mirrored
// ones, then the highest id; until the sum is at most the capacity in both dimensions, or none is left.
struct PushedOut {
  std::vector<size_t> pushed;  // positions
  bool over = false;           // the real pods alone exceed the node
};
PushedOut PushOut(const SlackNode& node, std::span<const Placeholder> placeholders,
                  std::span<const size_t> on_node);

// Puts a real pod that waits onto the node where it leaves least cpu, then memory; ties by name. Returns the
// position, or nullopt: it fits nowhere. Step B: real pods come before placeholders. Cost: O(nodes).
std::optional<size_t> PlaceReal(const CpuMemory& pod, std::vector<SlackNode>* nodes);

// The loop of a class: steps A, C, E and F of reading U.
class PlaceholderSet {
 public:
  // `nodes` in name order. Placeholders on other nodes lose them; then those give way that no longer fit.
  // Cost: O(nodes + placeholders * log).
  PlaceholderSet(std::vector<SlackNode> nodes, std::vector<Placeholder> placeholders);

  // Takes placeholders away, whole ones, while `sum` may lose them: those without a node first, then from the
  // node with the least real pods; the highest id first, ties by name. Keeps mirrored ones.
  //   TrimTo: until `count` are left.
  //   TrimDown: until the sum of the standard ones exceeds `most` in no dimension.
  void TrimTo(int64_t count);
  void TrimDown(const CpuMemory& most);
  void Remove(size_t position);

  // New ones, without a node.
  void Add(int64_t count, const CpuMemory& size, bool mirrored, int64_t* next_id);

  // Puts those without a node onto nodes: mirrored ones first, then the largest; each onto the node where it
  // was last, else where it leaves least cpu, then memory; ties by name.
  void Place();

  const std::vector<Placeholder>& placeholders() const { return placeholders_; }
  // Nodes where real pods alone exceed what there is.
  const std::vector<std::string>& overcommitted() const { return overcommitted_; }
  // Of standard placeholders.
  CpuMemory StandardSum() const;

 private:
  static constexpr size_t kNoNode = static_cast<size_t>(-1);

  size_t Find(const std::string& node) const;
  CpuMemory Free(size_t node) const;
  bool FitsOn(size_t node, const CpuMemory& size) const;
  void Attach(size_t position, size_t node);
  void Detach(size_t position);
  std::vector<size_t> TrimOrder() const;
  void Erase(std::vector<size_t> positions);

  std::vector<SlackNode> nodes_;
  std::vector<CpuMemory> taken_;           // by node: of placeholders
  std::vector<int64_t> slots_;             // by node: left for pods
  std::vector<Placeholder> placeholders_;  // by id
  std::vector<size_t> node_of_;            // by position
  std::vector<std::string> overcommitted_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_PLACEHOLDER_SET_H_
