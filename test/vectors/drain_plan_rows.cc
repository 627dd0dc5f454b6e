// drain_planner.jsonl, drain_removal.jsonl and drain_hints.jsonl.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/drain_trial.h"
#include "core/drain/node_reason.h"
#include "core/drain/planner.h"
#include "core/fit/fit_search.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"
#include "test/vectors/answers.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

constexpr int64_t kRowTime = 1'800'000'000;

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

FitPod ReadPlanPod(const Json& in) {
  FitPod pod;
  pod.name = in.at("name");
  pod.requests = {{"cpu", in.at("mcpu")}, {"memory", in.value("memory", int64_t{0})}};
  pod.traits.priority = in.value("priority", 0);
  pod.traits.ready = true;
  const Json labels = in.value("labels", Json::object());
  for (const auto& [key, value] : labels.items()) pod.labels.push_back({key, value});
  const std::string kind = in.value("kind", "replicated");
  pod.traits.static_pod = kind == "static";
  pod.traits.mirror = kind == "mirror";
  if (kind == "daemonset") pod.traits.owner = PodOwner{"DaemonSet", "apps/v1", "ds", "ds"};
  if (const Json owner = in.value("owner", Json()); owner.is_string()) {
    pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", owner, "uid"};
  }
  return pod;
}

// The constraint of a row, for the pods that carry it.
void AddSpread(const Json& constraint, FitPod* pod) {
  SpreadConstraint spread{.max_skew = constraint.at("max_skew"),
                          .topology_key = constraint.at("topology_key"),
                          .honor_taints = constraint.value("node_taints_policy", "Ignore") == "Honor"};
  if (const Json& least = constraint.at("min_domains"); !least.is_null()) spread.min_domains = least;
  for (const auto& [key, value] : constraint.at("selector").items()) spread.selector = Select(key, value);
  pod->rules.has_spread = true;
  pod->rules.spread.push_back(std::move(spread));
}

void AddReplicaSet(const std::string& name, int64_t target, int64_t current, ClusterState* state) {
  ClusterObject object{.key = {ObjectKind::kReplicaSet, "default", name}};
  object.content = Workload{.uid = "uid", .target_replicas = target, .current_replicas = current};
  state->objects().Set(std::move(object));
}

// All nodes are in one group, and as full as they may be.
DrainProblem ProblemOf(const FitCluster& cluster) {
  DrainProblem problem;
  problem.cluster = &cluster.state();
  problem.groups = {
      {.name = "group", .target = cluster.state().node_count() + 1, .utilization_threshold = 1e9}};
  problem.group_of = AllInFirstGroup(cluster.state().slot_end());
  problem.now_s = kRowTime;
  return problem;
}

// --- drain_planner ---------------------------------------------------------------------------------------

void Plan(const Json& in, Answers* answers) {
  FitCluster cluster;
  DrainState state;
  for (const Json& node : in.at("nodes")) {
    FitNode entry{
        .name = node.at("name"),
        .allocatable = {
            {"cpu", node.at("mcpu")}, {"memory", node.at("memory")}, {"pods", node.at("max_pods")}}};
    for (const Json& name : in.at("to_be_deleted")) {
      if (name != entry.name) continue;
      entry.taints = {{kToBeDeletedTaint, absl::StrCat(kRowTime), "NoSchedule"}};
    }
    std::vector<FitPod> pods;
    for (const Json& pod : in.at("pods")) {
      if (pod.at("node") == entry.name) pods.push_back(ReadPlanPod(pod));
    }
    cluster.Add(entry, pods);
  }
  for (const Json& pod : in.at("recent_evictions")) {
    state.recent_evictions.push_back({.shape = cluster.Shape(ReadPlanPod(pod)),
                                      .name = pod.at("name"),
                                      .node = pod.at("node"),
                                      .at_s = kRowTime,
                                      .names = cluster.names()});
  }
  for (const auto& [name, replicas] : in.at("replicasets").items()) {
    AddReplicaSet(name, replicas.at("spec"), replicas.at("status"), &cluster.state());
  }
  DrainProblem problem = ProblemOf(cluster);
  for (const Json& name : in.at("eligible"))
    problem.walk.push_back(*cluster.state().Find(name.get<std::string>()));
  DrainOptions options;
  options.rules = {.skip_nodes_with_system_pods = false,
                   .skip_nodes_with_local_storage = false,
                   .skip_nodes_with_custom_controller_pods = false};
  WorkBudget budget;
  DrainPlanner planner;
  planner.SetState(std::move(state));
  const DrainPlan& plan = planner.Plan(problem, options, &budget);
  std::vector<std::string> unneeded;
  std::vector<std::string> unremovable;
  for (const DrainRemoval& removal : plan.remove)
    unneeded.push_back(Text(cluster.state().name(removal.slot)));
  for (const DrainKeep& keep : plan.keep) {
    if (keep.reason != NodeReason::kNotEvaluated)
      unremovable.push_back(Text(cluster.state().name(keep.slot)));
  }
  std::sort(unneeded.begin(), unneeded.end());
  answers->Equal("unneeded", unneeded);
  answers->Equal("unremovable", unremovable);
}

// --- drain_removal ---------------------------------------------------------------------------------------

void AddNodes(const Json& in, FitCluster* cluster) {
  for (const auto& [name, node] : in.at("nodes").items()) {
    FitNode entry{.name = name,
                  .allocatable = {{"cpu", node.at("mcpu")}, {"memory", node.at("memory")}, {"pods", 110}}};
    for (const Json& tainted : in.value("tainted_no_schedule", Json::array())) {
      if (tainted == name) entry.taints = {{kToBeDeletedTaint, absl::StrCat(kRowTime), "NoSchedule"}};
    }
    std::vector<FitPod> pods;
    for (const Json& pod : in.at("pods")) {
      if (pod.at("node") != name) continue;
      pods.push_back(ReadPlanPod(pod));
      if (pod.at("spread")) AddSpread(in.at("spread_constraint"), &pods.back());
    }
    cluster->Add(entry, pods);
  }
}

void RemoveNode(const Json& in, Answers* answers) {
  FitCluster cluster;
  AddNodes(in, &cluster);
  AddReplicaSet("rs", 5, 5, &cluster.state());
  const std::optional<Slot> slot = cluster.state().Find(in.at("remove").get<std::string>());
  if (!slot.has_value()) return;  // nothing that could be asked
  DrainProblem problem = ProblemOf(cluster);
  problem.walk = {*slot};
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan& plan = planner.Plan(problem, {}, &budget);
  std::vector<std::string> move;
  for (const DrainRemoval& removal : plan.remove) {
    for (const DrainMove& pod : removal.moves()) {
      move.push_back(Text(cluster.state().pods(removal.slot).name(pod.pod.position())));
    }
  }
  Json reason;
  for (const DrainKeep& keep : plan.keep) {
    if (keep.slot == *slot) reason = Text(Name(keep.reason));
  }
  std::sort(move.begin(), move.end());
  answers->Equal("removable", !plan.remove.empty());
  answers->Equal("move", move);
  answers->Equal("reason", reason);
}

void ScheduleAfterTaint(const Json& in, Answers* answers) {
  FitCluster cluster;
  AddNodes(in, &cluster);
  FitPod pod = ReadPlanPod(in.at("incoming"));
  if (in.at("incoming").at("spread")) AddSpread(in.at("spread_constraint"), &pod);
  Snapshot snapshot(cluster.state());
  const FitOptions options;
  FitSearch search(&snapshot, &options);
  std::vector<NodeIndex> nodes;
  search.AllFits(search.Add(cluster.Incoming(pod)), &nodes);
  std::vector<std::string> names;
  for (const NodeIndex node : nodes) names.push_back(snapshot.name(node));
  answers->Equal("nodes", names);
}

// --- drain_hints -----------------------------------------------------------------------------------------

void Schedule(const Json& in, Answers* answers) {
  FitCluster cluster;
  for (const auto& [name, mcpu] : in.at("nodes").items()) {
    std::vector<FitPod> pods;
    for (const Json& pod : in.at("scheduled")) {
      if (pod.at("node") == name) pods.push_back(ReadPlanPod(pod));
    }
    cluster.Add({.name = name, .allocatable = {{"cpu", mcpu}, {"memory", 1}, {"pods", 110}}}, pods);
  }
  const FitOptions options;
  DrainTrial trial(cluster.state(), &options);
  std::vector<std::string> names;
  for (const Json& pod : in.at("pods")) names.push_back(pod.at("name"));
  std::vector<MovingPod> pods;
  for (size_t i = 0; i < names.size(); ++i) {
    const FitPod pod = ReadPlanPod(in.at("pods").at(i));
    MovingPod& moving = pods.emplace_back();
    moving.kind = trial.KindOf(cluster.Incoming(pod));
    moving.priority = pod.traits.priority;
    moving.name = names[i];
    const Json hint = in.at("hints").value(names[i], Json());
    const std::optional<Slot> slot =
        hint.is_null() ? std::nullopt : cluster.state().Find(hint.get<std::string>());
    if (slot.has_value()) moving.hint = *trial.snapshot().FindSlot(*slot);
  }
  trial.Sort(&pods);
  WorkBudget budget;
  if (in.at("deadline_passed")) budget = WorkBudget(0);
  Json placed = Json::array();
  for (MovingPod& pod : pods) {
    if (trial.Place({&pod, 1}, /*hints_only=*/false, &budget, /*may_stop=*/true).outcome !=
        DrainTrial::Outcome::kPlaced) {
      continue;
    }
    placed.push_back({{"pod", Text(pod.name)}, {"node", trial.snapshot().name(pod.to)}});
  }
  answers->Equal("placed", placed);
}

}  // namespace

void AddDrainPlanHandlers(Handlers* handlers) {
  (*handlers)["plan"] = Plan;
  (*handlers)["remove_node"] = RemoveNode;
  (*handlers)["schedule_after_taint"] = ScheduleAfterTaint;
  (*handlers)["schedule"] = Schedule;
}

}  // namespace loadline::vectors
