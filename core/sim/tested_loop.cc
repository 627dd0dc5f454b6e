#include "core/sim/tested_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "core/drain/brakes.h"
#include "core/drain/drain_progress.h"
#include "core/grow/vain_growth.h"
#include "core/loop/kept.h"
#include "core/loop/loop_timers.h"
#include "core/loop/plan_loop.h"
#include "core/observe/loop_memory_bytes.h"
#include "core/replace/replacement.h"
#include "core/sim/sim_use.h"

namespace loadline {
namespace {

constexpr int64_t kLoopHourMs = 3'600'000;
// The time from the end of a process to the first loop of the next one. Published: the default lease of
// leader election in Kubernetes.
constexpr int64_t kLeaseMs = 15'000;
// The least time between two loops of which the second runs because a removal has ended. Chosen.
constexpr int64_t kBetweenLoopsMs = 2'000;

NodeGroup GroupOf(const SimGroup& group, NodeShape node) {
  NodeGroup of;
  of.name = group.name;
  of.min_nodes = group.min_nodes;
  of.max_nodes = group.max_nodes;
  of.model = NodeModel{std::move(node)};
  of.usd_per_hour = group.usd_per_hour;
  of.priced.spot = group.spot;
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
      view_(world, cloud, seen, actuation),
      options_(ObserveOptionsOf(world->scenario().settings)),
      leader_(std::make_unique<Leader>()),
      chance_(world->scenario().seed, SimPurpose::kLeader) {
  SetUp(*shapes);
}

void TestedLoop::SetUp(const ShapesOf& shapes) {
  const Scenario& scenario = world_.scenario();
  const SimSettings& settings = scenario.settings;
  problem_.drain.cluster = &seen_.state();
  problem_.names = shapes.names();
  problem_.decisions = {.scale_up = true,
                        .slack = settings.slack_percent > 0,
                        .scale_down = settings.scale_down,
                        .replace = settings.replace && settings.scale_down,
                        .downscale_order = settings.downscale_order && settings.scale_down};
  static_cast<ReplacementPolicy&>(problem_.replacement) = settings.replacement;
  problem_.scale_down.tell_nearest = false;  // a simulation tells no reasons
  problem_.scale_down.fit.load_line = SimLoadLine(scenario);
  problem_.scale_down.fit.most_allocated = settings.score == SimScore::kMostAllocated;
  problem_.slack.rate = kWholeRate / 100 * settings.slack_percent;
  problem_.batch.max_ms = settings.batch_max_ms;
  rules_.scale_up_delay_ms = settings.new_pod_scale_up_delay_s * 1000;
  problem_.scale_down.eligibility.utilization_threshold = settings.utilization_threshold;
  problem_.scale_down.eligibility.gpu_utilization_threshold = settings.utilization_threshold;
  problem_.scale_down.deletion.max_scale_down_parallelism = settings.max_scale_down_parallelism;
  problem_.scale_down.deletion.max_drain_parallelism = settings.max_drain_parallelism;
  if (settings.node_budget > 0) problem_.scale_down.deletion.budgets = {{.nodes = settings.node_budget}};
  problem_.scale_down.deletion.timers.unneeded_time_s = settings.unneeded_time_s;
  problem_.scale_down.deletion.timers.unready_time_s = settings.unready_time_s;
  for (const GroupIndex group : scenario.groups.indices()) {
    templates_.push_back(shapes.Node(group, /*devices=*/true));
    problem_.groups.push_back(GroupOf(scenario.groups[group], templates_.back()));
  }
  for (const SimWorkloadIndex workload : scenario.workloads.indices()) {
    pods_.push_back(shapes.Incoming(workload));
    const bool on_each_node = world_.workload(workload).kind == SimWorkloadKind::kDaemon;
    if (on_each_node && !world_.IsExpendable(workload)) problem_.daemons.push_back(pods_.back());
  }
}

void TestedLoop::Start() {
  world_.After(world_.scenario().settings.scan_interval_s * 1000, SimEventKind::kLoop, 0);
  if (world_.scenario().faults.leader_ends > 0) world_.After(kLoopHourMs, SimEventKind::kLeaderHour);
}

// --- when it runs ------------------------------------------------------------------------------------------

bool TestedLoop::MustRun() const {
  return changed_ || acted_ || actuation_.HasProgress() || unwritten_ ||
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
  if (view_.ListMachines()) changed_ = true;
  if (!MustRun()) return false;
  ++loops_;
  // If something cannot be found out, nothing is done, and all of it is looked at the next time.
  if (!view_.listed() || (!seen_.registered().empty() && seen_.pods() == 0)) return true;
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
  actuation_.Forget(leader_->clock_ms);
  if (absl::StatusOr<LoopMemory> memory = DecodeLoopMemory(kept_); memory.ok()) {
    leader_->memory = *std::move(memory);
  }
  view_.Restart();
  unwritten_ = false;
  problem_.turn = {};
  problem_.reserved_nodes.clear();
  problem_.deleting.clear();
  waits_until_ms_ = -1;
  changed_ = true;
}

// Before anything is done: the next process knows of it whatever happens.
void TestedLoop::KeepMemory() {
  const SimFaults& faults = world_.scenario().faults;
  if (faults.leader_ends == 0 && faults.leader_ends_acting == 0) return;
  std::string bytes = EncodeLoopMemory(leader_->memory);
  unwritten_ = bytes != kept_;
  if (!unwritten_ || world_.api_down_since_ms() >= 0 || chance_.Chance(faults.failed_state_write)) return;
  kept_ = std::move(bytes);
  unwritten_ = false;
}

// --- what is found out -------------------------------------------------------------------------------------

// True: something was done, or is remembered otherwise than before.
bool TestedLoop::Decide(WorkBudget* budget) {
  const LoopMemory before = leader_->memory;
  TakeProgress();
  Observe();
  WritePending();
  WriteBatch();
  TellProgress();
  problem_.drain.now_s = NowS();
  const BrakeOptions brakes;
  problem_.drain.doubt = WhatIsNotKnown(seen_.state().objects(), brakes,
                                        NowS() - (world_.now_ms() - seen_.heard_ms()) / 1000, NowS());
  problem_.drain.unhealthy = WhatIsUnhealthy(seen_.state(), brakes);
  UseRememberedMoves(leader_->memory, options_.fleet.after_add_ms, NowMs(), &problem_.replacement);
  problem_.downscale_order = leader_->memory.downscale_order;
  UseKeptSlack(leader_->memory, problem_.decisions, &leader_->slack);
  HoldVainGrowth(options_.fleet.back_off, NowMs(), seen_.snapshot(), budget, &problem_, &leader_->memory);
  plan_ = PlanLoop(problem_, {&leader_->slack, &leader_->drain, &leader_->consolidator}, seen_.snapshot(),
                   budget);
  NoteInLog(plan_.replacement, world_.now_ms(), &moves_);
  problem_.turn = plan_.next_turn;
  problem_.reserved_nodes = plan_.next_reserved_nodes;
  WaitForPods();
  NoteBatch(plan_, NowMs(), &leader_->memory);
  NoteTimers(plan_, seen_.state(), &leader_->memory);
  NoteMoves(plan_, &leader_->memory);
  NoteGrowth(options_.fleet.back_off, problem_, plan_, NowMs(), &leader_->memory);
  NoteDownscaleOrder(plan_, seen_.state(), &leader_->memory);
  NoteKept(problem_.groups, problem_.sized, plan_.sizes, problem_.decisions.slack ? &leader_->slack : nullptr,
           &leader_->memory);
  StateDeletionCosts();
  const std::vector<LoopAction> actions =
      ActionsOf(view_.observation(), findings_, plan_, seen_.state(), options_, NowMs(), &leader_->memory);
  view_.Answered();
  KeepMemory();
  // The planner tells its state only as long as the cluster is the one that it has planned for.
  if (problem_.decisions.scale_down) leader_->drain_state = leader_->drain.state();
  if (!Act(actions)) return true;
  NoteNextTime();
  // The next loop compares with this one what vanished, and first looks at what was left for want of time.
  const bool continues = plan_.scale_down.brake != DrainBrake::kNone || plan_.scale_down.skipped > 0 ||
                         plan_.replacement.continues;
  return continues || !actions.empty() || !findings_.marked.abandoned.empty() || leader_->memory != before;
}

void TestedLoop::StateDeletionCosts() {
  if (!problem_.decisions.downscale_order) return;
  for (const SimNodeIndex node : world_.nodes()) world_.SetDeletionCost(node, 0);
  for (const NodeDeletionCost& of : plan_.deletion_costs)
    world_.SetDeletionCost(*seen_.NodeIn(of.slot), of.cost);
}

void TestedLoop::WaitForPods() {
  waits_until_ms_ = -1;
  if (!plan_.batch_wait_ms.has_value()) return;
  waits_until_ms_ = world_.now_ms() + *plan_.batch_wait_ms;
  RunAgainIn(*plan_.batch_wait_ms);
}

void TestedLoop::Observe() {
  seen_.Show();
  findings_ = ObserveLoop(seen_.state(), view_.Observe(), std::exchange(leader_->outcomes, {}), options_,
                          NowMs(), &leader_->memory);
  seen_.ShowAs(NodesAsPlanned(seen_.state(), findings_));
  for (const GroupIndex group : templates_.indices())
    problem_.groups[group].model = NodeModel{templates_[group]};
  ApplyFindings(findings_, StrongVector<GroupIndex, bool>(templates_.size(), true), seen_.state(), &problem_);
}

void TestedLoop::WritePending() {
  problem_.pending.clear();
  asked_about_.clear();
  old_enough_ms_.reset();
  for (const SimWorkloadIndex workload : pods_.indices()) WritePending(workload);
}

// The youngest pods come last: those that are too young leave the others.
void TestedLoop::WritePending(SimWorkloadIndex workload) {
  const absl::btree_set<SimPodIndex>& pods = seen_.unschedulable(workload);
  const IncomingPod& pod = pods_[workload];
  int64_t count = static_cast<int64_t>(pods.size());
  for (auto last = pods.rbegin(); last != pods.rend(); ++last, --count) {
    const int64_t created_ms = kSimEpochS * 1000 + seen_.CreatedMs(*last);
    const PendingFacts facts{.unschedulable = true,
                             .youngest_age_ms = std::max<int64_t>(0, NowMs() - created_ms)};
    const std::optional<NotWaiting> why = WhyNotWaiting(TraitsOf(pod.shape), facts, rules_);
    if (why == NotWaiting::kTooYoung) {
      const int64_t old_ms = created_ms + rules_.scale_up_delay_ms;
      old_enough_ms_ = std::min(old_enough_ms_.value_or(old_ms), old_ms);
      continue;
    }
    if (why.has_value()) return;
    problem_.pending.push_back({pod, count});
    asked_about_.emplace_back(*pods.begin(), *last);
    return;
  }
}

void TestedLoop::WriteBatch() {
  GrowthBatch& batch = problem_.batch;
  batch.idle_ms = world_.scenario().settings.batch_idle_ms;
  batch.since_growth_ms.reset();
  BeginBatch(leader_->memory, NowMs(), &batch);
  batch.ages.clear();
  for (const auto& [first, last] : asked_about_) {
    const int64_t last_age_ms = std::max<int64_t>(0, world_.now_ms() - seen_.CameMs(last));
    batch.ages.push_back({std::max(last_age_ms, world_.now_ms() - seen_.CameMs(first)), last_age_ms});
  }
}

void TestedLoop::TakeProgress() {
  progress_ = actuation_.TakeProgress();
  for (const SimNodeIndex node : progress_.removed) {
    const SimMachineIndex machine = world_.node(node).machine;
    leader_->outcomes.removals.push_back(
        {world_.group(world_.machine(machine).group).name, LoopView::MachineId(machine)});
    leader_->outcomes.acknowledged.push_back(ObservedCluster::NodeUid(node));
  }
}

// Applies progress in the same way as the engine does for its clients.
void TestedLoop::TellProgress() {
  const Actuation::Progress progress = std::exchange(progress_, {});
  const ClusterState& cluster = seen_.state();
  DrainState& state = leader_->drain_state;
  bool tells = !progress.evicted.empty();
  if (state.at_s < 0) {
    const TimerOptions& timers = problem_.scale_down.deletion.timers;
    state = StateFromTimers(cluster, timers, NowS(),
                            KnownTimers(leader_->memory, cluster, NowS(), timers.candidate_ttl_s));
    tells = true;
  }
  std::vector<std::string> failed;
  for (const SimNodeIndex node : progress.failed) failed.push_back(seen_.NodeName(node));
  // The planner may still count them among those that go.
  for (const std::vector<NodeMark>* const marks : {&findings_.marked.abandoned, &findings_.marked.stuck}) {
    for (const NodeMark& mark : *marks) failed.emplace_back(cluster.name(mark.slot));
  }
  for (const SimNodeIndex node : progress.started) {
    const std::string name = seen_.NodeName(node);
    tells = tells || !IsDeleting(state, name);
    NoteStarted(name, NowS(), cluster, &state);
  }
  for (const std::string& name : failed) {
    tells = tells || IsDeleting(state, name);
    NoteFailed(name, &state);
  }
  for (const Actuation::EvictedPod& evicted : progress.evicted) {
    leader_->evicted_s = kSimEpochS + (evicted.at_ms + leader_->clock_ms) / 1000;
    const std::string name = ObservedCluster::PodName(evicted.pod);
    state.recent_evictions.push_back({seen_.EvictedShape(evicted.pod), name, name,
                                      seen_.NodeName(*world_.pod(evicted.pod).node), leader_->evicted_s,
                                      problem_.names});
  }
  problem_.deleting = state.deleting;
  if (tells) leader_->drain.ReplaceState(std::move(state));
}

}  // namespace loadline
