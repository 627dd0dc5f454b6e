// drain_budgets.jsonl, drain_lists.jsonl and drain_select.jsonl: which nodes go now, and the timers and
// replica counts that decide it.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/deletion.h"
#include "core/drain/eligibility.h"
#include "core/drain/node_reason.h"
#include "test/vectors/drain_cluster.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

// Groups, candidates and limits of a row, put together as the product asks for them.
class Question {
 public:
  GroupIndex AddGroup(const std::string& name, int64_t min, int64_t target, bool atomic) {
    const GroupIndex group = groups_.end_index();
    groups_.push_back({.name = name, .min_nodes = min, .target = target, .atomic = atomic});
    return group;
  }
  void AddNodes(std::optional<GroupIndex> group, int64_t count, const NodeOffer& size = {},
                bool being_deleted = false) {
    for (int64_t i = 0; i < count; ++i) nodes_.push_back({group, size, being_deleted});
  }
  void AddCandidate(const std::string& name, DeletionCandidate candidate) {
    names_.push_back(name);
    candidates_.push_back(candidate);
  }

  void Ask(const DeletionsUnderWay& under_way, const DeletionOptions& options,
           const ClusterMinimum& minimum = {}) {
    SizeLimits limits(groups_, minimum);
    for (const Node& node : nodes_) limits.AddNode(node.group, node.size, node.being_deleted);
    NodeAllowance allowance({}, groups_, {}, kRowNow);
    got_ = SelectDeletions(candidates_, groups_, under_way, options, kRowNow, &limits, &allowance);
  }

  // Names of what starts, in order.
  std::vector<std::string> Started(bool empty) const {
    std::vector<std::string> names;
    for (const size_t i : got_.start) {
      if (candidates_[i].empty == empty) names.push_back(names_[i]);
    }
    return names;
  }
  // Name to reason of what does not.
  Json Waiting() const {
    Json waiting = Json::object();
    for (size_t i = 0; i < names_.size(); ++i) {
      const NodeReason reason = got_.decisions[i].waits;
      if (reason != NodeReason::kNone) waiting[names_[i]] = std::string(Name(reason));
    }
    return waiting;
  }

  const NodeGroups& groups() const { return groups_; }

 private:
  struct Node {
    std::optional<GroupIndex> group;
    NodeOffer size;
    bool being_deleted;
  };
  NodeGroups groups_;
  std::vector<Node> nodes_;
  std::vector<std::string> names_;
  std::vector<DeletionCandidate> candidates_;
  Deletions got_;
};

constexpr int64_t kLongAgo = kRowNow - 3600;

// --- drain_budgets
// -------------------------------------------------------------------------------------------

// [group, from, to] in order.
Json Ranges(const std::vector<std::string>& names) {
  Json ranges = Json::array();
  for (const std::string& name : names) {
    const size_t dash = name.rfind('-');
    const std::string group = name.substr(0, dash);
    const int64_t node = std::stoll(name.substr(dash + 1));
    if (!ranges.empty() && ranges.back()[0] == group && ranges.back()[2] == node) {
      ranges.back()[2] = node + 1;
    } else {
      ranges.push_back({group, node, node + 1});
    }
  }
  return ranges;
}

void Crop(const Json& in, Answers* answers) {
  Question question;
  std::map<std::string, GroupIndex> groups;
  for (const auto& [name, group] : in.at("groups").items()) {
    const int64_t registered = group.value("registered", int64_t{100});
    groups[name] = question.AddGroup(name, 0, group.value("target", int64_t{100}), group.at("atomic"));
    question.AddNodes(groups[name], registered);
  }
  for (const bool empty : {true, false}) {
    for (const Json& range : in.at(empty ? "empty" : "drain")) {
      for (int64_t node = range.at(1); node < range.at(2); ++node) {
        const std::string group = range.at(0);
        question.AddCandidate(absl::StrCat(group, "-", node),
                              {.group = groups.at(group), .empty = empty, .since_s = kLongAgo});
      }
    }
  }
  DeletionOptions options;
  options.max_scale_down_parallelism = in.at("max_scale_down_parallelism");
  options.max_drain_parallelism = in.at("max_drain_parallelism");
  const Json& in_progress = in.at("in_progress");
  question.Ask({.empty = in_progress.at("empty"), .drain = in_progress.at("drain")}, options);
  answers->Equal("empty", Ranges(question.Started(true)));
  answers->Equal("drain", Ranges(question.Started(false)));
}

// --- drain_lists
// ---------------------------------------------------------------------------------------------

void UnneededUpdate(const Json& in, Answers* answers) {
  const int64_t t1_s = in.at("t1_s");
  const int64_t t2_s = in.at("t2_s");
  std::map<std::string, int64_t> first;
  for (const Json& node : in.at("first")) first[node.at("name")] = TimerStart(std::nullopt, t1_s);
  TimerOptions options;
  options.unneeded_time_s = in.at("unneeded_time_s");
  options.unready_time_s = in.at("unready_time_s");
  Json since = Json::object();
  Json threshold = Json::object();
  for (const Json& node : in.at("second")) {
    const std::string name = node.at("name");
    const auto before = first.find(name);
    since[name] =
        TimerStart(before == first.end() ? std::nullopt : std::optional<int64_t>(before->second), t2_s);
    threshold[name] = WaitTime({}, node.at("ready"), options);
  }
  answers->Equal("since_s", since);
  answers->Equal("threshold_s", threshold);
}

void RemovableAt(const Json& in, Answers* answers) {
  Question question;
  const int64_t deleting = in.at("deletions_in_progress");
  const int64_t target = in.at("group_target");
  const GroupIndex group = question.AddGroup("group", in.at("group_min"), target, false);
  question.AddNodes(group, deleting, {}, /*being_deleted=*/true);
  question.AddNodes(group, target - deleting);
  for (const bool empty : {true, false}) {
    for (int64_t i = 0; i < in.at(empty ? "empty" : "drain"); ++i) {
      question.AddCandidate("node", {.group = group, .empty = empty, .since_s = kLongAgo});
    }
  }
  DeletionOptions options;
  options.max_scale_down_parallelism = options.max_drain_parallelism = 100;
  question.Ask({}, options);
  answers->Equal("empty", question.Started(true).size());
  answers->Equal("drain", question.Started(false).size());
}

// The annotation is asked before timers are: by eligibility, in each loop.
void RemovableReason(const Json& in, Answers* answers) {
  const Json& limits = in.at("group");
  Question question;
  std::optional<GroupIndex> group;
  if (!limits.is_null()) group = question.AddGroup("group", limits.at("min"), limits.at("target"), false);
  if (in.at("scale_down_disabled_annotation")) {
    k8s::v1::Node node = NodeOffering("node", 1000, 1000);
    SetEntry(node.mutable_metadata()->mutable_annotations(),
             "cluster-autoscaler.kubernetes.io/scale-down-disabled", "true");
    DrainCluster cluster;
    cluster.Add(node);
    const Eligibility eligibility = CheckEligibility(
        cluster.state(), {.slot = Slot{0}, .group = &question.groups().front()}, {}, kRowNow);
    return answers->Equal("reason", std::string(Name(eligibility.reason)));
  }
  question.AddNodes(group, in.at("cluster_nodes"));
  question.AddCandidate("node", {.group = group,
                                 .ready = in.at("ready"),
                                 .empty = true,
                                 .since_s = kRowNow - in.at("unneeded_for_s").get<int64_t>()});
  DeletionOptions options;
  options.timers.unneeded_time_s = in.at("unneeded_time_s");
  options.timers.unready_time_s = in.at("unready_time_s");
  question.Ask({}, options, {.nodes = in.at("min_limits").value("nodes", 0)});
  answers->Equal("reason", question.Waiting().value("node", "None"));
}

void LoadFromTaints(const Json& in, Answers* answers) {
  DrainCluster cluster;
  for (const Json& json : in.at("taints")) {
    k8s::v1::Node node = NodeOffering(json.at("node"), 1000, 1000);
    if (json.at("has_taint")) {
      k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
      taint->set_key(kDeletionCandidateTaint);
      taint->set_effect("PreferNoSchedule");
      taint->set_value(json.at("value_is_a_number") ? absl::StrCat(kRowNow - json.at("age_s").get<int64_t>())
                                                    : "soon");
    }
    cluster.Add(node);
  }
  TimerOptions options;
  options.candidate_ttl_s = in.at("ttl_s");
  Json unneeded = Json::array();
  for (const TimedNode& node : RestoreTimers(cluster.state(), options, kRowNow).unneeded) {
    unneeded.push_back(std::string(cluster.state().name(node.slot)));
  }
  answers->Equal("unneeded", unneeded);
}

// --- drain_select
// --------------------------------------------------------------------------------------------

void NodesToDelete(const Json& in, Answers* answers) {
  Question question;
  const NodeOffer size = {in.at("node").at("cores").get<int64_t>() * 1000, in.at("node").at("memory")};
  for (const Json& group : in.at("groups")) {
    const GroupIndex at =
        question.AddGroup(group.at("id"), group.at("min"), group.at("target"), group.at("atomic"));
    question.AddNodes(at, static_cast<int64_t>(group.at("other_nodes").size()), size);
    for (const Json& node : group.at("removable")) {
      question.AddNodes(at, 1, size);
      question.AddCandidate(node.at("node"), {.group = at,
                                              .allocatable = size,
                                              .empty = node.at("pods_to_move") == 0,
                                              .on_completion = node.at("on_completion_pods") > 0,
                                              .since_s = kLongAgo});
    }
  }
  const Json& least = in.at("min_limits");
  question.Ask({}, {},
               {.amounts = {least.value("cpu", int64_t{0}) * 1000, least.value("memory", int64_t{0})},
                .nodes = least.value("nodes", int64_t{0})});
  answers->Equal("empty", question.Started(true));
  answers->Equal("drain", question.Started(false));
  answers->Equal("unremovable", question.Waiting());
}

void SetCount(const Json& in, const char* key, auto set) {
  if (const Json count = in.value(key, Json()); !count.is_null()) set(count.get<int32_t>());
}

std::string OwnerBytes(const Json& in) {
  if (in.at("kind") == "Job") {
    k8s::v1::Job job;
    job.mutable_metadata()->set_name("owner");
    SetCount(in, "parallelism", [&](int32_t n) { job.mutable_spec()->set_parallelism(n); });
    SetCount(in, "completions", [&](int32_t n) { job.mutable_spec()->set_completions(n); });
    SetCount(in, "active", [&](int32_t n) { job.mutable_status()->set_active(n); });
    SetCount(in, "succeeded", [&](int32_t n) { job.mutable_status()->set_succeeded(n); });
    return job.SerializeAsString();
  }
  if (in.at("kind") == "StatefulSet") {
    k8s::v1::StatefulSet set;
    set.mutable_metadata()->set_name("owner");
    SetCount(in, "spec", [&](int32_t n) { set.mutable_spec()->set_replicas(n); });
    SetCount(in, "status_replicas", [&](int32_t n) { set.mutable_status()->set_replicas(n); });
    SetCount(in, "status_current_replicas",
             [&](int32_t n) { set.mutable_status()->set_current_replicas(n); });
    return set.SerializeAsString();
  }
  k8s::v1::ReplicaSet set;
  set.mutable_metadata()->set_name("owner");
  SetCount(in, "spec", [&](int32_t n) { set.mutable_spec()->set_replicas(n); });
  SetCount(in, "status", [&](int32_t n) { set.mutable_status()->set_replicas(n); });
  return set.SerializeAsString();
}

void OwnerReplicas(const Json& in, Answers* answers) {
  static const std::map<std::string, std::pair<v1::ObjectKind, ObjectKind>> kKinds = {
      {"Job", {v1::JOB, ObjectKind::kJob}},
      {"ReplicaSet", {v1::REPLICA_SET, ObjectKind::kReplicaSet}},
      {"StatefulSet", {v1::STATEFUL_SET, ObjectKind::kStatefulSet}},
      {"ReplicationController", {v1::REPLICATION_CONTROLLER, ObjectKind::kReplicationController}}};
  const auto& [kind, object_kind] = kKinds.at(in.at("kind"));
  DrainCluster cluster;
  if (!in.at("missing")) cluster.Add(kind, OwnerBytes(in));
  const Workload* const owner = cluster.state().objects().FindWorkload(object_kind, "", "owner");
  if (owner == nullptr) return;  // there is no such row
  answers->Equal("target", owner->target_replicas);
  answers->Equal("current", owner->current_replicas);
}

}  // namespace

void AddDrainDeletionHandlers(Handlers* handlers) {
  handlers->insert({{"crop", Crop},
                    {"unneeded_update", UnneededUpdate},
                    {"removable_at", RemovableAt},
                    {"removable_reason", RemovableReason},
                    {"load_from_taints", LoadFromTaints},
                    {"nodes_to_delete", NodesToDelete},
                    {"owner_replicas", OwnerReplicas}});
}

}  // namespace loadline::vectors
