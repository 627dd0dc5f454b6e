#include "plugin/report/facts.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "plugin/report/words.h"

namespace loadline {

bool Decides(const v1::PlanLoopRequest& question, v1::PlanLoopRequest::Decision decision) {
  const auto& named = question.decisions();
  if (named.empty()) {
    return decision == v1::PlanLoopRequest::SCALE_UP || decision == v1::PlanLoopRequest::SLACK ||
           decision == v1::PlanLoopRequest::SCALE_DOWN;
  }
  return std::find(named.begin(), named.end(), decision) != named.end();
}

int64_t WaitingPodsOf(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer) {
  int64_t pods = 0;
  for (const v1::PendingPods& entry : question.pods()) pods += entry.count();
  for (const v1::NotWaitingPods& entry : answer.not_waiting()) pods -= question.pods(entry.pod()).count();
  return pods;
}

int64_t UnplacedPodsOf(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer) {
  int64_t pods = 0;
  for (const v1::PodRun& run : answer.scale_up().unplaced()) {
    if (run.pod() >= question.pods_size()) continue;  // it is on a node that is being deleted
    pods += std::min<int64_t>(run.count(), question.pods(run.pod()).count());
  }
  return pods;
}

absl::string_view ReasonName(v1::GroupBackOff::Reason reason) {
  switch (reason) {
    case v1::GroupBackOff::TIMEOUT:
      return "timeout";
    case v1::GroupBackOff::API_ERROR:
      return "apiError";
    case v1::GroupBackOff::OUT_OF_RESOURCES:
      return "outOfResources";
    case v1::GroupBackOff::CREATION_FAILED:
      return "creationFailed";
    default:
      return "";
  }
}

v1::NodeCounts CountsOf(const v1::GroupSight& group) {
  v1::NodeCounts counts;
  v1::RegisteredNodeCounts* const registered = counts.mutable_registered();
  registered->set_total(Clamped32(group.ready() + group.unready() + group.starting()));
  registered->set_ready(Clamped32(group.ready()));
  registered->set_unready(Clamped32(group.unready()));
  registered->set_not_started(Clamped32(group.starting()));
  counts.set_unregistered(Clamped32(group.coming()));
  counts.set_long_unregistered(Clamped32(group.failed() + group.late() + group.lost() + group.not_begun()));
  return counts;
}

v1::NodeCounts CountsOfAll(const v1::LoopFleetAnswer& fleet) {
  int64_t not_started = 0, unregistered = 0, long_unregistered = 0;  // a cloud may tell of any number
  for (const v1::GroupSight& group : fleet.groups()) {
    const v1::NodeCounts counts = CountsOf(group);
    not_started += counts.registered().not_started();
    unregistered += counts.unregistered();
    long_unregistered += counts.long_unregistered();
  }
  v1::NodeCounts all;
  v1::RegisteredNodeCounts* const registered = all.mutable_registered();
  registered->set_not_started(Clamped32(not_started));
  all.set_unregistered(Clamped32(unregistered));
  all.set_long_unregistered(Clamped32(long_unregistered));
  registered->set_total(Clamped32(fleet.nodes()));
  registered->set_ready(Clamped32(fleet.ready_nodes()));
  registered->set_unready(Clamped32(fleet.unready_nodes()));
  return all;
}

GroupOfSlot GroupsOfCandidates(const v1::PlanLoopRequest& question, const v1::PlanLoopResponse& answer) {
  absl::flat_hash_set<int32_t> candidates;
  for (const v1::NodeRemoval& removal : answer.scale_down().remove()) candidates.insert(removal.slot());
  GroupOfSlot groups;
  for (int i = 0; i < question.groups_size(); ++i) {
    for (const v1::CloudMachine& machine : question.groups(i).cloud().machines()) {
      if (machine.has_slot() && candidates.contains(machine.slot())) groups.emplace(machine.slot(), i);
    }
  }
  return groups;
}

}  // namespace loadline
