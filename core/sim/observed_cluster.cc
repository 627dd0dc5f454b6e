#include "core/sim/observed_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace loadline {
ObservedCluster::ObservedCluster(World* world, const ShapesOf* shapes)
    : world_(*world),
      shapes_(*shapes),
      chance_(world->scenario().seed, SimPurpose::kWatch),
      soft_taint_chance_(world->scenario().seed, SimPurpose::kSoftTaintWatch),
      unschedulable_(world->scenario().workloads.size()),
      status_since_ms_(world->scenario().workloads.size(), -1) {
  state_.set_resource_names(shapes->names());
  for (size_t i = 0; i < kObjectKinds; ++i) state_.objects().SetComplete(static_cast<ObjectKind>(i));
  for (const SimWorkloadIndex workload : unschedulable_.indices()) {
    const int32_t starting = state_.pod_shapes().Acquire(shapes_.OnNode(workload, /*ready=*/false));
    shape_.push_back({starting, state_.pod_shapes().Acquire(shapes_.OnNode(workload, /*ready=*/true))});
    WriteStatus(workload);
  }
  next_relist_ms_ = world->scenario().faults.relist_s * 1000;
}

ObservedCluster::~ObservedCluster() = default;

std::string ObservedCluster::PodName(SimPodIndex pod) { return absl::StrCat("p", IndexOf(pod)); }

SimPodIndex ObservedCluster::PodNamed(absl::string_view name) {
  int32_t pod = 0;
  LOADLINE_CHECK(absl::SimpleAtoi(name.substr(1), &pod)) << "no pod is called " << name;
  return SimPodIndex{pod};
}

std::string ObservedCluster::NodeUid(SimNodeIndex node) { return absl::StrCat("n", IndexOf(node)); }

std::string ObservedCluster::NodeName(SimNodeIndex node) const {
  return absl::StrCat(world_.group(world_.node(node).group).name, "-", IndexOf(world_.node(node).machine));
}

PodShape ObservedCluster::EvictedShape(SimPodIndex pod) const {
  return shapes_.OnNode(world_.pod(pod).workload, /*ready=*/true);
}

int64_t ObservedCluster::CameMs(SimPodIndex pod) const {
  return std::min(CreatedMs(pod) + 1000, pods_[pod].waits_since_ms);
}

int64_t ObservedCluster::ReportedEndS(int32_t terminating_s) {
  constexpr int64_t kStepS = 60;
  return kSimEpochS + (int64_t{terminating_s} / kStepS + 1) * kStepS;
}

std::optional<Slot> ObservedCluster::SlotOf(SimNodeIndex node) const {
  return nodes_.Contains(node) ? nodes_[node].slot : std::nullopt;
}

std::optional<Slot> ObservedCluster::SlotOfMachine(SimMachineIndex machine) const {
  if (!node_of_machine_.Contains(machine)) return std::nullopt;
  const std::optional<SimNodeIndex> node = node_of_machine_[machine];
  return node.has_value() && Registered(*node) ? SlotOf(*node) : std::nullopt;
}

std::optional<CpuMemory> ObservedCluster::RequestedOn(SimNodeIndex node) const {
  const std::optional<Slot> slot = SlotOf(node);
  const std::optional<NodeIndex> index = slot.has_value() ? snapshot_->FindSlot(*slot) : std::nullopt;
  if (!index.has_value()) return std::nullopt;
  const NodeAmount& cpu = snapshot_->amount(*index, kCpu);
  const NodeAmount& memory = snapshot_->amount(*index, kMemory);
  return CpuMemory{cpu.allocatable - cpu.free, memory.allocatable - memory.free};
}

std::optional<int64_t> ObservedCluster::NextLateEndS(int64_t now_s) {
  late_ends_s_.erase(late_ends_s_.begin(), late_ends_s_.upper_bound(now_s));
  if (late_ends_s_.empty()) return std::nullopt;
  return *late_ends_s_.begin();
}

// --- what happens ------------------------------------------------------------------------------------------

// News keep their order, as on one connection: pods have one, and nodes.
void ObservedCluster::Send(News news, RandomStream* chance, NewsQueue* queue) {
  const SimFaults& faults = world_.scenario().faults;
  news.due_ms = world_.now_ms() + chance->Between(faults.watch_lag_ms_min, faults.watch_lag_ms_max);
  if (!queue->empty()) news.due_ms = std::max(news.due_ms, queue->back().due_ms);
  if (chance->Chance(faults.lost_event)) {
    lost_.push_back(news);
  } else {
    queue->push_back(news);
    if (chance->Chance(faults.doubled_event)) queue->push_back(news);
  }
}

ObservedCluster::News ObservedCluster::NewsOfPod(SimPodIndex pod) const {
  const SimPod& of = world_.pod(pod);
  News news;
  news.pod = pod;
  news.on = of.on();
  news.terminating_s = static_cast<int32_t>(of.terminating_ms / 1000);
  news.phase = of.phase;
  news.bits = of.unschedulable ? 1 : 0;
  return news;
}

ObservedCluster::News ObservedCluster::NewsOfNode(SimNodeIndex node) const {
  const SimNode& of = world_.node(node);
  News news;
  news.node = node;
  const auto bit = [](bool is_set, NodeBit value) { return is_set ? static_cast<int>(value) : 0; };
  news.bits =
      static_cast<uint8_t>(bit(of.present, kPresent) | bit(of.ready, kReady) | bit(of.devices, kDevices) |
                           bit(of.tainted, kTainted) | bit(of.reclaimed, kReclaimed));
  news.marks = of.marks;
  news.startup_taint = of.startup_taint;
  news.soft_tainted_s = of.soft_tainted_s;
  return news;
}

void ObservedCluster::PodChanged(SimPodIndex pod) {
  Send(NewsOfPod(pod), &chance_, &pod_news_);
  StatusChanged(world_.pod(pod).workload);
}

void ObservedCluster::NodeChanged(SimNodeIndex node) { Send(NewsOfNode(node), &chance_, &node_news_); }

void ObservedCluster::SoftTaintChanged(SimNodeIndex node) {
  Send(NewsOfNode(node), &soft_taint_chance_, &node_news_);
}

void ObservedCluster::WorkloadChanged(SimWorkloadIndex workload) { StatusChanged(workload); }

void ObservedCluster::StatusChanged(SimWorkloadIndex workload) {
  int64_t& since = status_since_ms_[workload];
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

// A full list says what is now, also what the watch has not reported yet; a broken one says less.
bool ObservedCluster::List() {
  constexpr int64_t kListAgainMs = 60'000;  // chosen: a broken list lasts for some loops
  const SimFaults& faults = world_.scenario().faults;
  const int64_t hid = hides_;
  const bool broken = hid == kNoPods && chance_.Chance(faults.broken_list);
  hides_ = broken ? chance_.Between(0, kAllPods) : kNoPods;
  next_relist_ms_ = world_.now_ms() + (broken ? kListAgainMs : faults.relist_s * 1000);
  const bool changed = !lost_.empty() || hid != hides_;
  TellLost();
  if (hid != hides_) {
    for (const SimNodeIndex node : registered_) MarkDirty(node);
  }
  return changed;
}

void ObservedCluster::Show() {
  for (const SimNodeIndex node : std::exchange(otherwise_, {})) MarkDirty(node);
  WriteNodes();
}

void ObservedCluster::ShowAs(const std::vector<ShownNode>& nodes) {
  for (const ShownNode& shown : nodes) {
    const SimNodeIndex node = *NodeIn(shown.slot);
    WriteNode(node, shown.shape);
    otherwise_.push_back(node);
  }
  WriteSnapshot();
}

void ObservedCluster::TellLost() {
  for (const News& lost : std::exchange(lost_, {})) {
    Apply(lost.pod.has_value() ? NewsOfPod(*lost.pod) : NewsOfNode(*lost.node));
  }
}

void ObservedCluster::Apply(const News& news) {
  if (news.pod.has_value()) {
    ApplyPod(news);
  } else {
    ApplyNode(news);
  }
}

void ObservedCluster::ApplyPod(const News& news) {
  const SimPodIndex pod = *news.pod;
  if (!pods_.Contains(pod)) pods_.resize(IndexOf(pod) + 1);
  PodSeen& seen = pods_[pod];
  absl::btree_set<SimPodIndex>& waiting = unschedulable_[world_.pod(pod).workload];
  Detach(pod);
  if (seen.shape >= 0) released_.push_back(std::exchange(seen.shape, -1));
  pods_known_ += (news.phase != SimPodPhase::kGone ? 1 : 0) - (seen.phase != SimPodPhase::kGone ? 1 : 0);
  seen.on = news.on;
  seen.phase = news.phase;
  seen.terminating_s = news.terminating_s;
  const bool waits = news.phase == SimPodPhase::kWaiting && news.bits != 0;
  if (waits && !seen.unschedulable) {
    waiting.insert(pod);
    seen.waits_since_ms = world_.now_ms();
  } else if (!waits && seen.unschedulable) {
    waiting.erase(pod);
  }
  seen.unschedulable = waits;
  if (!seen.on.has_value()) return;
  Attach(pod);
  if (seen.phase != SimPodPhase::kTerminating) return;
  constexpr int64_t kEndHeadroomS = 30;
  const int64_t grace_s = world_.workload(world_.pod(pod).workload).grace_s;
  late_ends_s_.insert(ReportedEndS(seen.terminating_s) + grace_s + kEndHeadroomS + 1);
}

void ObservedCluster::Attach(SimPodIndex pod) {
  PodSeen& seen = pods_[pod];
  const SimNodeIndex node = *seen.on;
  if (!nodes_.Contains(node)) nodes_.resize(IndexOf(node) + 1);
  seen.place = nodes_[node].pods.end_index();
  nodes_[node].pods.push_back(pod);
  MarkDirty(node);
}

void ObservedCluster::Detach(SimPodIndex pod) {
  PodSeen& seen = pods_[pod];
  if (!seen.place.has_value()) return;
  StrongVector<SimPlace, SimPodIndex>& pods = nodes_[*seen.on].pods;
  const SimPodIndex last = pods.back();
  pods[*seen.place] = last;
  pods_[last].place = seen.place;
  pods.pop_back();
  seen.place = std::nullopt;
  MarkDirty(*seen.on);
}

// A node that registers again has the name of the one before: there is one object of that name.
void ObservedCluster::ApplyNode(const News& news) {
  const SimNodeIndex node = *news.node;
  if (!nodes_.Contains(node)) nodes_.resize(IndexOf(node) + 1);
  const SimMachineIndex machine = world_.node(node).machine;
  if (!node_of_machine_.Contains(machine)) node_of_machine_.resize(IndexOf(machine) + 1);
  std::optional<SimNodeIndex>& last = node_of_machine_[machine];
  if (last > node) return;
  if (last.has_value() && last < node) SetBits(*last, 0);
  last = node;
  NodeSeen& seen = nodes_[node];
  seen.soft_tainted_s = news.soft_tainted_s;
  seen.marks = news.marks;
  seen.startup_taint = news.startup_taint;
  SetBits(node, news.bits);
}

void ObservedCluster::SetBits(SimNodeIndex node, uint8_t bits) {
  NodeSeen& seen = nodes_[node];
  seen.bits = bits;
  if (seen.shown() && !seen.place.has_value()) {
    seen.place = registered_.end_index();
    registered_.push_back(node);
  } else if (!seen.shown() && seen.place.has_value()) {
    const SimNodeIndex last = registered_.back();
    registered_[*seen.place] = last;
    nodes_[last].place = seen.place;
    registered_.pop_back();
    seen.place.reset();
  }
  MarkDirty(node);
}

void ObservedCluster::MarkDirty(SimNodeIndex node) {
  NodeSeen& seen = nodes_[node];
  if (std::exchange(seen.dirty, true)) return;
  dirty_.push_back(node);
}

}  // namespace loadline
