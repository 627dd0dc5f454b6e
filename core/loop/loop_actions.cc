#include "core/loop/loop_actions.h"

#include <algorithm>
#include <utility>

#include "core/observe/fleet_state.h"
#include "core/observe/soft_taints.h"
#include "core/replace/replacement.h"

namespace loadline {
namespace {

class ActionMaker {
 public:
  ActionMaker(const LoopObservation& seen, int64_t now_ms, LoopMemory* memory)
      : seen_(seen), now_ms_(now_ms), memory_(*memory) {}

  void Delete(GroupIndex group, const std::vector<int32_t>& machines, bool late) {
    if (machines.empty()) return;
    LoopAction& action = Add(LoopAction::Kind::kDeleteMachines, group);
    action.machines = machines;
    action.late = late;
    OpenAction& open = Open(action, OpenAction::Kind::kDeleteMachines);
    for (const int32_t machine : machines) {
      const uint64_t key = FleetKey(seen_.groups[group].machines[static_cast<size_t>(machine)].id);
      open.machines.push_back(key);
      memory_.fleet.machines[key].given_up_ms = now_ms_;
    }
  }

  void TakeBack(GroupIndex group, int64_t nodes, int64_t target) {
    if (nodes == 0) return;
    LoopAction& action = Add(LoopAction::Kind::kTakeBack, group);
    action.nodes = nodes;
    action.target = target;
  }

  LoopAction& OfNode(LoopAction::Kind kind, Slot slot) {
    LoopAction& action = Add(kind, std::nullopt);
    action.slot = slot;
    return action;
  }

  // Empty nodes are the first wave: they disturb nobody.
  void Remove(const DrainPlan& plan) {
    for (const bool empty : {true, false}) {
      for (const DrainRemoval& removal : plan.remove) {
        if (!removal.start || removal.empty != empty) continue;
        OfNode(LoopAction::Kind::kRemove, removal.slot).wave = empty ? 1 : 2;
      }
    }
  }

  void SoftTaint(const SoftTaintChange& change) {
    const bool gets = change.since_s.has_value();
    OfNode(gets ? LoopAction::Kind::kSoftTaint : LoopAction::Kind::kTakeSoftTaint, change.slot).since_s =
        change.since_s.value_or(0);
  }

  void Grow(const LoopGrowth& growth, int64_t target) {
    LoopAction& action = Add(LoopAction::Kind::kGrow, growth.group);
    action.nodes = growth.nodes();
    action.target = target;
    OpenAction& open = Open(action, OpenAction::Kind::kGrow);
    open.from = target;
    open.nodes = growth.nodes();
    open.for_pods = growth.for_pods > 0;
    open.provision_ms = seen_.groups[growth.group].provision_ms;
  }

  void Swap(GroupIndex group, int64_t nodes, int64_t target) {
    LoopAction& action = Add(LoopAction::Kind::kSwap, group);
    action.nodes = nodes;
    action.target = target;
    OpenAction& open = Open(action, OpenAction::Kind::kSwap);
    open.from = target;
    open.nodes = nodes;
  }

  const std::vector<LoopAction>& actions() const { return actions_; }
  std::vector<LoopAction> Take() { return std::move(actions_); }

 private:
  LoopAction& Add(LoopAction::Kind kind, std::optional<GroupIndex> group) {
    LoopAction& action = actions_.emplace_back();
    action.id = memory_.next_action++;
    action.kind = kind;
    action.group = group;
    return action;
  }

  OpenAction& Open(const LoopAction& action, OpenAction::Kind kind) {
    OpenAction& open = memory_.open.emplace_back();
    open.id = action.id;
    open.kind = kind;
    open.group = seen_.groups[*action.group].name;
    open.at_ms = now_ms_;
    return open;
  }

  const LoopObservation& seen_;
  const int64_t now_ms_;
  LoopMemory& memory_;
  std::vector<LoopAction> actions_;
};

// Nodes that go, and those whose removal somebody has begun.
absl::flat_hash_set<Slot> NodesOnTheirWayOut(const LoopObservation& seen, const LoopFindings& findings,
                                             const std::vector<LoopAction>& actions) {
  absl::flat_hash_set<Slot> slots(findings.marked.going.begin(), findings.marked.going.end());
  for (const NodeMark& mark : seen.marks) slots.insert(mark.slot);
  for (const RemovalUnderWay& removal : seen.under_way) {
    if (removal.slot.has_value()) slots.insert(*removal.slot);
  }
  for (const LoopAction& action : actions) {
    if (action.kind == LoopAction::Kind::kRemove) slots.insert(action.slot);
  }
  return slots;
}

}  // namespace

std::vector<LoopAction> ActionsOf(const LoopObservation& seen, const LoopFindings& findings,
                                  const LoopPlan& plan, const ClusterState& cluster,
                                  const ObserveOptions& options, int64_t now_ms, LoopMemory* memory) {
  ActionMaker actions(seen, now_ms, memory);
  if (!options.acts) return {};
  for (const GroupIndex index : seen.groups.indices()) {
    const GroupFindings& group = findings.groups[index];
    actions.Delete(index, group.delete_failed, /*late=*/false);
    actions.Delete(index, group.delete_late, /*late=*/true);
    actions.TakeBack(index, group.take_back, group.target + group.take_back);
  }
  const DrainPlan* const drains = plan.scale_down_problem != nullptr ? &plan.scale_down : nullptr;
  for (const Slot slot : GiveBack(cluster, findings.marked.abandoned, drains, now_ms, memory)) {
    actions.OfNode(LoopAction::Kind::kGiveBack, slot);
  }
  for (const LoopGrowth& growth : plan.growth) {
    if (options.grows) actions.Grow(growth, findings.groups[growth.group].target);
  }
  if (!findings.nothing_leaves) actions.Remove(plan.scale_down);
  for (const TakeBack& back : plan.take_back) {
    int64_t target = findings.groups[back.group].target;
    for (const LoopGrowth& growth : plan.growth) target += growth.group == back.group ? growth.nodes() : 0;
    actions.Swap(back.group, back.nodes, target);
  }
  if (drains == nullptr) return actions.Take();
  const absl::flat_hash_set<Slot> left_alone = NodesOnTheirWayOut(seen, findings, actions.actions());
  for (const SoftTaintChange& change :
       SoftTaintChanges(cluster, *drains, left_alone, options.max_soft_taints, memory)) {
    actions.SoftTaint(change);
  }
  return actions.Take();
}

void BeginBatch(const LoopMemory& memory, int64_t now_ms, GrowthBatch* batch) {
  if (memory.grown_for_pods_ms.has_value()) batch->since_growth_ms = now_ms - *memory.grown_for_pods_ms;
  if (memory.batch_since_ms.has_value() && now_ms - *memory.batch_since_ms >= batch->max_ms) {
    batch->idle_ms = 0;
  }
}

void NoteBatch(const LoopPlan& plan, int64_t now_ms, LoopMemory* memory) {
  if (!plan.batch_wait_ms.has_value()) {
    memory->batch_since_ms.reset();
  } else if (!memory->batch_since_ms.has_value()) {
    memory->batch_since_ms = now_ms;
  }
}

bool TimersRun(const LoopObservation& seen, const LoopFindings& findings, std::span<const LoopSizing> sized,
               const LoopPlan& plan) {
  if (!seen.under_way.empty() || findings.fleet.backs_off || findings.fleet.cools_down) return true;
  if (!plan.scale_down.remove.empty() || plan.no_scale_down == NoScaleDown::kGrowing) return true;
  for (const GroupFindings& group : findings.groups) {
    if (group.upcoming > 0) return true;
  }
  for (const FleetGroupView& group : findings.fleet.groups) {
    if (group.cools_down_until_ms.has_value()) return true;
  }
  for (size_t i = 0; i < sized.size(); ++i) {
    const std::vector<GroupNode>& nodes = sized[i].gathered.facts.nodes;
    const bool tainted = std::any_of(nodes.begin(), nodes.end(), [](const GroupNode& node) {
      return node.node_class == NodeClass::kTainted;
    });
    if (tainted || !plan.sizes[i].taint.empty()) return true;
  }
  return false;
}

}  // namespace loadline
