#include "core/observe/loop_findings.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/texts.h"
#include "core/observe/action_outcomes.h"
#include "core/observe/look.h"
#include "core/observe/see_fleet.h"
#include "core/observe/soft_taints.h"

namespace loadline {
namespace {

std::vector<int32_t> MachinesAt(const std::vector<int32_t>& machines, const std::vector<int32_t>& positions) {
  std::vector<int32_t> at;
  for (const int32_t position : positions) at.push_back(machines[static_cast<size_t>(position)]);
  return at;
}

std::vector<Slot> NodesAt(const std::vector<Slot>& nodes, const std::vector<int32_t>& positions) {
  std::vector<Slot> at;
  for (const int32_t position : positions) at.push_back(nodes[static_cast<size_t>(position)]);
  return at;
}

void CountStarted(const ClusterState& cluster, Slot slot, const StartupTaints& names, int64_t* ready,
                  int64_t* unready) {
  ++*(HasStarted(cluster, slot, names) ? ready : unready);
}

GroupFindings FindingsOf(const ClusterState& cluster, const CloudGroup& group, const FleetGroupView& view,
                         const std::vector<int32_t>& machines, const std::vector<Slot>& nodes,
                         const ObserveOptions& options) {
  GroupFindings findings;
  std::vector<Slot> started = NodesAt(nodes, view.started);
  for (const Slot slot : started)
    CountStarted(cluster, slot, options.startup_taints, &findings.ready, &findings.unready);
  findings.examples = started;
  for (const Slot slot : NodesAt(nodes, view.not_started)) findings.examples.push_back(slot);
  findings.lacking = NodesAt(nodes, view.lacking);
  absl::c_sort(findings.examples);
  absl::c_sort(findings.lacking);
  if (group.problem.empty()) findings.nodes = std::move(started);
  findings.upcoming = view.starting + view.coming;
  findings.target = group.target;
  if (options.acts && options.grows) {
    findings.delete_failed = MachinesAt(machines, view.delete_failed);
    findings.delete_late = MachinesAt(machines, view.delete_late);
    findings.take_back = view.take_back;
    findings.target -= static_cast<int64_t>(findings.delete_failed.size() + findings.delete_late.size()) +
                       findings.take_back;
  }
  // A cloud may have more machines than its target for some time.
  findings.room = std::max<int64_t>(0, group.max_nodes - std::max(findings.target, view.live));
  return findings;
}

// The limit of one loop, and what the maximum of the cluster leaves: nodes that have no machine yet count.
NodeLimit MostNewNodes(const ClusterState& cluster, const ObserveOptions& options, const FleetView& fleet) {
  NodeLimit most = ReadNodeLimit(options.max_new_nodes);
  if (options.max_nodes_total <= 0) return most;
  int64_t nodes = cluster.node_count();
  for (const FleetGroupView& group : fleet.groups) nodes += group.coming;
  return SmallerLimit(most, std::max<int64_t>(0, options.max_nodes_total - nodes));
}

std::string WhyHeld(const CloudGroup& group, const GroupFindings& findings, const FleetGroupView& view,
                    const LoopFindings& loop) {
  constexpr size_t kMostText = 512;
  if (!group.problem.empty()) {
    return CutText(absl::StrCat("it cannot be read: ", group.problem), kMostText);
  }
  if (view.back_off.has_value()) return CutText(view.held, kMostText);
  if (group.atomic && findings.room > loop.max_new_nodes.value_or(findings.room)) {
    return absl::StrCat("grows by all of its ", findings.room, findings.room == 1 ? " node" : " nodes",
                        " or none, and ", *loop.max_new_nodes, " may be added");
  }
  return loop.held;
}

// A group that has refused to take nodes back is not asked again at once.
int64_t Swappable(const CloudGroup& group, const FleetGroupView& view, const ObserveOptions& options,
                  const LoopMemory& memory) {
  if (!options.acts || !options.grows || !options.swaps) return 0;
  return memory.swap_refused_ms.contains(FleetKey(group.name)) ? 0 : view.unbegun;
}

std::string MachineText(const LoopObservation& seen, const MachinePlace& place) {
  constexpr size_t kMostText = 256;
  const CloudGroup& group = seen.groups[place.group];
  return absl::StrCat("machine ", CutText(group.machines[place.machine].id, kMostText), " of node group ",
                      CutText(group.name, kMostText));
}

// One warning for each group: a cloud may list any number of such machines.
void WarnOfSharedNodes(const ClusterState& cluster, const LoopObservation& seen,
                       const std::vector<SharedNode>& shared, std::vector<std::string>* warnings) {
  for (size_t i = 0; i < shared.size();) {
    const MachinePlace& first = shared[i].machine;
    size_t end = i;
    while (end < shared.size() && shared[end].machine.group == first.group) ++end;
    const Slot slot = *seen.groups[first.group].machines[first.machine].node;
    std::string text = absl::StrCat(MachineText(seen, first), " is ignored: its node ", cluster.name(slot),
                                    " is that of ", MachineText(seen, shared[i].owner));
    if (end - i > 1) absl::StrAppend(&text, "; so are ", end - i - 1, " other machines of this group");
    warnings->push_back(std::move(text));
    i = end;
  }
}

void Warn(const ClusterState& cluster, const LoopObservation& seen, const SeenFleet& fleet, int64_t now_ms,
          LoopFindings* findings) {
  WarnOfSharedNodes(cluster, seen, fleet.shared, &findings->warnings);
  for (const GroupIndex group : seen.groups.indices()) {
    const int64_t lost = findings->fleet.groups[IndexOf(group)].lost;
    if (lost == 0) continue;
    findings->warnings.push_back(absl::StrCat(
        "node group ", seen.groups[group].name, ": ", lost, lost == 1 ? " machine" : " machines",
        " had nodes that are gone: not deleted, since pods may run there; look why they do not register, or "
        "delete them"));
  }
  for (const NodeMark& mark : findings->marked.stuck) {
    findings->warnings.push_back(
        absl::StrCat("node ", cluster.name(mark.slot), ": the cloud said ",
                     DurationText((now_ms / 1000 - mark.deleting_s) * 1000),
                     " ago that it deletes it, and still lists it: delete the machine "
                     "there"));
  }
}

}  // namespace

LoopFindings ObserveLoop(const ClusterState& cluster, const LoopObservation& seen,
                         const LoopOutcomes& outcomes, const ObserveOptions& options, int64_t now_ms,
                         LoopMemory* memory) {
  ForgetFutureTimes(now_ms, memory);
  NoteAcknowledged(cluster, outcomes.acknowledged, memory);
  NoteSoftTaintsTried(outcomes.soft_taints_tried, now_ms, memory);
  LoopFindings findings;
  findings.marked =
      JudgeMarks(cluster, seen, MachinesOfMarks(seen), options.fleet.deletion_patience_ms, now_ms, *memory);
  const SeenFleet fleet = SeeFleet(cluster, seen, options, findings.marked.going, now_ms);
  const FleetOutcomes ended = TakeActionOutcomes(outcomes, seen, memory);
  findings.fleet = LookAtFleet(&fleet.reported, ended, options.fleet, now_ms, &memory->fleet);
  findings.max_new_nodes = MostNewNodes(cluster, options, findings.fleet);
  findings.nothing_leaves = findings.fleet.cools_down || !options.acts;
  findings.held = findings.fleet.unhealthy;
  if (findings.held.empty() && findings.max_new_nodes == 0) {
    findings.held = absl::StrCat("the cluster may have ", options.max_nodes_total,
                                 options.max_nodes_total == 1 ? " node" : " nodes", " in all");
  }
  for (const GroupIndex i : seen.groups.indices()) {
    const FleetGroupView& view = findings.fleet.groups[IndexOf(i)];
    GroupFindings& group = findings.groups.emplace_back(
        FindingsOf(cluster, seen.groups[i], view, fleet.machines[i], fleet.nodes[i], options));
    group.held = WhyHeld(seen.groups[i], group, view, findings);
    group.swappable = Swappable(seen.groups[i], view, options, *memory);
    std::copy_if(
        fleet.nodes[i].begin(), fleet.nodes[i].end(), std::back_inserter(group.going), [&](Slot slot) {
          return std::binary_search(findings.marked.going.begin(), findings.marked.going.end(), slot);
        });
    findings.nodes.ready += group.ready;
    findings.nodes.unready += group.unready;
    findings.nodes.starting += view.starting;
    for (const Slot slot : NodesAt(fleet.nodes[i], view.not_started)) findings.not_started.push_back(slot);
  }
  std::vector<bool> starts(fleet.others.size(), false);
  for (const int32_t position : findings.fleet.other_not_started) {
    starts[static_cast<size_t>(position)] = true;
    findings.not_started.push_back(fleet.others[static_cast<size_t>(position)]);
  }
  for (size_t i = 0; i < fleet.others.size(); ++i) {
    if (starts[i]) continue;
    CountStarted(cluster, fleet.others[i], options.startup_taints, &findings.nodes.ready,
                 &findings.nodes.unready);
  }
  findings.nodes.all = cluster.node_count();
  std::sort(findings.not_started.begin(), findings.not_started.end());
  Warn(cluster, seen, fleet, now_ms, &findings);
  return findings;
}

std::vector<ShownNode> NodesAsPlanned(const ClusterState& cluster, const LoopFindings& findings) {
  std::vector<ShownNode> shown;
  std::vector<Slot> abandoned;
  for (const NodeMark& mark : findings.marked.abandoned) {
    abandoned.push_back(mark.slot);
    shown.push_back({mark.slot, WithoutMark(cluster.node_shape(mark.slot), mark)});
  }
  for (const Slot slot : findings.not_started) {
    if (std::binary_search(abandoned.begin(), abandoned.end(), slot)) continue;
    shown.push_back({slot, WithoutPlace(cluster.node_shape(slot))});
  }
  return shown;
}

}  // namespace loadline
