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
  for (int32_t i = 0; i < static_cast<int32_t>(unschedulable_.size()); ++i) {
    shape_.push_back(state_.pod_shapes().Acquire(shapes_.OnNode(i, /*ready=*/false)));
    shape_.push_back(state_.pod_shapes().Acquire(shapes_.OnNode(i, /*ready=*/true)));
    WriteStatus(i);
  }
  next_relist_ms_ = world->scenario().faults.relist_s * 1000;
}

ObservedCluster::~ObservedCluster() = default;

std::string ObservedCluster::PodName(int32_t pod) { return absl::StrCat("p", pod); }

int32_t ObservedCluster::PodNamed(absl::string_view name) {
  int32_t pod = -1;
  LOADLINE_CHECK(absl::SimpleAtoi(name.substr(1), &pod)) << "no pod is called " << name;
  return pod;
}

std::string ObservedCluster::NodeUid(int32_t node) { return absl::StrCat("n", node); }

std::string ObservedCluster::NodeName(int32_t node) const {
  return absl::StrCat(world_.group(world_.node(node).group).name, "-", world_.node(node).machine);
}

PodShape ObservedCluster::EvictedShape(int32_t pod) const {
  return shapes_.OnNode(world_.pod(pod).workload, /*ready=*/true);
}

int64_t ObservedCluster::CameMs(int32_t pod) const {
  return std::min(CreatedMs(pod) + 1000, pods_[static_cast<size_t>(pod)].waits_since_ms);
}

int64_t ObservedCluster::ToldEndS(int32_t terminating_s) {
  constexpr int64_t kStepS = 60;
  return kSimEpochS + (int64_t{terminating_s} / kStepS + 1) * kStepS;
}

std::optional<Slot> ObservedCluster::SlotOf(int32_t node) const {
  const size_t number = static_cast<size_t>(node);
  if (node < 0 || number >= nodes_.size() || nodes_[number].slot == Slot{-1}) return std::nullopt;
  return nodes_[number].slot;
}

std::optional<Slot> ObservedCluster::SlotOfMachine(int32_t machine) const {
  const size_t number = static_cast<size_t>(machine);
  if (number >= node_of_machine_.size() || !Registered(node_of_machine_[number])) return std::nullopt;
  return SlotOf(node_of_machine_[number]);
}

std::optional<CpuMemory> ObservedCluster::RequestedOn(int32_t node) const {
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
  news.marks = of.marks;
  news.startup_taint = of.startup_taint;
  news.soft_tainted_s = of.soft_tainted_s;
  return news;
}

void ObservedCluster::PodChanged(int32_t pod) {
  Send(NewsOfPod(pod), &chance_, &pod_news_);
  StatusChanged(world_.pod(pod).workload);
}

void ObservedCluster::NodeChanged(int32_t node) { Send(NewsOfNode(node), &chance_, &node_news_); }

void ObservedCluster::SoftTaintChanged(int32_t node) {
  Send(NewsOfNode(node), &soft_taint_chance_, &node_news_);
}

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

void ObservedCluster::Show() {
  for (const int32_t node : std::exchange(otherwise_, {})) MarkDirty(node);
  WriteNodes();
}

void ObservedCluster::ShowAs(const std::vector<ShownNode>& nodes) {
  for (const ShownNode& shown : nodes) {
    const int32_t node = NodeIn(shown.slot);
    WriteNode(node, shown.shape);
    otherwise_.push_back(node);
  }
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
  if (seen.on < 0) return;
  Attach(news.pod);
  if (seen.phase != SimPodPhase::kTerminating) return;
  constexpr int64_t kEndHeadroomS = 30;
  const int64_t grace_s = world_.workload(world_.pod(news.pod).workload).grace_s;
  late_ends_s_.insert(ToldEndS(seen.terminating_s) + grace_s + kEndHeadroomS + 1);
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
  NodeSeen& seen = nodes_[static_cast<size_t>(news.node)];
  seen.soft_tainted_s = news.soft_tainted_s;
  seen.marks = news.marks;
  seen.startup_taint = news.startup_taint;
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

}  // namespace loadline
