#include "core/sim/tested_loop.h"

#include <algorithm>
#include <utility>

#include "core/drain/brakes.h"

namespace loadline {
namespace {

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

TestedLoop::TestedLoop(World* world, Cloud* cloud, ObservedCluster* seen, Actuation* actuation,
                       const ShapesOf* shapes)
    : world_(*world),
      cloud_(*cloud),
      seen_(*seen),
      actuation_(*actuation),
      fleet_(world->scenario()),
      late_(world->scenario().groups.size()) {
  SetUp(*shapes);
}

void TestedLoop::SetUp(const ShapesOf& shapes) {
  const Scenario& scenario = world_.scenario();
  const SimSettings& settings = scenario.settings;
  problem_.drain.cluster = &seen_.state();
  problem_.names = shapes.names();
  problem_.decisions = {.scale_up = true, .slack = false, .scale_down = settings.scale_down};
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

bool TestedLoop::MustRun(bool changed) const {
  return changed || acted_ || actuation_.HasProgress() || cloud_version_ != cloud_.version() ||
         world_.scenario().settings.run_every_loop || (next_ms_.has_value() && world_.now_ms() >= *next_ms_);
}

bool TestedLoop::Run(WorkBudget* budget) {
  const bool changed = seen_.CatchUp();
  if (!MustRun(changed)) return false;
  ++loops_;
  cloud_version_ = cloud_.version();
  CountGroups();
  WritePending();
  TellProgress();
  problem_.drain.now_s = world_.now_s();
  const BrakeOptions brakes;
  problem_.drain.doubt = WhatIsNotKnown(seen_.state().objects(), brakes, world_.now_s(), world_.now_s());
  problem_.drain.unhealthy = WhatIsUnhealthy(seen_.state(), brakes);
  plan_ = PlanLoop(problem_, {&slack_, &drain_}, seen_.snapshot(), budget);
  problem_.turn = plan_.next_turn;
  acted_ = Act();
  // The planner tells its state only as long as the cluster is the one that it has planned for.
  if (actuation_.busy() || actuation_.HasProgress()) state_ = drain_.state();
  NoteNextTime();
  return true;
}

void TestedLoop::CountGroups() {
  std::vector<int32_t>& group_of = problem_.drain.group_of;
  group_of.assign(seen_.slot_end(), -1);
  for (size_t slot = 0; slot < group_of.size(); ++slot) {
    const int32_t node = seen_.NodeIn(Slot{static_cast<int32_t>(slot)});
    if (node >= 0) group_of[slot] = world_.node(node).group;
  }
  for (int32_t i = 0; i < static_cast<int32_t>(problem_.groups.size()); ++i) {
    LoopGroup& group = problem_.groups[static_cast<size_t>(i)];
    GroupFleet fleet = fleet_.Count(i, world_, cloud_, seen_);
    // Nodes that are being deleted are still there, and no longer in the cloud's target.
    group.drain.target = fleet.registered + fleet.on_the_way;
    // The cloud counts machines that nobody expects anything of.
    const int64_t useless = fleet.lost + static_cast<int64_t>(fleet.late.size());
    group.max_nodes = std::max<int64_t>(0, world_.group(i).max_nodes - useless);
    group.blocked_reason = fleet_.BacksOff(i, world_.now_ms()) ? "back-off" : "";
    late_[static_cast<size_t>(i)] = std::move(fleet.late);
  }
}

void TestedLoop::WritePending() {
  problem_.pending.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(pods_.size()); ++i) {
    if (const int64_t count = seen_.unschedulable(i); count > 0) {
      problem_.pending.push_back({pods_[static_cast<size_t>(i)], count});
    }
  }
}

// As the engine does with the progress that the shim reports.
void TestedLoop::StartToGo(const std::string& name, DrainState* state) const {
  const std::optional<Slot> slot = seen_.state().Find(name);
  if (!slot.has_value()) return;
  DeletingNode deleting = {name, seen_.state().traits(*slot).uid, world_.now_s(), /*drain=*/true, {}};
  const auto found = std::find_if(state->unneeded.begin(), state->unneeded.end(),
                                  [&](const UnneededNode& node) { return node.node == name; });
  if (found != state->unneeded.end()) {
    deleting.risky = found->risky;
    deleting.left_out = found->start;
    deleting.drain = !found->hints.empty();
    deleting.hints = std::move(found->hints);
    state->unneeded.erase(found);
  }
  state->deleting.push_back(std::move(deleting));
}

void TestedLoop::TellProgress() {
  if (!actuation_.HasProgress()) return;
  const Actuation::Progress progress = actuation_.TakeProgress();
  DrainState state = std::move(state_);
  for (const int32_t node : progress.started) StartToGo(seen_.NodeName(node), &state);
  for (const int32_t node : progress.failed) {
    const std::string name = seen_.NodeName(node);
    std::erase_if(state.deleting, [&](const DeletingNode& deleting) { return deleting.node == name; });
  }
  for (const Actuation::EvictedPod& evicted : progress.evicted) {
    evicted_s_ = evicted.at_s;
    const std::string name = ObservedCluster::PodName(evicted.pod);
    state.recent_evictions.push_back({seen_.EvictedShape(evicted.pod), name, name,
                                      seen_.NodeName(world_.pod(evicted.pod).node), evicted.at_s,
                                      problem_.names});
  }
  problem_.deleting = state.deleting;
  drain_.SetState(std::move(state));
}

bool TestedLoop::Act() {
  bool acted = false;
  for (const LoopGrowth& growth : plan_.growth) {
    if (growth.nodes() <= 0) continue;
    acted = true;
    const CloudAnswer answer = actuation_.Grow(growth.group, growth.nodes());
    if (answer == CloudAnswer::kNoCapacity || answer == CloudAnswer::kRefused) {
      fleet_.BackOff(growth.group, world_.now_ms());
    }
  }
  if (DeleteLate()) acted = true;
  for (const DrainRemoval& removal : plan_.scale_down.remove) {
    if (!removal.start) continue;
    acted = true;
    actuation_.Start(seen_.NodeIn(removal.slot), static_cast<int64_t>(removal.moves().size()));
  }
  return acted;
}

// At most as many in one loop as scale-down may delete, and never below the minimum of the group.
bool TestedLoop::DeleteLate() {
  int64_t left = world_.scenario().settings.max_scale_down_parallelism;
  bool acted = false;
  for (int32_t group = 0; group < static_cast<int32_t>(late_.size()); ++group) {
    for (const int32_t machine : late_[static_cast<size_t>(group)]) {
      if (left == 0 || cloud_.target(group) <= world_.group(group).min_nodes) break;
      --left;
      acted = true;
      actuation_.DeleteLate(machine);
      fleet_.BackOff(group, world_.now_ms());
    }
  }
  return acted;
}

// When the answer may become another one although nothing changes.
void TestedLoop::NoteNextTime() {
  next_ms_ = fleet_.TakeNextTime();
  const auto note = [&](int64_t at_s) {
    const int64_t at_ms = (at_s - kSimEpochS) * 1000;
    if (at_ms > world_.now_ms()) next_ms_ = std::min(next_ms_.value_or(at_ms), at_ms);
  };
  for (const DrainRemoval& removal : plan_.scale_down.remove) note(removal.ready_at_s);
  note(evicted_s_ + problem_.scale_down.recent_eviction_s);  // until then replacements have their places
}

}  // namespace loadline
