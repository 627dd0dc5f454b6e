#include "core/sim/tested_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/drain/brakes.h"

namespace loadline {
namespace {

constexpr int64_t kLoopHourMs = 3'600'000;
// From the end of a process to the first loop of the next one.
constexpr int64_t kLeaseMs = 15'000;
// From the begin of a loop to one that runs because a removal has ended.
constexpr int64_t kBetweenLoopsMs = 2'000;
constexpr int64_t kMostNewNodes = 1'000;  // of one loop

LoopGroup GroupOf(const SimGroup& group, NodeShape node) {
  LoopGroup of;
  of.drain.name = group.name;
  of.drain.min_nodes = group.min_nodes;
  of.drain.node_price = group.usd_per_hour;
  of.max_nodes = group.max_nodes;
  of.node = std::move(node);
  of.usd_per_hour = group.usd_per_hour;
  of.has_gpu = group.gpus > 0;
  return of;
}

}  // namespace

TestedLoop::TestedLoop(World* world, const Cloud* cloud, ObservedCluster* seen, Actuation* actuation,
                       ActObserver* observer, const ShapesOf* shapes)
    : world_(*world),
      seen_(*seen),
      actuation_(*actuation),
      observer_(*observer),
      fleet_(world, cloud, seen),
      leader_(std::make_unique<Leader>()),
      chance_(world->scenario().seed, SimPurpose::kLeader) {
  SetUp(*shapes);
}

void TestedLoop::SetUp(const ShapesOf& shapes) {
  const Scenario& scenario = world_.scenario();
  const SimSettings& settings = scenario.settings;
  problem_.drain.cluster = &seen_.state();
  problem_.names = shapes.names();
  problem_.decisions = {
      .scale_up = true, .slack = settings.slack_percent > 0, .scale_down = settings.scale_down};
  problem_.slack.rate = kWholeRate / 100 * settings.slack_percent;
  problem_.growth.max_new_nodes = kMostNewNodes;
  problem_.batch.max_ms = settings.batch_max_ms;
  problem_.scale_down.eligibility.utilization_threshold = settings.utilization_threshold;
  problem_.scale_down.eligibility.gpu_utilization_threshold = settings.utilization_threshold;
  problem_.scale_down.deletion.max_scale_down_parallelism = settings.max_scale_down_parallelism;
  problem_.scale_down.deletion.max_drain_parallelism = settings.max_drain_parallelism;
  problem_.scale_down.deletion.timers.unneeded_time_s = settings.unneeded_time_s;
  problem_.scale_down.deletion.timers.unready_time_s = settings.unready_time_s;
  for (int32_t i = 0; i < static_cast<int32_t>(scenario.groups.size()); ++i) {
    problem_.groups.push_back(
        GroupOf(scenario.groups[static_cast<size_t>(i)], shapes.Node(i, /*devices=*/true)));
  }
  for (int32_t i = 0; i < static_cast<int32_t>(scenario.workloads.size()); ++i) {
    pods_.push_back(shapes.Incoming(i));
    if (world_.workload(i).kind == SimWorkloadKind::kDaemon) problem_.daemons.push_back(pods_.back());
  }
}

void TestedLoop::Start() {
  world_.After(world_.scenario().settings.scan_interval_s * 1000, SimEventKind::kLoop, 0);
  if (world_.scenario().faults.leader_ends > 0) world_.After(kLoopHourMs, SimEventKind::kLeaderHour);
}

// --- when it runs ------------------------------------------------------------------------------------------

bool TestedLoop::MustRun() const {
  return changed_ || acted_ || actuation_.HasProgress() || fleet_.changed() ||
         world_.scenario().settings.run_every_loop || (next_ms_.has_value() && world_.now_ms() >= *next_ms_);
}

bool TestedLoop::Run(bool at_interval, WorkBudget* budget) {
  if (at_interval) {
    world_.After(world_.scenario().settings.scan_interval_s * 1000, SimEventKind::kLoop, 0);
  } else if (again_ms_ != world_.now_ms()) {
    return false;  // it was to run later, and something else has let it run
  }
  again_ms_ = -1;
  if (waits_until_ms_ > world_.now_ms()) RunAgainIn(waits_until_ms_ - world_.now_ms());
  if (world_.now_ms() < leads_from_ms_) return false;
  began_ms_ = world_.now_ms();
  if (seen_.TakeNews()) changed_ = true;
  if (fleet_.ListMachines()) changed_ = true;
  if (!MustRun()) return false;
  ++loops_;
  // Where something cannot be found out, nothing is done, and all of it is looked at the next time.
  if (!fleet_.listed() || (!seen_.registered().empty() && seen_.pods() == 0)) return true;
  changed_ = false;
  acted_ = Decide(budget);
  return true;
}

void TestedLoop::RunAgainIn(int64_t after_ms) {
  const int64_t at_ms = world_.now_ms() + after_ms;
  if (again_ms_ >= world_.now_ms() && again_ms_ <= at_ms) return;
  again_ms_ = at_ms;
  world_.After(after_ms, SimEventKind::kLoop, 1);
}

void TestedLoop::RemovalEnded() {
  RunAgainIn(std::max<int64_t>(0, began_ms_ + kBetweenLoopsMs - world_.now_ms()));
}

// --- who leads ---------------------------------------------------------------------------------------------

void TestedLoop::LeaderHour() {
  world_.After(kLoopHourMs, SimEventKind::kLeaderHour);
  if (chance_.Chance(world_.scenario().faults.leader_ends)) BecomeLeader();
}

bool TestedLoop::Ends() {
  if (!chance_.Chance(world_.scenario().faults.leader_ends_acting)) return false;
  BecomeLeader();
  return true;
}

void TestedLoop::BecomeLeader() {
  observer_.LeaderChanges();
  leads_from_ms_ = world_.now_ms() + kLeaseMs;
  leader_ = std::make_unique<Leader>();
  const int64_t clock_ms = world_.scenario().faults.leader_clock_ms;
  leader_->clock_ms = chance_.Between(-clock_ms, clock_ms);
  actuation_.Forget();
  fleet_.Restart(kept_);
  problem_.turn = {};
  problem_.deleting.clear();
  waits_until_ms_ = -1;
  changed_ = true;
}

void TestedLoop::KeepState() {
  const SimFaults& faults = world_.scenario().faults;
  if (faults.leader_ends == 0 && faults.leader_ends_acting == 0) return;
  if (!fleet_.changed() || chance_.Chance(faults.failed_state_write)) return;
  if (world_.api_down_since_ms() >= 0) return;
  kept_ = fleet_.Bytes();
}

// --- what is found out -------------------------------------------------------------------------------------

// True: something was done.
bool TestedLoop::Decide(WorkBudget* budget) {
  TakeProgress();
  LookAtFleet();
  const bool gives_up = std::any_of(
      view_->groups.begin(), view_->groups.end(),
      [](const FleetGroupView& view) { return !view.delete_failed.empty() || !view.delete_late.empty(); });
  if (!GiveUp()) return true;
  WritePending();
  WriteBatch();
  TellProgress();
  problem_.drain.now_s = NowS();
  const BrakeOptions brakes;
  problem_.drain.doubt = WhatIsNotKnown(seen_.state().objects(), brakes,
                                        NowS() - (world_.now_ms() - seen_.heard_ms()) / 1000, NowS());
  problem_.drain.unhealthy = WhatIsUnhealthy(seen_.state(), brakes);
  plan_ = PlanLoop(problem_, {&leader_->slack, &leader_->drain}, seen_.snapshot(), budget);
  problem_.turn = plan_.next_turn;
  NoteBatch();
  if (!Grow() || !Release() || !Shrink()) return true;
  // The planner tells its state only as long as the cluster is the one that it has planned for.
  if (problem_.decisions.scale_down) leader_->drain_state = leader_->drain.state();
  KeepState();
  NoteNextTime();
  const bool starts = std::any_of(plan_.scale_down.remove.begin(), plan_.scale_down.remove.end(),
                                  [](const DrainRemoval& removal) { return removal.start; }) &&
                      !fleet_.cools_down();
  // What vanished is held against the loop before, and what was left for want of time comes next.
  const bool goes_on = plan_.scale_down.brake != DrainBrake::kNone || plan_.scale_down.skipped > 0;
  return gives_up || starts || goes_on || !plan_.growth.empty() || !abandoned_.empty();
}

void TestedLoop::NoteBatch() {
  waits_until_ms_ = -1;
  if (!plan_.batch_wait_ms.has_value()) {
    leader_->batch_since_ms = -1;
    return;
  }
  waits_until_ms_ = world_.now_ms() + *plan_.batch_wait_ms;
  RunAgainIn(*plan_.batch_wait_ms);
  if (leader_->batch_since_ms < 0) leader_->batch_since_ms = world_.now_ms();
}

void TestedLoop::LookAtFleet() {
  FindLeaving();
  std::vector<bool> shrinking(problem_.groups.size());
  for (const int32_t node : actuation_.under_way()) {
    shrinking[static_cast<size_t>(world_.node(node).group)] = true;
  }
  view_ = &fleet_.Look(leaving_, shrinking, NowMs());
  PlanWithNodes();
  seen_.Show();
  problem_.drain.group_of.assign(seen_.slot_end(), -1);
  for (int32_t i = 0; i < static_cast<int32_t>(problem_.groups.size()); ++i) {
    CountGroup(i, view_->groups[static_cast<size_t>(i)]);
  }
}

void TestedLoop::FindLeaving() {
  leaving_.assign(static_cast<size_t>(world_.node_end()), false);
  abandoned_.clear();
  for (const int32_t node : seen_.registered()) {
    if (!seen_.Tainted(node) && !actuation_.Acknowledged(node)) continue;
    if (actuation_.IsGoing(node, fleet_.Lists(world_.node(node).machine))) {
      leaving_[static_cast<size_t>(node)] = true;
    } else if (!actuation_.UnderWay(node)) {
      abandoned_.push_back(node);
    }
  }
  std::sort(abandoned_.begin(), abandoned_.end());
}

void TestedLoop::PlanWithNodes() {
  std::vector<bool> not_started(leaving_.size());
  for (int32_t i = 0; i < static_cast<int32_t>(view_->groups.size()); ++i) {
    for (const int32_t position : view_->groups[static_cast<size_t>(i)].not_started) {
      not_started[static_cast<size_t>(fleet_.NodeAt(i, position))] = true;
    }
  }
  for (const int32_t position : view_->other_not_started) {
    not_started[static_cast<size_t>(fleet_.OtherNodeAt(position))] = true;
  }
  for (const int32_t node : seen_.registered()) {
    using How = ObservedCluster::AsPlanned;
    const bool abandoned = std::binary_search(abandoned_.begin(), abandoned_.end(), node);
    seen_.PlanWith(node, abandoned                                ? How::kAbandoned
                         : not_started[static_cast<size_t>(node)] ? How::kNotStarted
                                                                  : How::kAsItIs);
  }
}

void TestedLoop::CountGroup(int32_t group, const FleetGroupView& view) {
  LoopGroup& of = problem_.groups[static_cast<size_t>(group)];
  int64_t started = 0;
  for (const int32_t position : view.started) {
    const std::optional<Slot> slot = seen_.SlotOf(fleet_.NodeAt(group, position));
    if (!slot.has_value()) continue;
    problem_.drain.group_of[IndexOf(*slot)] = group;
    ++started;
  }
  of.drain.target = started + view.starting + view.coming;
  const int64_t there = std::max(fleet_.target(group), view.live);
  of.max_nodes = of.drain.target + std::max<int64_t>(0, world_.group(group).max_nodes - there);
  of.blocked_reason = view.back_off.has_value() ? "back-off" : view_->unhealthy;
}

void TestedLoop::WritePending() {
  problem_.pending.clear();
  asked_about_.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(pods_.size()); ++i) {
    const int64_t count = seen_.unschedulable(i);
    if (count == 0) continue;
    problem_.pending.push_back({pods_[static_cast<size_t>(i)], count});
    asked_about_.push_back(i);
  }
}

void TestedLoop::WriteBatch() {
  const SimSettings& settings = world_.scenario().settings;
  GrowthBatch& batch = problem_.batch;
  // The pods that began it may be gone, and others come in their place for ever.
  const bool over =
      leader_->batch_since_ms >= 0 && world_.now_ms() - leader_->batch_since_ms >= settings.batch_max_ms;
  batch.idle_ms = over ? 0 : settings.batch_idle_ms;
  batch.since_growth_ms.reset();
  if (leader_->grown_ms >= 0) batch.since_growth_ms = world_.now_ms() - leader_->grown_ms;
  batch.ages.clear();
  for (const int32_t workload : asked_about_) {
    const auto [first_ms, last_ms] = seen_.CameMs(workload);
    const int64_t last_age_ms = std::max<int64_t>(0, world_.now_ms() - last_ms);
    batch.ages.push_back({std::max(last_age_ms, world_.now_ms() - first_ms), last_age_ms});
  }
}

// As the engine does with the progress that the shim reports.
void TestedLoop::StartToGo(const std::string& name, DrainState* state) const {
  const std::optional<Slot> slot = seen_.state().Find(name);
  if (!slot.has_value()) return;
  DeletingNode deleting = {name, seen_.state().traits(*slot).uid, NowS(), /*drain=*/true, {}};
  const auto found = std::find_if(state->unneeded.begin(), state->unneeded.end(),
                                  [&](const UnneededNode& node) { return node.node == name; });
  if (found != state->unneeded.end()) {
    deleting.risky = found->risky;
    deleting.left_out = found->start;
    deleting.drain = std::any_of(found->hints.begin(), found->hints.end(), [](const DestinationHint& hint) {
      return !hint.pod.starts_with("placeholder/");
    });
    deleting.hints = std::move(found->hints);
    state->unneeded.erase(found);
  }
  state->deleting.push_back(std::move(deleting));
}

void TestedLoop::TakeProgress() {
  progress_ = actuation_.TakeProgress();
  for (const int32_t node : progress_.removed) fleet_.NoteRemoval(world_.node(node).machine);
}

void TestedLoop::TellProgress() {
  Actuation::Progress progress = std::move(progress_);
  // The planner may still count them among those that go.
  progress.failed.insert(progress.failed.end(), abandoned_.begin(), abandoned_.end());
  DrainState& state = leader_->drain_state;
  for (const DeletingNode& deleting : state.deleting) {
    const std::optional<Slot> slot = seen_.state().Find(deleting.node);
    const int32_t node = slot.has_value() ? seen_.NodeIn(*slot) : -1;
    // The cloud has said that it deletes it, and still lists it: it holds no place any more.
    if (node >= 0 && actuation_.Acknowledged(node) &&
        world_.now_ms() - world_.node(node).asked_ms >= kDeletionPatienceMs) {
      progress.failed.push_back(node);
    }
  }
  problem_.deleting = state.deleting;
  if (progress.started.empty() && progress.failed.empty() && progress.evicted.empty()) return;
  for (const int32_t node : progress.started) StartToGo(seen_.NodeName(node), &state);
  for (const int32_t node : progress.failed) {
    const std::string name = seen_.NodeName(node);
    std::erase_if(state.deleting, [&](const DeletingNode& deleting) { return deleting.node == name; });
  }
  for (const Actuation::EvictedPod& evicted : progress.evicted) {
    leader_->evicted_s = kSimEpochS + (evicted.at_ms + leader_->clock_ms) / 1000;
    const std::string name = ObservedCluster::PodName(evicted.pod);
    state.recent_evictions.push_back({seen_.EvictedShape(evicted.pod), name, name,
                                      seen_.NodeName(world_.pod(evicted.pod).node), leader_->evicted_s,
                                      problem_.names});
  }
  problem_.deleting = state.deleting;
  leader_->drain.ReplaceState(std::move(state));
}

}  // namespace loadline
