// The part of a question to slack that says how nodes are bought for copies of pods.
#ifndef LOADLINE_CORE_SLACK_SLACK_COPY_GROWTH_H_
#define LOADLINE_CORE_SLACK_SLACK_COPY_GROWTH_H_

#include <functional>
#include <span>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/plan.h"
#include "core/slack/slack_view.h"

namespace loadline {

// Plans growth for copies as for pods that wait: `groups` grow, each new node with those of `daemons` that
// fit it, by `max_new_nodes` in all.
using CopyGrowth = std::function<ScaleUpPlan(Snapshot* snapshot, std::vector<PendingPods> pods,
                                             std::vector<IncomingPod> daemons, const GrowableGroups& groups,
                                             NodeLimit max_new_nodes, WorkBudget* budget)>;

// New nodes, by position in the sketch.
struct NewNodes {
  const std::vector<NodeShape>& shapes;
  const SlackGroupList* groups;  // nullptr: not known
  std::span<const IncomingPod> daemons;
  const CopyGrowth& growth;  // nullptr: PlanScaleUp()
};

// A pod that takes so much room, and as much of the load line.
PodShape ShapeOfRoom(const CpuMemory& size);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_COPY_GROWTH_H_
