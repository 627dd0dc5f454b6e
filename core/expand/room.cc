#include "core/expand/room.h"

#include <algorithm>

namespace loadline {

RoomColumns::RoomColumns(const std::vector<const IncomingPod*>& pods, const FitOptions& options) {
  std::vector<std::vector<CheckedRequest>> checked;
  checked.reserve(pods.size());
  for (const IncomingPod* pod : pods) {
    for (const CheckedRequest& entry : checked.emplace_back(CheckedRequests(*pod, options))) {
      resources_.push_back(entry.id);
    }
  }
  std::sort(resources_.begin(), resources_.end());
  resources_.erase(std::unique(resources_.begin(), resources_.end()), resources_.end());
  requests_.resize(pods.size() * width(), 0);
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    int64_t* const row = requests_.data() + pod * width();
    for (const CheckedRequest& entry : checked[pod]) {
      row[std::lower_bound(resources_.begin(), resources_.end(), entry.id) - resources_.begin()] =
          entry.value;
    }
    row[resources_.size()] = 1;
  }
  if (!pods.empty()) pods_ = pods.front()->names.Find("pods");
}

std::vector<int64_t> RoomColumns::FreeOn(const Snapshot& snapshot, NodeIndex node) const {
  std::vector<int64_t> free;
  free.reserve(width());
  for (const ResourceId resource : resources_) free.push_back(snapshot.amount(node, resource).free);
  const int64_t slots = pods_.has_value() ? snapshot.amount(node, *pods_).allocatable : 0;
  free.push_back(slots - static_cast<int64_t>(snapshot.pods(node).size()));
  return free;
}

}  // namespace loadline
