#include "core/sim/sim_blockers.h"

#include <optional>
#include <string>

#include "core/cluster/objects.h"
#include "core/drain/lasting_blockers.h"

namespace loadline {
namespace {

// The budgets of a workload, as they are while all of its pods are healthy.
void AddBudgets(const SimWorkload& of, ClusterObjects* objects) {
  if (of.max_unavailable < 0) return;
  DisruptionBudget budget;
  budget.selector = {false, {{kSimAppLabel, SelectorOperator::kIn, {of.name}}}};
  budget.expected_pods = 1;
  budget.desired_healthy = of.max_unavailable == 0 ? 1 : 0;
  objects->Set({{ObjectKind::kDisruptionBudget, kSimNamespace, of.name}, budget, 0});
  if (!of.two_budgets) return;
  objects->Set({{ObjectKind::kDisruptionBudget, kSimNamespace, of.name + "-too"}, budget, 0});
}

}  // namespace

StrongVector<SimWorkloadIndex, bool> BlockingWorkloads(const Scenario& scenario, const ShapesOf& shapes) {
  StrongVector<SimWorkloadIndex, bool> blocking(scenario.workloads.size(), false);
  if (scenario.settings.blockers_together == 0) return blocking;
  ClusterObjects budgets;
  for (const SimWorkload& workload : scenario.workloads) AddBudgets(workload, &budgets);
  const LastingBlockers rule(budgets);
  for (const SimWorkloadIndex workload : scenario.workloads.indices()) {
    blocking[workload] = rule.Blocks(shapes.OnNode(workload, /*ready=*/true, std::nullopt));
  }
  return blocking;
}

}  // namespace loadline
