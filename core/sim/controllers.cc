#include "core/sim/controllers.h"

#include <algorithm>

namespace loadline {
namespace {

// The time from a change until a controller has reacted to it. Chosen: a work queue that is nearly empty.
constexpr int64_t kReconcileDelayMs = 200;

bool RunsJobs(const SimWorkload& workload) {
  return workload.kind == SimWorkloadKind::kBatch || workload.kind == SimWorkloadKind::kTrace;
}

}  // namespace

Controllers::Controllers(World* world)
    : world_(*world),
      downscale_(world->scenario().seed, SimPurpose::kDownscale),
      batch_(world->scenario().seed, SimPurpose::kBatch),
      next_arrival_(world->scenario().workloads.size(), 0) {}

void Controllers::Start() {
  const StrongVector<SimWorkloadIndex, SimWorkload>& workloads = world_.scenario().workloads;
  for (const SimWorkloadIndex i : workloads.indices()) {
    const SimWorkload& workload = workloads[i];
    if (workload.kind == SimWorkloadKind::kDaemon) daemons_.push_back(i);
    if (workload.kind == SimWorkloadKind::kBatch)
      world_.After(workload.first_s * 1000, SimEventKind::kWave, i);
    if (workload.kind == SimWorkloadKind::kTrace && !workload.arrivals.empty()) {
      world_.After(workload.arrivals.front().at_s * 1000, SimEventKind::kWave, i);
    }
  }
  FollowLoad();
}

void Controllers::Wake(SimWorkloadIndex workload) {
  SimReplicas& replicas = world_.replicas(workload);
  if (replicas.reconciling) return;
  replicas.reconciling = true;
  world_.After(kReconcileDelayMs, SimEventKind::kReconcile, workload);
}

void Controllers::PodChanged(SimPodIndex pod) {
  const SimPod& of = world_.pod(pod);
  const SimWorkload& workload = world_.workload(of.workload);
  if (workload.kind == SimWorkloadKind::kDaemon) return;
  // A new pod, one with a node, and one that is starting call for nothing.
  if (of.phase == SimPodPhase::kWaiting || of.phase == SimPodPhase::kStarting) return;
  if (of.phase == SimPodPhase::kRunning && RunsJobs(workload)) {
    world_.After(batch_.Between(workload.run_s_min, workload.run_s_max) * 1000, SimEventKind::kPodFinished,
                 pod);
    return;
  }
  Wake(of.workload);
}

void Controllers::NodeChanged(SimNodeIndex node) {
  if (world_.node(node).present) RunDaemonsOn(node);
}

void Controllers::WorkloadChanged(SimWorkloadIndex workload) {
  if (world_.workload(workload).kind != SimWorkloadKind::kDaemon) Wake(workload);
}

void Controllers::RunDaemonsOn(SimNodeIndex node) {
  const SimNode& of = world_.node(node);
  if (of.tainted || of.pods.size() >= daemons_.size()) return;
  for (const SimWorkloadIndex workload : daemons_) {
    const std::string& group = world_.workload(workload).group;
    if (!group.empty() && group != world_.group(of.group).name) continue;
    const bool runs = std::any_of(of.pods.begin(), of.pods.end(),
                                  [&](SimPodIndex pod) { return world_.pod(pod).workload == workload; });
    if (!runs) world_.Bind(world_.CreatePod(workload), node);
  }
}

void Controllers::StartRollouts(int64_t from_s, int64_t to_s) {
  const StrongVector<SimWorkloadIndex, SimWorkload>& workloads = world_.scenario().workloads;
  for (const SimWorkloadIndex i : workloads.indices()) {
    const SimWorkload& workload = workloads[i];
    if (workload.rollout_every_s <= 0 || workload.kind != SimWorkloadKind::kDeployment) continue;
    if (from_s / workload.rollout_every_s != to_s / workload.rollout_every_s) world_.NextRevision(i);
  }
}

void Controllers::FollowLoad() {
  const StrongVector<SimWorkloadIndex, SimWorkload>& workloads = world_.scenario().workloads;
  const int64_t at_s = world_.now_ms() / 1000;
  for (const SimWorkloadIndex i : workloads.indices()) {
    const SimWorkload& workload = workloads[i];
    if (workload.kind == SimWorkloadKind::kDeployment) world_.SetWanted(i, WantedReplicas(workload, at_s));
  }
  if (followed_s_ >= 0) StartRollouts(followed_s_, at_s);
  followed_s_ = at_s;
  world_.After(world_.scenario().load_step_s * 1000, SimEventKind::kLoadStep);
}

void Controllers::StartWave(SimWorkloadIndex workload) {
  const SimWorkload& of = world_.workload(workload);
  const int64_t wanted = world_.replicas(workload).wanted;
  if (of.kind == SimWorkloadKind::kBatch) {
    world_.SetWanted(workload, wanted + of.replicas);
    world_.After(of.every_s * 1000, SimEventKind::kWave, workload);
    return;
  }
  size_t& next = next_arrival_[workload];
  world_.SetWanted(workload, wanted + of.arrivals[next].count);
  if (++next == of.arrivals.size()) return;
  const int64_t at_ms = of.arrivals[next].at_s * 1000;
  world_.After(std::max<int64_t>(0, at_ms - world_.now_ms()), SimEventKind::kWave, workload);
}

void Controllers::FinishPod(SimPodIndex pod) {
  const SimPod& of = world_.pod(pod);
  if (of.phase != SimPodPhase::kRunning) return;
  const SimWorkloadIndex workload = of.workload;
  world_.SetWanted(workload, world_.replicas(workload).wanted - 1);
  world_.Finish(pod);
}

void Controllers::Reconcile(SimWorkloadIndex workload) {
  SimReplicas& has = world_.replicas(workload);
  has.reconciling = false;
  if (world_.workload(workload).kind == SimWorkloadKind::kDeployment && has.revision > 0) {
    const int64_t old = std::count_if(has.alive.begin(), has.alive.end(), [&](SimPodIndex pod) {
      return world_.pod(pod).revision < has.revision;
    });
    if (old > 0) {
      Roll(workload, old);
      return;
    }
  }
  ScaleTo(workload, has.wanted);
}

void Controllers::ScaleTo(SimWorkloadIndex workload, int64_t wanted) {
  SimReplicas& has = world_.replicas(workload);
  while (static_cast<int64_t>(has.alive.size()) < wanted) world_.CreatePod(workload);
  while (static_cast<int64_t>(has.alive.size()) > wanted) world_.Terminate(PodToGo(workload));
}

SimPodIndex Controllers::PodToGo(SimWorkloadIndex workload) {
  const StrongVector<SimPlace, SimPodIndex>& alive = world_.replicas(workload).alive;
  const auto waits =
      world_.waiting() == 0 ? alive.end() : std::find_if(alive.begin(), alive.end(), [&](SimPodIndex pod) {
        return !world_.pod(pod).node.has_value();
      });
  if (waits != alive.end()) return *waits;
  if (world_.scenario().settings.downscale_order) {
    const auto cost_of = [&](SimPodIndex pod) { return world_.node(*world_.pod(pod).node).deletion_cost; };
    const auto cheapest = std::min_element(
        alive.begin(), alive.end(), [&](SimPodIndex a, SimPodIndex b) { return cost_of(a) < cost_of(b); });
    if (cost_of(*cheapest) < 0) return *cheapest;
  }
  return alive[static_cast<SimPlace>(downscale_.Between(0, static_cast<int64_t>(alive.size()) - 1))];
}

void Controllers::Roll(SimWorkloadIndex workload, int64_t old) {
  SimReplicas& has = world_.replicas(workload);
  const int64_t wanted = has.wanted;
  const int64_t surge = (wanted * world_.workload(workload).surge_percent + 99) / 100;
  const int64_t all = static_cast<int64_t>(has.alive.size());
  const int64_t fresh = all - old;
  const int64_t create = std::min(wanted - fresh, wanted + std::max<int64_t>(1, surge) - all);
  for (int64_t i = 0; i < create; ++i) world_.CreatePod(workload);
  // Old ones that are not ready go first: they are no loss.
  int64_t spare = has.ready - wanted;
  std::vector<SimPodIndex> going;
  for (const SimPodIndex pod : has.alive) {
    if (world_.pod(pod).revision == has.revision) continue;
    const bool ready = world_.pod(pod).phase == SimPodPhase::kRunning;
    if (ready && spare-- <= 0) continue;
    going.push_back(pod);
  }
  for (const SimPodIndex pod : going) world_.Terminate(pod);
}

}  // namespace loadline
