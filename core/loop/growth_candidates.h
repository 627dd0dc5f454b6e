// The groups that a plan of growth chooses from.
#ifndef LOADLINE_CORE_LOOP_GROWTH_CANDIDATES_H_
#define LOADLINE_CORE_LOOP_GROWTH_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/loop/planned_zones.h"

namespace loadline {

// Groups of the question, and one for each zone of a group with PlannedZones::turns. Zones share what their
// group grows by, as similar groups do. The arguments of the constructor outlive the object.
class GrowthCandidates {
 public:
  GrowthCandidates(const LoopProblem& problem, const CountsOfGroups& counts, const PlannedZones& zones);

  // Begins a plan: forgets all but the caps of zones.
  void Clear();
  // Adds a group that may grow by so many nodes. A ranking chooses one group, so that it gets the zone that
  // most pods want.
  void Add(GroupIndex group, int64_t most);

  const GrowableGroups& groups() const { return groups_; }
  const StrongVector<GrowableIndex, GroupIndex>& positions() const { return positions_; }
  GrowableGroups TakeGroups() && { return std::move(groups_); }

  // Returns whether the cloud adds the nodes of a plan to the zones in which they are planned, and no group
  // grows by more than it may. Else zones are capped: none gets more than that in the next plan.
  bool CapZones(std::span<const PlannedNodes> nodes);

 private:
  const LoopProblem& problem_;
  const CountsOfGroups& counts_;
  const PlannedZones& zones_;
  StrongVector<GroupIndex, std::optional<int32_t>> balance_sets_;
  StrongVector<GroupIndex, int64_t> most_;
  StrongVector<GroupIndex, NodesOfZones> caps_;  // empty: none
  GrowableGroups groups_;
  StrongVector<GrowableIndex, GroupIndex> positions_;
  StrongVector<GrowableIndex, std::optional<size_t>> zone_of_;  // nullopt: in any zone
};

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_GROWTH_CANDIDATES_H_
