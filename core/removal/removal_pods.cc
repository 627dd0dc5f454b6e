#include "core/removal/removal_pods.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/cluster/pod_role.h"
#include "core/cluster/pod_traits.h"

namespace loadline {
namespace {

bool EndedLongAgo(const RemovalPod& pod, int64_t now_s) {
  return IsLongTerminating(pod.deleted_s, pod.grace_s, now_s);
}

bool MayBeLost(const RemovalPod& pod) { return IsExpendable(pod.priority, pod.placeholder); }

bool LeavesWithNode(const RemovalPod& pod, int64_t now_s) {
  return pod.mirror || MayBeLost(pod) || pod.daemon_set || pod.finished || EndedLongAgo(pod, now_s);
}

// The position of its priority group.
size_t GroupOf(const RemovalRules& rules, const RemovalPod& pod) {
  size_t group = rules.priority_groups.size() - 1;
  while (group > 0 && rules.priority_groups[group].priority > pod.priority) --group;
  return group;
}

}  // namespace

std::optional<std::string> Unexpected(std::span<const RemovalPod> pods, int64_t now_s) {
  for (const RemovalPod& pod : pods) {
    if (LeavesWithNode(pod, now_s) || pod.placeholder) continue;
    switch (pod.planned) {
      case PlannedPod::kMoves:
        break;
      case PlannedPod::kStays:
        return absl::StrCat("pod ", pod.name, " is on the node, and the plan does not move it");
      case PlannedPod::kNew:
        return absl::StrCat("pod ", pod.name, " has arrived on the node since the plan was made");
      case PlannedPod::kChanged:
        return absl::StrCat("pod ", pod.name, " has changed since the plan was made");
    }
  }
  return std::nullopt;
}

std::optional<std::string> WouldBeLost(std::span<const RemovalPod> pods, int64_t now_s) {
  const auto lost = std::find_if(pods.begin(), pods.end(),
                                 [&](const RemovalPod& pod) { return !LeavesWithNode(pod, now_s); });
  if (lost == pods.end()) return std::nullopt;
  return absl::StrCat("pod ", lost->name, " is on the node that is to be deleted");
}

std::vector<PodRemoval> PodsToGo(const RemovalRules& rules, bool empty, std::span<const RemovalPod> pods,
                                 int64_t now_s) {
  const bool groups = !rules.priority_groups.empty();
  const bool daemon_sets = empty ? rules.evict_daemon_sets_of_empty : rules.evict_daemon_sets_of_occupied;
  std::vector<PodRemoval> go;
  for (const RemovalPod& pod : pods) {
    const bool ends = pod.deleted_s.has_value();
    if (pod.mirror || EndedLongAgo(pod, now_s)) continue;
    const bool goes = pod.daemon_set ? !ends && pod.evict_daemon_set.value_or(daemon_sets)
                                     : ends || pod.planned == PlannedPod::kMoves ||
                                           ((pod.placeholder || MayBeLost(pod)) && !pod.finished);
    if (!goes) continue;
    PodRemoval& removal = go.emplace_back();
    removal.uid = pod.uid;
    removal.name = pod.name;
    // Priority groups name all pods of DaemonSets, and nobody waits for an expendable pod.
    removal.best_effort = (pod.daemon_set && !groups) || MayBeLost(pod);
    removal.accepted = ends;  // another eviction could only shorten its grace period
    int64_t longest_s = rules.max_grace_s;
    if (groups) {
      const size_t group = GroupOf(rules, pod);
      removal.group = static_cast<int32_t>(group);
      longest_s = rules.priority_groups[group].grace_s;
    }
    removal.grace_s = std::min(pod.grace_s, longest_s);
  }
  std::stable_sort(go.begin(), go.end(),
                   [](const PodRemoval& a, const PodRemoval& b) { return a.group < b.group; });
  return go;
}

}  // namespace loadline
