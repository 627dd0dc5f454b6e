// The zones of nodes that are not there yet, of groups that have several.
#ifndef LOADLINE_CORE_LOOP_PLANNED_ZONES_H_
#define LOADLINE_CORE_LOOP_PLANNED_ZONES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/loop/loop_growth.h"

namespace loadline {

// A group with more zones counts as one of a single zone. Chosen: no region has so many.
inline constexpr size_t kMostPlannedZones = 16;

// Numbers of nodes by zone, in the order of NodeModel::zones.
using NodesOfZones = std::vector<int64_t>;

// The zones to which a cloud adds the nodes of a group, one after the other: each time a zone with the
// fewest, or that of the template. Where several may be the next one, nobody knows which it is, and plans
// choose: the one with the most nodes that are still wanted there, then with the fewest nodes, then the first
// by name.
class ZoneTurns {
 public:
  explicit ZoneTurns(const NodeModel& model);

  const NodesOfZones& nodes() const { return nodes_; }
  // Adds the next node, and takes it from those that are wanted there.
  size_t Take(NodesOfZones* wanted);
  // Returns how many of the wanted nodes are added before one that is not wanted where it is; `most` in all.
  NodesOfZones Grant(NodesOfZones wanted, int64_t most) const;

 private:
  size_t Next(const NodesOfZones& wanted) const;

  NodesOfZones nodes_;
  std::optional<size_t> stated_;
};

// Nodes of a group that are on their way, in the zone where they are expected.
struct NodesOnTheirWay {
  GroupIndex group{};
  NodeGroup node;  // with names of their own: see TemplateOf()
  int64_t nodes = 0;
};

// The zones of nodes that are not there yet.
struct PlannedZones {
  std::vector<NodesOnTheirWay> coming;  // by group
  // The turns after those on their way; nullopt: the zones of the group make no difference to the pods, or it
  // has only one.
  StrongVector<GroupIndex, std::optional<ZoneTurns>> turns;
  // The same groups: pods that some of the zones suit and others do not, where nodes are on their way or a
  // ranking chooses.
  StrongVector<GroupIndex, NodesOfZones> wanted;
};

// Works out the zones for the pods that wait. Those on their way are expected where the pods want them. The
// snapshot is as before when the call returns. Cost: that of the estimator for these pods, and a verdict for
// each pod and zone; at most a tenth of what the budget has left, and zones are chosen without the pods then.
PlannedZones PlanZones(const LoopProblem& problem, const CountsOfGroups& counts,
                       const std::vector<PendingPods>& waiting, Snapshot* snapshot, WorkBudget* budget);

// Returns the group as if all of its new nodes were in this zone.
NodeGroup InZone(const LoopProblem& problem, GroupIndex group, size_t zone);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLANNED_ZONES_H_
