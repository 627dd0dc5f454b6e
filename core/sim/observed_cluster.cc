#include "core/sim/observed_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr int64_t kStatusIntervalMs = 1000;
// Times of terminating pods are told in these steps, so that pods which end together share a shape.
constexpr int32_t kTerminatingStepS = 60;
constexpr uint8_t kEveryBit = 32;

}  // namespace

ObservedCluster::ObservedCluster(World* world, const ShapesOf* shapes)
    : world_(*world),
      shapes_(*shapes),
      chance_(world->scenario().seed, SimPurpose::kWatch),
      unschedulable_(world->scenario().workloads.size()),
      status_since_ms_(world->scenario().workloads.size(), -1),
      node_shapes_(world->scenario().groups.size() * kEveryBit) {
  state_.set_resource_names(shapes->names());
  for (size_t i = 0; i < kObjectKinds; ++i) state_.objects().SetComplete(static_cast<ObjectKind>(i));
  for (int32_t i = 0; i < static_cast<int32_t>(unschedulable_.size()); ++i) {
    shape_.push_back(state_.pod_shapes().Acquire(shapes_.OnNode(i, /*ready=*/false)));
    shape_.push_back(state_.pod_shapes().Acquire(shapes_.OnNode(i, /*ready=*/true)));
    WriteStatus(i);
  }
  next_relist_ms_ = world->scenario().faults.relist_s * 1000;
}

ObservedCluster::~ObservedCluster() = default;

std::string ObservedCluster::PodName(int32_t pod) { return absl::StrCat("p", pod); }

std::string ObservedCluster::NodeName(int32_t node) const {
  return absl::StrCat(world_.group(world_.node(node).group).name, "-", node);
}

PodShape ObservedCluster::EvictedShape(int32_t pod) const {
  return shapes_.OnNode(world_.pod(pod).workload, /*ready=*/true);
}

std::optional<Slot> ObservedCluster::SlotOf(int32_t node) const {
  const size_t number = static_cast<size_t>(node);
  if (node < 0 || number >= nodes_.size() || nodes_[number].slot == Slot{-1}) return std::nullopt;
  return nodes_[number].slot;
}

bool ObservedCluster::Registered(int32_t node) const {
  const size_t number = static_cast<size_t>(node);
  return node >= 0 && number < nodes_.size() && (nodes_[number].bits & kPresent) != 0;
}

// --- what happens ------------------------------------------------------------------------------------------

// News keep their order, as on one connection.
int64_t ObservedCluster::Due() {
  const SimFaults& faults = world_.scenario().faults;
  const int64_t due = world_.now_ms() + chance_.Between(faults.watch_lag_ms_min, faults.watch_lag_ms_max);
  return news_.empty() ? due : std::max(due, news_.back().due_ms);
}

ObservedCluster::News ObservedCluster::NewsOfPod(int32_t pod) const {
  const SimPod& of = world_.pod(pod);
  News news;
  news.pod = pod;
  news.on = of.place >= 0 ? of.node : -1;
  news.terminating_s = static_cast<int32_t>(of.terminating_ms / 1000);
  news.phase = of.phase;
  news.bits = of.unschedulable ? 1 : 0;
  return news;
}

ObservedCluster::News ObservedCluster::NewsOfNode(int32_t node) const {
  const SimNode& of = world_.node(node);
  News news;
  news.node = node;
  const auto bit = [](bool is_set, NodeBit value) { return is_set ? static_cast<int>(value) : 0; };
  news.bits =
      static_cast<uint8_t>(bit(of.present, kPresent) | bit(of.ready, kReady) | bit(of.devices, kDevices) |
                           bit(of.tainted, kTainted) | bit(of.reclaimed, kReclaimed));
  return news;
}

void ObservedCluster::PodChanged(int32_t pod) {
  News news = NewsOfPod(pod);
  news.due_ms = Due();
  if (chance_.Chance(world_.scenario().faults.lost_event)) {
    lost_.push_back(news);
  } else {
    news_.push_back(news);
  }
  StatusChanged(world_.pod(pod).workload);
}

void ObservedCluster::NodeChanged(int32_t node) {
  News news = NewsOfNode(node);
  news.due_ms = Due();
  if (chance_.Chance(world_.scenario().faults.lost_event)) {
    lost_.push_back(news);
  } else {
    news_.push_back(news);
  }
}

void ObservedCluster::WorkloadChanged(int32_t workload) { StatusChanged(workload); }

void ObservedCluster::StatusChanged(int32_t workload) {
  int64_t& since = status_since_ms_[static_cast<size_t>(workload)];
  if (since >= 0) return;
  since = world_.now_ms();
  statuses_.push_back(workload);
}

// --- what is seen ------------------------------------------------------------------------------------------

bool ObservedCluster::CatchUp() {
  bool changed = false;
  const int64_t now_ms = world_.now_ms();
  while (!news_.empty() && news_.front().due_ms <= now_ms) {
    Apply(news_.front());
    news_.pop_front();
    changed = true;
  }
  if (now_ms >= next_relist_ms_) {
    next_relist_ms_ = now_ms + world_.scenario().faults.relist_s * 1000;
    changed = changed || !lost_.empty();
    TellLost();
  }
  if (WriteStatuses()) changed = true;
  if (!changed && snapshot_ != nullptr) return false;
  WriteNodes();
  WriteSnapshot();
  return true;
}

// A full list says what is now, also of what the watch has not told yet.
void ObservedCluster::TellLost() {
  for (const News& lost : std::exchange(lost_, {})) {
    Apply(lost.pod >= 0 ? NewsOfPod(lost.pod) : NewsOfNode(lost.node));
  }
}

void ObservedCluster::Apply(const News& news) {
  if (news.pod >= 0) {
    ApplyPod(news);
  } else {
    ApplyNode(news);
  }
}

void ObservedCluster::ApplyPod(const News& news) {
  const size_t number = static_cast<size_t>(news.pod);
  if (number >= pods_.size()) pods_.resize(number + 1);
  PodSeen& seen = pods_[number];
  const size_t workload = static_cast<size_t>(world_.pod(news.pod).workload);
  if (seen.unschedulable) --unschedulable_[workload];
  Detach(news.pod);
  if (seen.shape >= 0) released_.push_back(std::exchange(seen.shape, -1));
  seen.on = news.on;
  seen.phase = news.phase;
  seen.terminating_s = news.terminating_s;
  seen.unschedulable = news.phase == SimPodPhase::kWaiting && news.bits != 0;
  if (seen.unschedulable) ++unschedulable_[workload];
  if (seen.on >= 0) Attach(news.pod);
}

void ObservedCluster::Attach(int32_t pod) {
  PodSeen& seen = pods_[static_cast<size_t>(pod)];
  const size_t node = static_cast<size_t>(seen.on);
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  seen.place = static_cast<int32_t>(nodes_[node].pods.size());
  nodes_[node].pods.push_back(pod);
  MarkDirty(seen.on);
}

void ObservedCluster::Detach(int32_t pod) {
  PodSeen& seen = pods_[static_cast<size_t>(pod)];
  if (seen.place < 0) return;
  std::vector<int32_t>& pods = nodes_[static_cast<size_t>(seen.on)].pods;
  const int32_t last = pods.back();
  pods[static_cast<size_t>(seen.place)] = last;
  pods_[static_cast<size_t>(last)].place = seen.place;
  pods.pop_back();
  seen.place = -1;
  MarkDirty(seen.on);
}

void ObservedCluster::ApplyNode(const News& news) {
  const size_t number = static_cast<size_t>(news.node);
  if (number >= nodes_.size()) nodes_.resize(number + 1);
  NodeSeen& seen = nodes_[number];
  seen.bits = news.bits;
  constexpr uint8_t kStarted = kPresent | kReady | kDevices;
  seen.started = seen.started || (news.bits & kStarted) == kStarted;
  MarkDirty(news.node);
}

void ObservedCluster::MarkDirty(int32_t node) {
  NodeSeen& seen = nodes_[static_cast<size_t>(node)];
  if (std::exchange(seen.dirty, true)) return;
  dirty_.push_back(node);
}

// --- as a cluster state
// -------------------------------------------------------------------------------------

void ObservedCluster::WriteNodes() {
  // All leave before any comes.
  for (const int32_t node : dirty_) {
    NodeSeen& seen = nodes_[static_cast<size_t>(node)];
    if (seen.shown() || seen.slot == Slot{-1}) continue;
    state_.RemoveNode(seen.slot);
    node_in_[IndexOf(seen.slot)] = -1;
    free_slots_.push_back(static_cast<int32_t>(seen.slot));
    seen.slot = Slot{-1};
  }
  for (const int32_t node : dirty_) {
    NodeSeen& seen = nodes_[static_cast<size_t>(node)];
    seen.dirty = false;
    if (seen.shown()) WriteNode(node);
  }
  dirty_.clear();
  for (const int32_t shape : released_) state_.pod_shapes().Release(shape);
  released_.clear();
}

int32_t ObservedCluster::ShapeIn(int32_t pod) {
  PodSeen& seen = pods_[static_cast<size_t>(pod)];
  const int32_t workload = world_.pod(pod).workload;
  if (seen.phase != SimPodPhase::kTerminating) {
    const size_t ready = seen.phase == SimPodPhase::kRunning ? 1 : 0;
    return shape_[2 * static_cast<size_t>(workload) + ready];
  }
  if (seen.shape < 0) {
    const int32_t step = seen.terminating_s / kTerminatingStepS + 1;
    seen.shape = state_.pod_shapes().Acquire(
        shapes_.OnNode(workload, /*ready=*/true, kSimEpochS + int64_t{step} * kTerminatingStepS));
  }
  return seen.shape;
}

void ObservedCluster::WriteNode(int32_t node) {
  NodeSeen& seen = nodes_[static_cast<size_t>(node)];
  const SimNode& of = world_.node(node);
  if (seen.slot == Slot{-1}) {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<int32_t>(node_in_.size()));
      node_in_.push_back(-1);
    }
    seen.slot = Slot{free_slots_.back()};
    free_slots_.pop_back();
    node_in_[IndexOf(seen.slot)] = node;
  }
  constexpr size_t kMostText = 12;
  text_.resize(seen.pods.size() * kMostText);
  contents_.clear();
  char* at = text_.data();
  for (const int32_t pod : seen.pods) {
    const absl::AlphaNum number(pod);
    char* const name = at;
    *at++ = 'p';
    at = std::copy(number.Piece().begin(), number.Piece().end(), at);
    const absl::string_view text(name, static_cast<size_t>(at - name));
    const int32_t shape = ShapeIn(pod);
    contents_.push_back({shape, 0, text, text, state_.pod_shapes()[shape].fingerprint});
  }
  NodeTraits traits;
  traits.uid = absl::StrCat("n", node);
  traits.provider_id = absl::StrCat("m", of.machine);
  traits.created_s = kSimEpochS + of.joined_ms / 1000;
  traits.ready = (seen.bits & kReady) != 0;
  std::string name = NodeName(node);
  state_.SetNode(seen.slot, name, ShapeOfNode(of.group, seen.bits), contents_, name, std::move(traits));
}

const NodeShape& ObservedCluster::ShapeOfNode(int32_t group, uint8_t bits) {
  std::optional<NodeShape>& shape = node_shapes_[static_cast<size_t>(group) * kEveryBit + bits];
  if (shape.has_value()) return *shape;
  shape = shapes_.Node(group, (bits & kDevices) != 0);
  std::vector<Taint> taints = shape->taints;
  if ((bits & kReady) == 0) taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
  if ((bits & kTainted) != 0) taints.push_back({kToBeDeletedTaint, "", "NoSchedule"});
  *shape = MakeNodeShape(shape->allocatable, shapes_.names(), shape->labels, std::move(taints),
                         /*unschedulable=*/(bits & kReclaimed) != 0);
  return *shape;
}

bool ObservedCluster::WriteStatuses() {
  bool changed = false;
  const int64_t due_ms = world_.now_ms() - kStatusIntervalMs - world_.scenario().faults.watch_lag_ms_min;
  std::erase_if(statuses_, [&](int32_t workload) {
    int64_t& since = status_since_ms_[static_cast<size_t>(workload)];
    if (since > due_ms) return false;
    since = -1;
    WriteStatus(workload);
    changed = true;
    return true;
  });
  return changed;
}

void ObservedCluster::WriteStatus(int32_t workload) {
  const SimWorkload& of = world_.workload(workload);
  const SimReplicas& has = world_.replicas(workload);
  Workload content;
  content.uid = shapes_.Owner(workload).uid;
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
  state_.objects().Set(
      {{ObjectKind::kDisruptionBudget, kSimNamespace, of.name}, std::move(budget), hash.Finish()});
}

// As the engine keeps its own: what has changed is read again.
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
