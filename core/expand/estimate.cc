#include "core/expand/estimate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/expand/estimate_by_count.h"
#include "core/expand/estimate_on_snapshot.h"
#include "core/expand/room.h"
#include "core/expand/trial_memory.h"

namespace loadline {
namespace {

double Share(const ResourceAmounts& request, const ResourceAmounts& allocatable, ResourceId resource) {
  const int64_t offered = allocatable.Get(resource);
  if (offered <= 0) return 0;
  return static_cast<double>(request.Get(resource)) / static_cast<double>(offered);
}

}  // namespace

std::vector<size_t> EstimationOrder(const ResourceAmounts& allocatable,
                                    const std::vector<PendingPods>& pods) {
  std::vector<double> size;
  std::vector<size_t> order;
  for (const PendingPods& entry : pods) {
    const ResourceAmounts& requests = entry.pod.shape.requests;
    size.push_back(Share(requests, allocatable, kCpu) + Share(requests, allocatable, kMemory));
    order.push_back(order.size());
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (size[a] != size[b]) return size[a] > size[b];
    const PodShape& left = pods[a].pod.shape;
    const PodShape& right = pods[b].pod.shape;
    if (left.namespace_name != right.namespace_name) return left.namespace_name < right.namespace_name;
    if (left.fingerprint != right.fingerprint) return left.fingerprint < right.fingerprint;
    return a < b;
  });
  return order;
}

Estimator::Estimator(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                     std::vector<IncomingPod> daemons, EstimateMode mode)
    : snapshot_(*snapshot),
      options_(*fit),
      pods_(std::move(pods)),
      mode_(mode),
      existing_(snapshot, fit),
      fresh_(FitSearch::OfNewNodes(snapshot, fit)) {
  for (IncomingPod& pod : daemons) {
    daemons_.push_back(std::make_unique<PodFit>(snapshot, std::move(pod), fit));
  }
  for (const PendingPods& entry : pods_) {
    searches_.push_back({existing_.Add(entry.pod), fresh_.Add(entry.pod), false});
  }
  // Only now the snapshot knows the affinity terms of all of them.
  for (Searches& search : searches_) {
    existing_.fit(search.existing).Refresh();
    fresh_.fit(search.fresh).Refresh();
    search.only_needs_room = fresh_.fit(search.fresh).OnlyNeedsRoom();
    all_only_need_room_ = all_only_need_room_ && search.only_needs_room;
  }
  for (const auto& daemon : daemons_) daemon->Refresh();
}

Estimator::~Estimator() = default;

NodeIndex Estimator::AddCopy(const NodeTemplate& node) {
  NewNode copy;
  copy.name = absl::StrCat(node.name, "/new-", ++added_);
  copy.hostname = copy.name;
  copy.shape = node.shape;
  const NodeIndex index = snapshot_.AddNode(std::move(copy));
  for (const auto& daemon : daemons_) {
    if (daemon->Fits(index)) snapshot_.PlacePod(index, daemon->shape());
  }
  return index;
}

void Estimator::Place(size_t pods, NodeIndex node) { snapshot_.PlacePod(node, fit(pods).shape()); }

std::vector<ExistingUse> Estimator::UseExistingRoom(WorkBudget* budget) {
  // The whole cluster stands in for a template: what counts is which pods are large.
  ResourceAmounts sum;
  for (const PendingPods& entry : pods_) AddTo(sum, entry.pod.shape.requests);
  std::vector<ExistingUse> uses;
  for (const size_t pods : EstimationOrder(sum, pods_)) {
    PodFit& fit = existing_.fit(searches_[pods].existing);
    const bool only_needs_room = OnlyNeedsRoom(pods);
    int64_t& left = pods_[pods].count;
    while (left > 0 && budget->Spend() && budget->Reserve(TrialMemory::kPodBytes)) {
      const std::optional<NodeIndex> node = existing_.FirstFit(searches_[pods].existing);
      if (!node.has_value()) break;
      ExistingUse use{*node, {static_cast<int32_t>(pods), 0}};
      do {
        Place(pods, *node);
        ++use.pods.count;
        --left;
      } while (left > 0 && only_needs_room && fit.FitsByItself(*node) && budget->Spend() &&
               budget->Reserve(TrialMemory::kPodBytes));
      uses.push_back(use);
    }
  }
  return uses;
}

bool Estimator::MakeColumns(WorkBudget* budget) {
  if (columns_ != nullptr) return true;
  std::vector<const IncomingPod*> pods;
  for (const PendingPods& entry : pods_) pods.push_back(&entry.pod);
  columns_ = RoomColumns::Make(pods, options_, budget);
  return columns_ != nullptr;
}

CountedEstimateInput Estimator::CountedInput(const NodeTemplate& node, std::vector<size_t> order) {
  CountedEstimateInput input;
  const NodeIndex copy = AddCopy(node);
  input.columns = &columns();
  input.free = columns().FreeOn(snapshot_, copy);
  for (size_t i = 0; i < pods_.size(); ++i) {
    input.admitted.push_back(fit(i).Fits(copy));
    input.counts.push_back(pods_[i].count);
  }
  input.order = std::move(order);
  input.mode = mode_;
  return input;
}

NodeEstimate Estimator::Estimate(const NodeTemplate& node, NodeLimiter limiter, WorkBudget* budget) {
  const std::vector<size_t> order = EstimationOrder(node.shape.allocatable, pods_);
  snapshot_.Fork();
  NodeEstimate estimate;
  if (all_only_need_room_ && !MakeColumns(budget)) {
    estimate.placed.resize(pods_.size());
    estimate.end = EstimateEnd::kBudget;
  } else if (all_only_need_room_) {
    estimate = EstimateByCount(CountedInput(node, order), limiter, budget);
  } else {
    SnapshotEstimate by_placement(this, &snapshot_, node, limiter, budget);
    estimate =
        mode_ == EstimateMode::kExact ? by_placement.Exact(order) : by_placement.ClusterAutoscaler(order);
  }
  snapshot_.Revert();
  fresh_.StartOver();
  if (mode_ == EstimateMode::kClusterAutoscaler) {
    std::vector<NodeIndex> used;
    for (const ExistingUse& use : estimate.existing) used.push_back(use.node);
    std::sort(used.begin(), used.end());
    estimate.nodes += std::unique(used.begin(), used.end()) - used.begin();
  }
  return estimate;
}

}  // namespace loadline
