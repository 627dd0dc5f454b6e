// The rest of a problem while it is being packed.
#ifndef LOADLINE_CORE_PACK_PACKING_REST_H_
#define LOADLINE_CORE_PACK_PACKING_REST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/pack/packing.h"

namespace loadline {

// The rest of a problem: by item, by type, and of all types together. nullopt: no limit.
struct PackingRest {
  std::vector<int64_t> items;
  std::vector<std::optional<int64_t>> limits;  // nodes, by type
  std::optional<int64_t> limit;                // nodes of all types

  // No item is left.
  bool Empty() const;
  // Returns how many of these nodes of a type are within the limits.
  int64_t NodesWithinLimits(int32_t type, int64_t nodes) const;
  // Takes nodes of a type off the limits, none of which falls below 0.
  void TakeFromLimits(int32_t type, int64_t nodes);
};

// The types with what is left of their limits, and without PackingType::most. Cost: O(types * resources).
std::vector<PackingType> TypesLeft(const PackingProblem& problem, const PackingRest& rest);

// The problem of the items that are left. `items`: which of `problem` they are. Cost: O(items * types).
PackingProblem ProblemOfRest(const PackingProblem& problem, const PackingRest& rest,
                             std::vector<int32_t>* items);

// The type with room for an item at the least cost of one; nullopt: none takes it. Cost: O(types *
// resources).
std::optional<size_t> CheapestTypeFor(const PackingProblem& problem, const PackingRest& rest, size_t item);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_PACKING_REST_H_
