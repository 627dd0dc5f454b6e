// The cluster that the loop sees as a cluster state, with its snapshot.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/node_annotations.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"
#include "core/sim/observed_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kStatusIntervalMs = 1000;

}  // namespace

void ObservedCluster::WriteNodes() {
  // All nodes are removed before any is added.
  for (const SimNodeIndex node : dirty_) {
    NodeSeen& seen = nodes_[node];
    if (seen.shown() || !seen.slot.has_value()) continue;
    state_.RemoveNode(*seen.slot);
    node_in_[*seen.slot].reset();
    free_slots_.push_back(*seen.slot);
    seen.slot.reset();
  }
  for (const SimNodeIndex node : dirty_) {
    NodeSeen& seen = nodes_[node];
    seen.dirty = false;
    if (!seen.shown()) continue;
    const NodeShape& shape = ShapeOfNode(world_.node(node).group, seen);
    if (seen.soft_tainted_s < 0) {
      WriteNode(node, shape);
    } else {
      WriteNode(node, WithSoftTaint(shape, seen.soft_tainted_s));
    }
  }
  dirty_.clear();
  for (const int32_t shape : released_) state_.pod_shapes().Release(shape);
  released_.clear();
}

int32_t ObservedCluster::ShapeIn(SimPodIndex pod) {
  PodSeen& seen = pods_[pod];
  const SimWorkloadIndex workload = world_.pod(pod).workload;
  if (seen.phase != SimPodPhase::kTerminating) {
    const size_t ready = seen.phase == SimPodPhase::kRunning ? 1 : 0;
    return shape_[workload][ready];
  }
  if (seen.shape < 0) {
    seen.shape = state_.pod_shapes().Acquire(
        shapes_.OnNode(workload, /*ready=*/true, ReportedEndS(seen.terminating_s)));
  }
  return seen.shape;
}

void ObservedCluster::WriteNode(SimNodeIndex node, const NodeShape& shape) {
  NodeSeen& seen = nodes_[node];
  const SimNode& of = world_.node(node);
  if (!seen.slot.has_value()) {
    if (free_slots_.empty()) {
      free_slots_.push_back(node_in_.end_index());
      node_in_.emplace_back();
    }
    seen.slot = free_slots_.back();
    free_slots_.pop_back();
    node_in_[*seen.slot] = node;
  }
  constexpr size_t kMostText = 12;
  text_.resize(seen.pods.size() * kMostText);
  contents_.clear();
  char* at = text_.data();
  for (const SimPodIndex pod : seen.pods) {
    if (Hides(world_.pod(pod).workload)) continue;
    const absl::AlphaNum number(IndexOf(pod));
    char* const name = at;
    *at++ = 'p';
    at = std::copy(number.Piece().begin(), number.Piece().end(), at);
    const absl::string_view text(name, static_cast<size_t>(at - name));
    const int32_t of_pod = ShapeIn(pod);
    contents_.push_back({of_pod, 0, text, text, state_.pod_shapes()[of_pod].fingerprint});
  }
  NodeTraits traits;
  traits.uid = NodeUid(node);
  traits.provider_id = absl::StrCat("m", IndexOf(of.machine));
  traits.created_s = kSimEpochS + of.joined_ms / 1000;
  traits.ready = (seen.bits & kReady) != 0;
  if ((seen.marks & BitOf(SimMark::kKeep)) != 0) {
    traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
  }
  std::string name = NodeName(node);
  state_.SetNode(*seen.slot, name, shape, contents_, name, std::move(traits));
}

const NodeShape& ObservedCluster::ShapeOfNode(GroupIndex group, const NodeSeen& seen) {
  // The annotation is none of the shape.
  const auto marks = static_cast<uint8_t>(seen.marks & ~BitOf(SimMark::kKeep));
  std::unique_ptr<const NodeShape>& shape = node_shapes_[{group, seen.bits, marks, seen.startup_taint}];
  if (shape != nullptr) return *shape;
  const auto marked = [&](SimMark mark) { return (marks & BitOf(mark)) != 0; };
  NodeShape made = shapes_.Node(group, (seen.bits & kDevices) != 0, marked(SimMark::kLabel));
  std::vector<Taint> taints = made.taints;
  if ((seen.bits & kReady) == 0) taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
  if ((seen.bits & kTainted) != 0) taints.push_back({kToBeDeletedTaint, "", "NoSchedule"});
  if (marked(SimMark::kTaint)) taints.push_back(SimHandTaint());
  if (seen.startup_taint != kNoStartupTaint) {
    taints.push_back(SimStartupTaints()[static_cast<size_t>(seen.startup_taint)]);
  }
  const bool unschedulable = (seen.bits & kReclaimed) != 0 || marked(SimMark::kCordon);
  shape = std::make_unique<const NodeShape>(Retainted(std::move(made), std::move(taints), unschedulable));
  return *shape;
}

NodeShape ObservedCluster::WithSoftTaint(const NodeShape& shape, int64_t since_s) const {
  std::vector<Taint> taints = shape.taints;
  taints.push_back({kDeletionCandidateTaint, absl::StrCat(since_s), "PreferNoSchedule"});
  return Retainted(shape, std::move(taints), shape.unschedulable);
}

bool ObservedCluster::WriteStatuses() {
  bool changed = false;
  const int64_t due_ms = world_.now_ms() - kStatusIntervalMs - world_.scenario().faults.watch_lag_ms_min;
  std::erase_if(statuses_, [&](SimWorkloadIndex workload) {
    int64_t& since = status_since_ms_[workload];
    if (since > due_ms) return false;
    since = -1;
    WriteStatus(workload);
    changed = true;
    return true;
  });
  return changed;
}

void ObservedCluster::WriteStatus(SimWorkloadIndex workload) {
  const SimWorkload& of = world_.workload(workload);
  const SimReplicas& has = world_.replicas(workload);
  Workload content;
  content.uid = ShapesOf::UidOf(workload);
  content.current_replicas = static_cast<int64_t>(has.alive.size());
  content.target_replicas = of.kind == SimWorkloadKind::kDaemon ? content.current_replicas : has.wanted;
  FingerprintBuilder hash;
  hash.Add(content.target_replicas);
  hash.Add(content.current_replicas);
  state_.objects().Set({{ShapesOf::KindOf(of), kSimNamespace, of.name}, std::move(content), hash.Finish()});
  if (of.max_unavailable < 0) return;
  const SimBudget status = world_.BudgetOf(workload);
  DisruptionBudget budget;
  budget.selector = {false, {{kSimAppLabel, SelectorOperator::kIn, {of.name}}}};
  budget.disruptions_allowed = static_cast<int32_t>(status.allowed());
  budget.current_healthy = static_cast<int32_t>(status.healthy);
  budget.desired_healthy = static_cast<int32_t>(status.desired);
  budget.expected_pods = static_cast<int32_t>(status.expected);
  hash.Add(status.healthy);
  hash.Add(status.desired);
  if (of.two_budgets) {
    state_.objects().Set(
        {{ObjectKind::kDisruptionBudget, kSimNamespace, of.name + "-too"}, budget, hash.Finish()});
  }
  state_.objects().Set(
      {{ObjectKind::kDisruptionBudget, kSimNamespace, of.name}, std::move(budget), hash.Finish()});
}

// Works as the engine's own snapshot: what has changed is read again.
void ObservedCluster::WriteSnapshot() {
  const auto changes = state_.changes(snapshot_read_);
  const bool many = snapshot_ != nullptr && (snapshot_->pod_shape_end() > most_shapes_ ||
                                             snapshot_->node_end() > 2 * state_.node_count() + 1000);
  if (snapshot_ == nullptr || many || !changes.has_value()) {
    snapshot_.reset();
    snapshot_ = std::make_unique<Snapshot>(state_, Snapshot::Source::kChanges);
    most_shapes_ = 2 * snapshot_->pod_shape_end() + 10'000;
  } else if (!changes->empty()) {
    std::vector<Slot> slots(changes->begin(), changes->end());
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    snapshot_->Reload(slots);
  }
  snapshot_read_ = state_.change_count();
}

}  // namespace loadline
