#include "core/expand/room.h"

#include <algorithm>

namespace loadline {
namespace {

size_t KeepEachOnce(std::vector<ResourceId>* resources) {
  std::sort(resources->begin(), resources->end());
  resources->erase(std::unique(resources->begin(), resources->end()), resources->end());
  return resources->size();
}

}  // namespace

std::unique_ptr<RoomColumns> RoomColumns::Make(const std::vector<const IncomingPod*>& pods,
                                               const FitOptions& options, WorkBudget* budget) {
  std::unique_ptr<RoomColumns> columns(new RoomColumns());
  std::vector<ResourceId>& resources = columns->resources_;
  size_t known = 0;
  std::vector<std::vector<CheckedRequest>> checked;
  checked.reserve(pods.size());
  for (const IncomingPod* pod : pods) {
    for (const CheckedRequest& entry : checked.emplace_back(CheckedRequests(*pod, options))) {
      resources.push_back(entry.id);
    }
    // Names repeat: what is kept of them must not grow with the pods.
    if (resources.size() >= 2 * known + 64) known = KeepEachOnce(&resources);
  }
  KeepEachOnce(&resources);
  const size_t width = columns->width();
  if (!budget->Reserve(static_cast<int64_t>(pods.size() * width * sizeof(int64_t)))) return nullptr;
  columns->requests_.resize(pods.size() * width, 0);
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    int64_t* const row = columns->requests_.data() + pod * width;
    for (const CheckedRequest& entry : checked[pod]) {
      row[std::lower_bound(resources.begin(), resources.end(), entry.id) - resources.begin()] = entry.value;
    }
    row[resources.size()] = 1;
  }
  if (!pods.empty()) columns->pods_ = pods.front()->names.Find("pods");
  return columns;
}

std::unique_ptr<RoomColumns> RoomColumns::With(size_t further,
                                               const std::function<int64_t(size_t, size_t)>& taken) const {
  std::unique_ptr<RoomColumns> columns(new RoomColumns());
  columns->resources_ = resources_;
  columns->pods_ = pods_;
  columns->further_ = further_ + further;
  const size_t pods = requests_.size() / width();
  columns->requests_.reserve(pods * columns->width());
  for (size_t pod = 0; pod < pods; ++pod) {
    const auto row = request(pod);
    columns->requests_.insert(columns->requests_.end(), row.begin(), row.end());
    for (size_t column = 0; column < further; ++column) columns->requests_.push_back(taken(pod, column));
  }
  return columns;
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
