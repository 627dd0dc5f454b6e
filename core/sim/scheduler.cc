#include "core/sim/scheduler.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cluster/leaving.h"
#include "core/cluster/pod_role.h"
#include "core/sim/sim_blockers.h"
#include "core/sim/sim_use.h"

namespace loadline {
namespace {

// The time from an event until the next cycle of the scheduler. Chosen.
constexpr int64_t kScheduleDelayMs = 50;
constexpr int64_t kFullShare = 1'000'000;
// A point of a raw score: a hundredth of the mean of two shares.
constexpr int64_t kSharesOfPoint = 2 * kFullShare / 100;

// The shares that a node with a soft taint loses. Published: TaintToleration of kube-scheduler has three
// times the weight of LeastAllocated, and gives all of its points to nodes without one.
constexpr int64_t kLostBySoftTaint = 3 * 2 * kFullShare;

// Returns the rest of `allocatable`, as a share of it.
int64_t ShareLeft(int64_t left, int64_t allocatable) {
  if (allocatable <= 0 || left <= 0) return 0;
  if (left <= std::numeric_limits<int64_t>::max() / kFullShare) return left * kFullShare / allocatable;
  return static_cast<int64_t>(absl::int128(left) * kFullShare / allocatable);
}

// Returns the shares of a node that the amounts leave, below 0 if they exceed it.
int64_t SharesLeft(const CpuMemory& amounts, int64_t cpu, int64_t memory) {
  const auto share = [](int64_t amount, int64_t allocatable) {
    return static_cast<int64_t>(absl::int128(allocatable - amount) * kFullShare /
                                std::max<int64_t>(1, allocatable));
  };
  return share(amounts.cpu, cpu) + share(amounts.memory, memory);
}

FitOptions FitOf(const Scenario& scenario) {
  FitOptions fit;
  fit.load_line = SimLoadLine(scenario);
  return fit;
}

// A pod without a limit counts as nothing, as where expected use is off.
LimitSumsSpec HoursOfScore(const Scenario& scenario) {
  LimitSumsSpec spec;
  if (!scenario.settings.expected_use.on || scenario.settings.score != SimScore::kLimitAware) return spec;
  spec.max_limit_ratio = 0;
  spec.expected = SimProfiles(scenario);
  for (const ResourceId resource : {kCpu, kMemory}) {
    for (size_t hour = 0; hour < kHoursOfDay; ++hour)
      spec.resources.push_back({resource, {}, static_cast<int8_t>(hour)});
  }
  return spec;
}

}  // namespace

Scheduler::Scheduler(World* world, const ShapesOf* shapes)
    : world_(*world),
      shapes_(*shapes),
      score_(world->scenario().settings.score),
      fit_(FitOf(world->scenario())),
      hours_(HoursOfScore(world->scenario())),
      blocking_(BlockingWorkloads(world->scenario(), *shapes)),
      lost_apart_(world->scenario().settings.blockers_together * kSharesOfPoint),
      waiting_(world->scenario().workloads.size()) {
  nothing_.set_resource_names(shapes->names());
  Rebuild();
}

void Scheduler::Wake() {
  if (awake_) return;
  awake_ = true;
  world_.After(kScheduleDelayMs, SimEventKind::kSchedule);
}

void Scheduler::PodChanged(SimPodIndex pod) {
  if (!placed_on_.Contains(pod)) {
    placed_on_.resize(IndexOf(pod) + 1);
    ending_.resize(IndexOf(pod) + 1, false);
    if (!world_.IsDaemon(pod)) {
      waiting_[world_.pod(pod).workload].push_back(pod);
      Wake();
    }
  }
  const SimPod& of = world_.pod(pod);
  if (!of.place.has_value() && placed_on_[pod].has_value()) {
    Remove(pod, *std::exchange(placed_on_[pod], std::nullopt));
    if (world_.waiting() > 0) Wake();
  } else if (of.place.has_value() && !placed_on_[pod].has_value()) {
    // Somebody else has bound it: a DaemonSet.
    if (const std::optional<NodeIndex> index = index_of_[*of.node]) Place(pod, *index);
  } else if (of.place.has_value() && ending_[pod] != Ends(pod)) {
    Remove(pod, *of.node);
    Place(pod, *index_of_[*of.node]);
    if (world_.waiting() > 0) Wake();
  }
}

// Returns whether spread constraints pass over the pod, as it is terminating.
bool Scheduler::Ends(SimPodIndex pod) const {
  return world_.IsTerminating(pod) && ending_shapes_[world_.pod(pod).workload].has_value();
}

int32_t Scheduler::ShapeOf(SimPodIndex pod) const {
  const SimWorkloadIndex workload = world_.pod(pod).workload;
  return ending_[pod] ? *ending_shapes_[workload] : search_->fit(search_pods_[workload]).shape();
}

void Scheduler::NodeChanged(SimNodeIndex node) {
  if (!index_of_.Contains(node)) index_of_.resize(IndexOf(node) + 1);
  // A node that offers something else is another one.
  if (index_of_[node].has_value()) Take(node);
  if (world_.node(node).present) Enter(node);
  // Also where the node has gone: its domain may have had the fewest pods.
  if (world_.waiting() > 0) Wake();
}

void Scheduler::Enter(SimNodeIndex node) {
  const SimNode& of = world_.node(node);
  NewNode added;
  added.name = absl::StrCat("n", IndexOf(node));
  added.hostname = added.name;
  added.shape = shapes_.Node(of.group, of.devices, of.Has(SimMark::kLabel));
  const NodeIndex index = snapshot_->AddNode(std::move(added));
  index_of_[node] = index;
  node_at_.resize(IndexOf(index) + 1);
  limits_.resize(IndexOf(index) + 1);
  blockers_.resize(IndexOf(index) + 1);
  node_at_[index] = node;
  limits_[index] = {};
  blockers_[index] = 0;
  for (const SimPodIndex pod : of.pods) Place(pod, index);
  if (!of.Offers()) snapshot_->MarkLeaving(index);
}

void Scheduler::Take(SimNodeIndex node) {
  snapshot_->RemoveNode(*std::exchange(index_of_[node], std::nullopt));
  for (const SimPodIndex pod : world_.node(node).pods) placed_on_[pod] = std::nullopt;
}

void Scheduler::Place(SimPodIndex pod, NodeIndex node) {
  const SimPod& of = world_.pod(pod);
  ending_[pod] = Ends(pod);
  snapshot_->PlacePod(node, ShapeOf(pod));
  placed_on_[pod] = node_at_[node];
  limits_[node] = Plus(limits_[node], world_.workload(of.workload).limit);
  if (blocking_[of.workload]) ++blockers_[node];
}

void Scheduler::Remove(SimPodIndex pod, SimNodeIndex node) {
  const std::optional<NodeIndex> index = index_of_[node];
  if (!index.has_value()) return;
  TakeOff(*index, ShapeOf(pod), snapshot_.get());  // pods of one shape are the same for the scheduler
  const SimWorkloadIndex workload = world_.pod(pod).workload;
  limits_[*index] = Minus(limits_[*index], world_.workload(workload).limit);
  if (blocking_[workload]) --blockers_[*index];
}

// Numbers of nodes in a snapshot are not used again: after many have come and gone it is made anew.
void Scheduler::Rebuild() {
  search_.reset();
  snapshot_ = std::make_unique<Snapshot>(nothing_);
  search_ = std::make_unique<FitSearch>(snapshot_.get(), &fit_);
  search_pods_.clear();
  ending_shapes_.clear();
  node_at_.clear();
  limits_.clear();
  blockers_.clear();
  for (const SimWorkloadIndex workload : waiting_.indices()) {
    search_pods_.push_back(search_->Add(shapes_.Incoming(workload)));
    const bool spreads = world_.workload(workload).max_zone_skew > 0;
    ending_shapes_.push_back(
        spreads ? std::optional(snapshot_->InternShape(shapes_.OnNode(workload, true, 0))) : std::nullopt);
  }
  std::vector<SimNodeIndex> nodes = world_.nodes().values();
  std::sort(nodes.begin(), nodes.end());
  for (const SimNodeIndex node : nodes) {
    index_of_[node].reset();
    if (world_.node(node).present) Enter(node);
  }
}

std::vector<SimWorkloadIndex> Scheduler::InTurn() {
  std::vector<SimWorkloadIndex> turn;
  for (const SimWorkloadIndex workload : waiting_.indices()) {
    std::deque<SimPodIndex>& pods = waiting_[workload];
    while (!pods.empty() && world_.pod(pods.front()).phase != SimPodPhase::kWaiting) pods.pop_front();
    if (!pods.empty()) turn.push_back(workload);
  }
  const auto rank = [&](SimWorkloadIndex workload) {
    const SimPodIndex pod = waiting_[workload].front();
    return std::tuple(-int64_t{world_.workload(workload).priority}, world_.pod(pod).created_ms, pod);
  };
  std::sort(turn.begin(), turn.end(),
            [&](SimWorkloadIndex a, SimWorkloadIndex b) { return rank(a) < rank(b); });
  return turn;
}

void Scheduler::Run() {
  awake_ = false;
  if (snapshot_->node_end() > 2 * static_cast<int32_t>(world_.nodes().size()) + 1000) Rebuild();
  for (const SimWorkloadIndex workload : InTurn()) PlaceAllOf(workload);
}

void Scheduler::PlaceAllOf(SimWorkloadIndex workload) {
  std::deque<SimPodIndex>& pods = waiting_[workload];
  while (!pods.empty()) {
    const SimPodIndex pod = pods.front();
    if (world_.pod(pod).phase != SimPodPhase::kWaiting) {
      pods.pop_front();
      continue;
    }
    std::optional<NodeIndex> found = FindNode(workload);
    if (!found.has_value()) found = MakeRoom(workload);
    if (!found.has_value()) break;
    pods.pop_front();
    const NodeIndex best = *found;
    Place(pod, best);
    world_.Bind(pod, node_at_[best]);
  }
  for (const SimPodIndex pod : pods) {
    if (world_.pod(pod).phase == SimPodPhase::kWaiting) world_.MarkUnschedulable(pod);
  }
}

// Returns the score of kube-scheduler's LeastAllocated, finer; MostAllocated is its opposite.
int64_t Scheduler::AllocatedScore(const SimWorkload& workload, NodeIndex node) const {
  const std::span<const NodeAmount> amounts = snapshot_->amounts(node);
  const NodeAmount& cpu = amounts[static_cast<size_t>(kCpu)];
  const NodeAmount& memory = amounts[static_cast<size_t>(kMemory)];
  const int64_t left = ShareLeft(cpu.free - workload.request.cpu, cpu.allocatable) +
                       ShareLeft(memory.free - workload.request.memory, memory.allocatable);
  return score_ == SimScore::kMostAllocated ? -left : left;
}

// Returns the above with TaintToleration.
int64_t Scheduler::RequestScore(const SimWorkload& workload, NodeIndex node) const {
  return AllocatedScore(workload, node) - LostByTaint(node);
}

int64_t Scheduler::LostByTaint(NodeIndex node) const {
  return world_.node(node_at_[node]).soft_tainted_s >= 0 ? kLostBySoftTaint : 0;
}

// Returns the share that limits leave of the node, below 0 if they exceed it.
int64_t Scheduler::LimitShare(const SimWorkload& workload, NodeIndex node) const {
  return SharesLeft(Plus(limits_[node], workload.limit), snapshot_->amount(node, kCpu).allocatable,
                    snapshot_->amount(node, kMemory).allocatable);
}

// Finds the share that is left in the worst hour, for each of `fits_`.
void Scheduler::FindHourShares(SimWorkloadIndex workload) {
  const std::shared_ptr<const LimitSums> sums = snapshot_->SumLimits(hours_);
  const PodShape& shape = snapshot_->pod_shape(search_->fit(search_pods_[workload]).shape());
  std::vector<PodLimit> pod;
  for (size_t r = 0; r < hours_.resources.size(); ++r) pod.push_back(sums->LimitOfPod(shape, r));
  for (const NodeIndex node : fits_) {
    const int64_t cpu = snapshot_->amount(node, kCpu).allocatable;
    const int64_t memory = snapshot_->amount(node, kMemory).allocatable;
    const auto counted = [&](size_t r, int64_t allocatable) {
      const absl::int128 there = sums->sum(node, r);
      return SaturatingAdd(static_cast<int64_t>(std::min<absl::int128>(there, kMaxAmount)),
                           CountOnNode(hours_.max_limit_ratio, pod[r], allocatable).amount);
    };
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      const CpuMemory amounts = {counted(hour, cpu), counted(kHoursOfDay + hour, memory)};
      lowest = std::min(lowest, SharesLeft(amounts, cpu, memory));
    }
    limit_shares_.push_back(lowest);
  }
}

std::optional<NodeIndex> Scheduler::FindNode(SimWorkloadIndex workload) {
  const SearchPod pod = search_pods_[workload];
  if (score_ != SimScore::kLimitAware) {
    const std::optional<NodeIndex> first = search_->FirstFit(pod);
    if (!first.has_value()) return std::nullopt;
    return BestByRequests(world_.workload(workload), *first, &search_->fit(pod));
  }
  // The worst and the best of those that fit say what a share of the limits is worth.
  search_->AllFits(pod, &fits_);
  if (fits_.empty()) return std::nullopt;
  limit_shares_.clear();
  if (!hours_.resources.empty()) {
    FindHourShares(workload);
  } else {
    for (const NodeIndex node : fits_) limit_shares_.push_back(LimitShare(world_.workload(workload), node));
  }
  for (size_t i = 0; blocking_[workload] && i < fits_.size(); ++i) {
    if (blockers_[fits_[i]] == 0) limit_shares_[i] -= lost_apart_;
  }
  return BestByLimits(world_.workload(workload));
}

// Preempts expendable pods on the first node that takes a pod of the workload without them, no more than that
// takes.
std::optional<NodeIndex> Scheduler::MakeRoom(SimWorkloadIndex workload) {
  if (!snapshot_->HasShapesBelow(kExpendablePriority) || world_.IsExpendable(workload)) return std::nullopt;
  PodFit& fit = search_->fit(search_pods_[workload]);
  for (int32_t i = 0; i < snapshot_->node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot_->Placeable(node)) continue;
    std::vector<SimPodIndex> preempted;
    bool fits = false;
    for (const SimPodIndex pod : world_.node(node_at_[node]).pods) {
      if (!world_.IsExpendable(pod)) continue;
      TakeOff(node, ShapeOf(pod), snapshot_.get());
      preempted.push_back(pod);
      fits = fit.Fits(node);
      if (fits) break;
    }
    for (const SimPodIndex pod : preempted) snapshot_->PlacePod(node, ShapeOf(pod));
    if (!fits) continue;
    for (const SimPodIndex pod : preempted) world_.Preempt(pod);
    return node;
  }
  return std::nullopt;
}

// A score costs less than the filters do, so that these are asked of nodes only that would be the best so
// far.
NodeIndex Scheduler::BestByRequests(const SimWorkload& workload, NodeIndex first, PodFit* fit) const {
  NodeIndex best = first;
  int64_t best_score = RequestScore(workload, first);
  for (int32_t i = static_cast<int32_t>(first) + 1; i < snapshot_->node_end(); ++i) {
    const NodeIndex node{i};
    if (!snapshot_->Placeable(node)) continue;
    const int64_t most = AllocatedScore(workload, node);
    if (most <= best_score) continue;
    const int64_t score = most - LostByTaint(node);
    if (score <= best_score || !fit->Fits(node)) continue;
    best = node;
    best_score = score;
  }
  return best;
}

NodeIndex Scheduler::BestByLimits(const SimWorkload& workload) {
  const auto [low, high] = std::minmax_element(limit_shares_.begin(), limit_shares_.end());
  const int64_t lowest = *low;
  const int64_t span = *high - *low;
  NodeIndex best = fits_.front();
  int64_t best_score = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < fits_.size(); ++i) {
    int64_t score = RequestScore(workload, fits_[i]);
    // Both scores weigh 1: the limits of the best and of the worst node count like those of an empty and of a
    // full one.
    if (span > 0) {
      score += static_cast<int64_t>(absl::int128(limit_shares_[i] - lowest) * 2 * kFullShare / span);
    }
    if (score > best_score) {
      best = fits_[i];
      best_score = score;
    }
  }
  return best;
}

}  // namespace loadline
