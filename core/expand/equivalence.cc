#include "core/expand/equivalence.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace loadline {
namespace {

// The most sets of equal pods of one controller. Published: Cluster Autoscaler's
// maxEquivalenceGroupsByController.
constexpr size_t kMaxGroupsPerController = 10;

}  // namespace

std::vector<std::vector<size_t>> EquivalenceGroups(std::span<const PodIdentity> pods) {
  std::vector<std::vector<size_t>> groups;
  absl::flat_hash_map<std::string, std::vector<size_t>> groups_of;  // by controller: positions in `groups`
  for (size_t i = 0; i < pods.size(); ++i) {
    const PodIdentity& pod = pods[i];
    if (pod.controller_uid.empty() || pod.of_daemon_set) {
      groups.push_back({i});
      continue;
    }
    std::vector<size_t>& candidates = groups_of[pod.controller_uid];
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](size_t group) {
      return pods[groups[group].front()].content == pod.content;
    });
    if (same != candidates.end()) {
      groups[*same].push_back(i);
      continue;
    }
    if (candidates.size() < kMaxGroupsPerController) candidates.push_back(groups.size());
    groups.push_back({i});
  }
  return groups;
}

}  // namespace loadline
