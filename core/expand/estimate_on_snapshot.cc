#include "core/expand/estimate_on_snapshot.h"

#include <algorithm>

#include "core/cluster/labels.h"

namespace loadline {
namespace {

void AddTo(std::vector<PodCount>* counts, size_t pods) {
  const int32_t position = static_cast<int32_t>(pods);
  if (counts->empty() || counts->back().pods != position) counts->push_back({position, 0});
  ++counts->back().count;
}

}  // namespace

NodeEstimate SnapshotEstimate::Exact(const std::vector<size_t>& order) {
  estimate_.placed.resize(estimator_.pods().size());
  for (const size_t pods : order) FillExact(pods);
  return Result();
}

NodeEstimate SnapshotEstimate::ClusterAutoscaler(const std::vector<size_t>& order) {
  estimate_.placed.resize(estimator_.pods().size());
  for (const size_t pods : order) FillLikeClusterAutoscaler(pods);
  return Result();
}

void SnapshotEstimate::FillExact(size_t pods) {
  int64_t left = estimator_.pods()[pods].count;
  const bool only_needs_room = estimator_.OnlyNeedsRoom(pods);
  while (left > 0 && memory_.Pod()) {
    std::optional<NodeIndex> node = estimator_.fresh().FirstFit(estimator_.fresh_pod(pods), budget_);
    if (!node.has_value() && !only_needs_room) {
      node = estimator_.existing().FirstFit(estimator_.existing_pod(pods), budget_);
    }
    if (!node.has_value()) node = AddNodeFor(pods);
    if (!node.has_value()) return;
    if (only_needs_room) {
      left -= FillNode(pods, *node, left);
    } else {
      Place(pods, *node);
      --left;
    }
  }
}

int64_t SnapshotEstimate::FillNode(size_t pods, NodeIndex node, int64_t wanted) {
  PodFit& fit = estimator_.fit(pods);
  int64_t placed = 0;
  do {
    Place(pods, node);
    ++placed;
  } while (placed < wanted && memory_.Pod() && fit.FitsByItself(node));
  return placed;
}

std::optional<NodeIndex> SnapshotEstimate::AddNodeFor(size_t pods) {
  if (limiter_.Grantable(1) == 0) {
    refused_ = true;
    return std::nullopt;
  }
  if (!memory_.Node(snapshot_)) return std::nullopt;
  snapshot_.Fork();
  const NodeIndex node = estimator_.AddCopy(group_, &memory_);
  PodFit& fit = estimator_.fit(pods);
  if (!budget_->Spend(fit.UnitsPerNode()) || !fit.Fits(node)) {
    snapshot_.Revert();
    return std::nullopt;
  }
  snapshot_.Commit();
  limiter_.Grant(1);
  contents_.push_back({1, {}});
  return node;
}

void SnapshotEstimate::FillLikeClusterAutoscaler(size_t pods) {
  int64_t left = estimator_.pods()[pods].count;
  while (left > 0 && memory_.Pod()) {
    const std::optional<NodeIndex> node = estimator_.fresh().FirstFit(estimator_.fresh_pod(pods), budget_);
    if (!node.has_value()) break;
    Place(pods, *node);
    --left;
  }
  while (left > 0 && !refused_ && memory_.Pod(estimator_.fit(pods).UnitsPerNode())) {
    std::optional<NodeIndex> node;
    if (!contents_.empty()) {
      const NodeIndex last{snapshot_.node_end() - 1};
      if (estimator_.fit(pods).Fits(last)) {
        node = last;
      } else if (OnlySpreadingOverHostsRefuses(pods, last)) {
        node = AnyOther(pods, last);
      }
      // Another empty node would not do better.
      if (!node.has_value() && contents_.back().pods.empty()) return;
    }
    if (!node.has_value()) {
      refused_ = limiter_.Grant(1) == 0;
      if (refused_ || !memory_.Node(snapshot_)) return;
      node = estimator_.AddCopy(group_, &memory_);
      contents_.push_back({1, {}});
      if (!estimator_.fit(pods).Fits(*node)) return;
    }
    Place(pods, *node);
    --left;
  }
}

bool SnapshotEstimate::OnlySpreadingOverHostsRefuses(size_t pods, NodeIndex node) {
  const PodShape& shape = estimator_.pods()[pods].pod.shape;
  if (shape.rules == nullptr) return false;
  const bool over_hosts =
      std::any_of(shape.rules->spread.begin(), shape.rules->spread.end(),
                  [](const SpreadConstraint& spread) { return spread.topology_key == kHostnameLabel; });
  return over_hosts && estimator_.fit(pods).Judge(node).filter == FilterName::kPodTopologySpread;
}

std::optional<NodeIndex> SnapshotEstimate::AnyOther(size_t pods, NodeIndex last) {
  const std::optional<NodeIndex> node =
      estimator_.existing().FirstFit(estimator_.existing_pod(pods), budget_);
  return node == last ? std::nullopt : node;
}

void SnapshotEstimate::Place(size_t pods, NodeIndex node) {
  estimator_.Place(pods, node);
  ++estimate_.placed[pods];
  ++estimate_.pods;
  const int32_t index = static_cast<int32_t>(node);
  if (index >= first_new_) {
    AddTo(&contents_[static_cast<size_t>(index - first_new_)].pods, pods);
    return;
  }
  std::vector<ExistingUse>& existing = estimate_.existing;
  const int32_t position = static_cast<int32_t>(pods);
  if (existing.empty() || existing.back().node != node || existing.back().pods.pods != position) {
    existing.push_back({node, {position, 0}});
  }
  ++existing.back().pods.count;
}

NodeEstimate SnapshotEstimate::Result() {
  for (NodeRun& content : contents_) {
    if (content.pods.empty()) continue;
    ++estimate_.nodes;
    std::vector<NodeRun>& runs = estimate_.runs;
    if (!runs.empty() && runs.back().pods == content.pods) {
      ++runs.back().nodes;
    } else {
      runs.push_back(std::move(content));
    }
  }
  estimate_.end = budget_->ended() ? EstimateEnd::kBudget
                  : refused_       ? EstimateEnd::kNodeLimit
                                   : EstimateEnd::kComplete;
  return std::move(estimate_);
}

}  // namespace loadline
