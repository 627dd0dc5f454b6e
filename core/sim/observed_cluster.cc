#include "core/sim/observed_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr int64_t kStatusIntervalMs = 1000;
// Times of terminating pods are told in these steps, so that pods which end together share a shape.
constexpr int32_t kTerminatingStepS = 60;
constexpr size_t kEveryBit = 32;
constexpr size_t kEveryPlan = 3;  // AsPlanned

}  // namespace

ObservedCluster::ObservedCluster(World* world, const ShapesOf* shapes)
    : world_(*world),
      shapes_(*shapes),
      chance_(world->scenario().seed, SimPurpose::kWatch),
      unschedulable_(world->scenario().workloads.size()),
      status_since_ms_(world->scenario().workloads.size(), -1),
      node_shapes_(world->scenario().groups.size() * kEveryBit * kEveryPlan) {
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
  return absl::StrCat(world_.group(world_.node(node).group).name, "-", world_.node(node).machine);
}

PodShape ObservedCluster::EvictedShape(int32_t pod) const {
  return shapes_.OnNode(world_.pod(pod).workload, /*ready=*/true);
}

std::pair<int64_t, int64_t> ObservedCluster::CameMs(int32_t workload) const {
  const absl::btree_set<int32_t>& pods = unschedulable_[static_cast<size_t>(workload)];
  const auto came = [this](int32_t pod) {
    return std::min(world_.pod(pod).created_ms / 1000 * 1000 + 1000,
                    pods_[static_cast<size_t>(pod)].waits_since_ms);
  };
  return {came(*pods.begin()), came(*pods.rbegin())};  // by number is by time
}

std::optional<Slot> ObservedCluster::SlotOf(int32_t node) const {
  const size_t number = static_cast<size_t>(node);
  if (node < 0 || number >= nodes_.size() || nodes_[number].slot == Slot{-1}) return std::nullopt;
  return nodes_[number].slot;
}

std::optional<CpuMemory> ObservedCluster::RequestedOn(int32_t node) const {
  const std::optional<Slot> slot = SlotOf(node);
  const std::optional<NodeIndex> index = slot.has_value() ? snapshot_->FindSlot(*slot) : std::nullopt;
  if (!index.has_value()) return std::nullopt;
  const NodeAmount& cpu = snapshot_->amount(*index, kCpu);
  const NodeAmount& memory = snapshot_->amount(*index, kMemory);
  return CpuMemory{cpu.allocatable - cpu.free, memory.allocatable - memory.free};
}

// --- what happens ------------------------------------------------------------------------------------------

// News keep their order, as on one connection: pods have one, and nodes.
void ObservedCluster::Send(News news, NewsQueue* queue) {
  const SimFaults& faults = world_.scenario().faults;
  news.due_ms = world_.now_ms() + chance_.Between(faults.watch_lag_ms_min, faults.watch_lag_ms_max);
  if (!queue->empty()) news.due_ms = std::max(news.due_ms, queue->back().due_ms);
  if (chance_.Chance(faults.lost_event)) {
    lost_.push_back(news);
  } else {
    queue->push_back(news);
    if (chance_.Chance(faults.doubled_event)) queue->push_back(news);
  }
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
  Send(NewsOfPod(pod), &pod_news_);
  StatusChanged(world_.pod(pod).workload);
}

void ObservedCluster::NodeChanged(int32_t node) { Send(NewsOfNode(node), &node_news_); }

void ObservedCluster::WorkloadChanged(int32_t workload) { StatusChanged(workload); }

void ObservedCluster::StatusChanged(int32_t workload) {
  int64_t& since = status_since_ms_[static_cast<size_t>(workload)];
  if (since >= 0) return;
  since = world_.now_ms();
  statuses_.push_back(workload);
}

// --- what is seen ------------------------------------------------------------------------------------------

bool ObservedCluster::TakeNews() {
  if (world_.api_down_since_ms() >= 0) return true;  // what it knows gets older
  bool changed = false;
  const int64_t now_ms = world_.now_ms();
  heard_ms_ = now_ms;
  for (NewsQueue* const queue : {&node_news_, &pod_news_}) {
    while (!queue->empty() && queue->front().due_ms <= now_ms) {
      Apply(queue->front());
      queue->pop_front();
      changed = true;
    }
  }
  if (now_ms >= next_relist_ms_ && List()) changed = true;
  return WriteStatuses() || changed;
}

// A full list says what is now, also of what the watch has not told yet; a broken one says less.
bool ObservedCluster::List() {
  constexpr int64_t kListAgainMs = 60'000;
  const SimFaults& faults = world_.scenario().faults;
  const int64_t hid = hides_;
  const bool broken = hid == kNoPods && chance_.Chance(faults.broken_list);
  hides_ = broken ? chance_.Between(0, kAllPods) : kNoPods;
  next_relist_ms_ = world_.now_ms() + (broken ? kListAgainMs : faults.relist_s * 1000);
  const bool changed = !lost_.empty() || hid != hides_;
  TellLost();
  if (hid != hides_) {
    for (const int32_t node : registered_) MarkDirty(node);
  }
  return changed;
}

void ObservedCluster::PlanWith(int32_t node, AsPlanned how) {
  if (std::exchange(nodes_[static_cast<size_t>(node)].planned, how) != how) MarkDirty(node);
}

void ObservedCluster::Show() {
  WriteNodes();
  WriteSnapshot();
}

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
  absl::btree_set<int32_t>& waiting = unschedulable_[static_cast<size_t>(world_.pod(news.pod).workload)];
  Detach(news.pod);
  if (seen.shape >= 0) released_.push_back(std::exchange(seen.shape, -1));
  pods_known_ += (news.phase != SimPodPhase::kGone ? 1 : 0) - (seen.phase != SimPodPhase::kGone ? 1 : 0);
  seen.on = news.on;
  seen.phase = news.phase;
  seen.terminating_s = news.terminating_s;
  const bool waits = news.phase == SimPodPhase::kWaiting && news.bits != 0;
  if (waits && !seen.unschedulable) {
    waiting.insert(news.pod);
    seen.waits_since_ms = world_.now_ms();
  } else if (!waits && seen.unschedulable) {
    waiting.erase(news.pod);
  }
  seen.unschedulable = waits;
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

// A node that registers again has the name of the one before: there is one object of that name.
void ObservedCluster::ApplyNode(const News& news) {
  if (static_cast<size_t>(news.node) >= nodes_.size()) nodes_.resize(static_cast<size_t>(news.node) + 1);
  const size_t machine = static_cast<size_t>(world_.node(news.node).machine);
  if (machine >= node_of_machine_.size()) node_of_machine_.resize(machine + 1, -1);
  int32_t& last = node_of_machine_[machine];
  if (last > news.node) return;
  if (last >= 0 && last < news.node) SetBits(last, 0);
  last = news.node;
  SetBits(news.node, news.bits);
}

void ObservedCluster::SetBits(int32_t node, uint8_t bits) {
  NodeSeen& seen = nodes_[static_cast<size_t>(node)];
  seen.bits = bits;
  if (seen.shown() && seen.place < 0) {
    seen.place = static_cast<int32_t>(registered_.size());
    registered_.push_back(node);
  } else if (!seen.shown() && seen.place >= 0) {
    const int32_t last = registered_.back();
    registered_[static_cast<size_t>(seen.place)] = last;
    nodes_[static_cast<size_t>(last)].place = seen.place;
    registered_.pop_back();
    seen.place = -1;
  }
  MarkDirty(node);
}

void ObservedCluster::MarkDirty(int32_t node) {
  NodeSeen& seen = nodes_[static_cast<size_t>(node)];
  if (std::exchange(seen.dirty, true)) return;
  dirty_.push_back(node);
}

// --- as a cluster state ------------------------------------------------------------------------------------

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
    if (Hides(world_.pod(pod).workload)) continue;
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
  state_.SetNode(seen.slot, name, ShapeOfNode(of.group, seen.bits, seen.planned), contents_, name,
                 std::move(traits));
}

const NodeShape& ObservedCluster::ShapeOfNode(int32_t group, uint8_t bits, AsPlanned planned) {
  const size_t plan = static_cast<size_t>(planned);
  std::optional<NodeShape>& shape =
      node_shapes_[(static_cast<size_t>(group) * kEveryBit + bits) * kEveryPlan + plan];
  if (shape.has_value()) return *shape;
  shape = shapes_.Node(group, (bits & kDevices) != 0);
  std::vector<Taint> taints = shape->taints;
  if ((bits & kReady) == 0) taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
  if ((bits & kTainted) != 0 && planned != AsPlanned::kAbandoned) {
    taints.push_back({kToBeDeletedTaint, "", "NoSchedule"});
  }
  const bool unschedulable = (bits & kReclaimed) != 0 || planned == AsPlanned::kNotStarted;
  *shape =
      MakeNodeShape(shape->allocatable, shapes_.names(), shape->labels, std::move(taints), unschedulable);
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
