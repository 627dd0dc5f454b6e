// drain_rules.jsonl, drain_pods.jsonl and drain_pdb.jsonl: the rules that pods are judged by, and their
// budgets.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/drain/disruption_budgets.h"
#include "core/drain/rules.h"
#include "test/vectors/drain_cluster.h"
#include "test/vectors/registry.h"

namespace loadline::vectors {
namespace {

// --- outcomes of rules, as rows write them -----------------------------------------------------------------

PodOutcome ReadKind(const std::string& text) {
  if (text == "skip") return PodOutcome::kSkip;
  if (text == "ok") return PodOutcome::kMove;
  if (text == "wait") return PodOutcome::kWait;
  return text == "undefined" ? PodOutcome::kUndefined : PodOutcome::kBlock;
}

PodReason ReadReason(absl::string_view text) {
  for (int reason = 0; reason <= static_cast<int>(PodReason::kUnexpectedError); ++reason) {
    if (Name(PodReason{reason}) == text) return PodReason{reason};
  }
  throw Json::other_error::create(598, "no such reason", nullptr);
}

RuleAnswer ReadAnswer(const std::string& text) {
  RuleAnswer answer{.outcome = ReadKind(text.substr(0, text.find(':')))};
  if (answer.outcome == PodOutcome::kBlock) answer.reason = ReadReason(text.substr(text.find(':') + 1));
  return answer;
}

std::string Write(const RuleAnswer& answer) {
  switch (answer.outcome) {
    case PodOutcome::kUndefined:
      return "undefined";
    case PodOutcome::kSkip:
      return "skip";
    case PodOutcome::kMove:
    case PodOutcome::kDaemon:
      return "ok";
    case PodOutcome::kWait:
      return "wait";
    case PodOutcome::kBlock:
      return absl::StrCat("block:", Name(answer.reason));
  }
  return "";
}

void Chain(const Json& in, Answers* answers) {
  RuleChain chain;
  for (const Json& rule : in.at("rules")) {
    RuleAnswer answer = ReadAnswer(rule.at("outcome"));
    for (const Json& kind : rule.at("overrides")) answer.overrides.push_back(ReadKind(kind));
    if (!chain.Add(answer)) break;
  }
  answers->Equal("outcome", Write(chain.answer()));
}

// --- one rule
// ------------------------------------------------------------------------------------------------

PodQuestion PodQuestionOf(const ClusterState& state, int32_t shape, const DisruptionBudgets& budgets,
                          const DrainRuleOptions& options) {
  return {.shape = state.pod_shapes()[shape],
          .node_name = state.name(Slot{0}),
          .node_uid = "",
          .objects = state.objects(),
          .budgets = budgets,
          .options = options,
          .now_s = kRowNow};
}

// Returns what the rule of that name says of the only pod of the cluster.
std::string Ask(absl::string_view name, DrainCluster* cluster, const DrainRuleOptions& options) {
  const ClusterState& state = cluster->state();
  const DisruptionBudgets budgets(state);
  const int32_t shape = state.pods(Slot{0}).pods()[0].shape;
  for (const DrainRule& rule : DrainRules()) {
    if (rule.name == name) return Write(rule.judge(PodQuestionOf(state, shape, budgets, options)));
  }
  return "no such rule";
}

k8s::v1::Node AnyNode() { return NodeOffering("node", 1000, 1000); }

void AddVolume(const std::string& name, const std::string& type, const std::string& medium,
               k8s::v1::Pod* pod) {
  k8s::v1::Volume* const volume = pod->mutable_spec()->add_volumes();
  volume->set_name(name);
  k8s::v1::VolumeSource* const source = volume->mutable_volume_source();
  if (type == "emptyDir") source->mutable_empty_dir()->set_medium(medium);
  if (type == "hostPath") source->mutable_host_path();
}

constexpr char kSafeVolumes[] = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

void LocalStorage(const Json& in, Answers* answers) {
  k8s::v1::Pod pod;
  for (const Json& volume : in.at("volumes")) {
    AddVolume(volume.at("name"), volume.at("type"), volume.value("medium", ""), &pod);
  }
  const Json& safe = in.at("safe_to_evict_local_volumes");
  if (!safe.is_null()) SetEntry(pod.mutable_metadata()->mutable_annotations(), kSafeVolumes, safe);
  DrainCluster cluster;
  cluster.Add(AnyNode(), {pod});
  answers->Equal("outcome", Ask("localstorage", &cluster, {}));
}

void LongTerminating(const Json& in, Answers* answers) {
  k8s::v1::Pod pod;
  SetDeletion(in, &pod);
  DrainCluster cluster;
  cluster.Add(AnyNode(), {pod});
  answers->Equal("outcome", Ask("longterminating", &cluster, {}));
}

// --- owners
// --------------------------------------------------------------------------------------------------

template <typename Message>
void AddOwner(v1::ObjectKind kind, const std::string& namespace_name, const std::string& name, int replicas,
              DrainCluster* cluster) {
  Message owner;
  owner.mutable_metadata()->set_namespace_(namespace_name);
  owner.mutable_metadata()->set_name(name);
  if constexpr (requires { owner.mutable_spec()->set_replicas(0); }) {
    owner.mutable_spec()->set_replicas(replicas);
  }
  cluster->Add(kind, owner.SerializeAsString());
}

void AddOwner(const std::string& kind, const std::string& namespace_name, const std::string& name,
              int replicas, DrainCluster* cluster) {
  if (kind == "ReplicationController") {
    AddOwner<k8s::v1::ReplicaSet>(v1::REPLICATION_CONTROLLER, namespace_name, name, replicas, cluster);
  } else if (kind == "ReplicaSet") {
    AddOwner<k8s::v1::ReplicaSet>(v1::REPLICA_SET, namespace_name, name, replicas, cluster);
  } else if (kind == "StatefulSet") {
    AddOwner<k8s::v1::StatefulSet>(v1::STATEFUL_SET, namespace_name, name, replicas, cluster);
  } else if (kind == "DaemonSet") {
    AddOwner<k8s::v1::DaemonSet>(v1::DAEMON_SET, namespace_name, name, replicas, cluster);
  } else if (kind == "Job") {
    AddOwner<k8s::v1::Job>(v1::JOB, namespace_name, name, replicas, cluster);
  }
}

void OwnersAreKnown(DrainCluster* cluster) {
  for (const ObjectKind kind : {ObjectKind::kReplicationController, ObjectKind::kReplicaSet,
                                ObjectKind::kStatefulSet, ObjectKind::kDaemonSet, ObjectKind::kJob}) {
    cluster->state().objects().SetComplete(kind);
  }
}

std::string ApiVersion(const std::string& kind) {
  if (kind == "ReplicationController") return "v1";
  return kind == "Job" ? "batch/v1" : "apps/v1";
}

void ReplicaCount(const Json& in, Answers* answers) {
  const Json& owner = in.at("owner");
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  SetOwner(owner.at("kind"), owner.at("api_version"), owner.at("name"), pod.mutable_metadata());
  for (const auto& [key, value] : in.at("annotations").items()) {
    SetEntry(pod.mutable_metadata()->mutable_annotations(), key, value);
  }
  DrainCluster cluster;
  cluster.Add(AnyNode(), {pod});
  if (in.at("listers")) OwnersAreKnown(&cluster);
  if (in.at("owner_exists")) {
    AddOwner(owner.at("kind"), "default", owner.at("name"), in.at("owner_replicas"), &cluster);
  }
  DrainRuleOptions options;
  options.min_replica_count = in.at("min_replica_count");
  options.skip_nodes_with_custom_controller_pods = in.at("skip_nodes_with_custom_controller_pods");
  answers->Equal("outcome", Ask("replicacount", &cluster, options));
}

void Replicated(const Json& in, Answers* answers) {
  k8s::v1::Pod pod;
  if (const Json& owner = in.at("owner"); !owner.is_null()) {
    SetOwner(owner.at("kind"), owner.at("api_version"), owner.at("name"), pod.mutable_metadata());
  }
  DrainCluster cluster;
  cluster.Add(AnyNode(), {pod});
  DrainRuleOptions options;
  options.skip_nodes_with_custom_controller_pods = in.at("skip_nodes_with_custom_controller_pods");
  answers->Equal("outcome", Ask("replicated", &cluster, options));
}

// --- all pods of a node
// --------------------------------------------------------------------------------------

// The values of _meta.defaults.
constexpr int kOwnerReplicas = 5;

void SetReady(k8s::v1::Pod* pod) {
  k8s::v1::PodCondition* const ready = pod->mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
}

k8s::v1::Pod ReadFullPod(const Json& in) {
  k8s::v1::Pod pod;
  k8s::v1::ObjectMeta* const metadata = pod.mutable_metadata();
  metadata->set_namespace_(in.value("ns", "default"));
  if (in.contains("owner")) SetOwner(in.at("owner"), ApiVersion(in.at("owner")), "owner", metadata);
  if (in.value("mirror", false)) {
    SetEntry(metadata->mutable_annotations(), "kubernetes.io/config.mirror", "mirror");
  }
  const Json labels = in.value("labels", Json::object());
  for (const auto& [key, value] : labels.items()) SetEntry(metadata->mutable_labels(), key, value);
  const Json annotations = in.value("ann", Json::object());
  for (const auto& [key, value] : annotations.items()) SetEntry(metadata->mutable_annotations(), key, value);
  for (const Json& volume : in.value("volumes", Json::array())) {
    const bool empty_dir = volume.contains("emptyDir");
    AddVolume(volume.at("name"),
              empty_dir                     ? "emptyDir"
              : volume.contains("hostPath") ? "hostPath"
                                            : "other",
              empty_dir ? volume.at("emptyDir").get<std::string>() : "", &pod);
  }
  if (in.contains("age_s")) {
    metadata->mutable_creation_timestamp()->set_seconds(kRowNow - in.at("age_s").get<int64_t>());
  }
  SetDeletion({{"deleted_s_ago", in.value("deleted_s_ago", Json())}, {"grace_s", in.value("grace_s", 30)}},
              &pod);
  pod.mutable_spec()->set_restart_policy(in.value("restart", "Always"));
  pod.mutable_status()->set_phase(in.value("phase", "Running"));
  SetReady(&pod);
  return pod;
}

k8s::v1::PodDisruptionBudget Budget(const std::string& namespace_name, const std::string& name,
                                    const Json& match_labels, int64_t allowed) {
  k8s::v1::PodDisruptionBudget budget;
  budget.mutable_metadata()->set_namespace_(namespace_name);
  budget.mutable_metadata()->set_name(name);
  if (!match_labels.is_null()) {
    auto* const selector = budget.mutable_spec()->mutable_selector();
    for (const auto& [key, value] : match_labels.items()) {
      SetEntry(selector->mutable_match_labels(), key, value);
    }
  }
  budget.mutable_status()->set_disruptions_allowed(static_cast<int32_t>(allowed));
  return budget;
}

RuleAnswer Moves(const PodQuestion&) { return {.outcome = PodOutcome::kMove}; }
RuleAnswer Blocks(const PodQuestion&) {
  return {.outcome = PodOutcome::kBlock, .reason = PodReason::kUnexpectedError};
}
RuleAnswer SaysNothing(const PodQuestion&) { return {}; }

// The node's pods by the rules that come with the product, and others before them.
NodePodsJudgement JudgeWith(const Json& extra_rules, const ClusterState& state,
                            const DisruptionBudgets& budgets) {
  const DrainRuleOptions options;
  if (extra_rules.empty()) return PodJudge(state, budgets, options, kRowNow).JudgeNode(Slot{0});
  std::vector<DrainRule> rules;
  for (const Json& rule : extra_rules) {
    rules.push_back({"extra", rule == "always_ok" ? Moves : rule == "always_block" ? Blocks : SaysNothing});
  }
  rules.insert(rules.end(), DrainRules().begin(), DrainRules().end());
  NodePodsJudgement judgement;
  const std::span<const NodePods::Pod> pods = state.pods(Slot{0}).pods();
  for (size_t i = 0; i < pods.size() && !judgement.block.has_value(); ++i) {
    const RuleAnswer answer = JudgePod(PodQuestionOf(state, pods[i].shape, budgets, options), rules);
    if (answer.outcome == PodOutcome::kBlock) {
      judgement.block = {i, answer.reason};
    } else {
      judgement.move.push_back(i);
    }
  }
  return judgement;
}

void PodsToMove(const Json& in, Answers* answers) {
  std::vector<k8s::v1::Pod> pods;
  DrainCluster cluster;
  for (const Json& json : in.at("pods")) {
    pods.push_back(ReadFullPod(json));
    if (in.at("listers") && json.contains("owner")) {
      AddOwner(json.at("owner"), pods.back().metadata().namespace_(), "owner", kOwnerReplicas, &cluster);
    }
  }
  if (in.at("listers")) OwnersAreKnown(&cluster);
  int count = 0;
  for (const Json& pdb : in.at("pdbs")) {
    const std::string namespace_name = pdb.at("ns");
    cluster.Add(Budget(namespace_name.empty() ? "default" : namespace_name, absl::StrCat("pdb-", count++),
                       pdb.at("sel"), pdb.at("allowed")));
  }
  cluster.Add(AnyNode(), pods);
  const DisruptionBudgets budgets(cluster.state());
  const NodePodsJudgement judgement = JudgeWith(in.at("extra_rules_first"), cluster.state(), budgets);
  answers->Equal("move", judgement.move);
  answers->Equal("daemonset", judgement.daemon);
  answers->Equal("on_completion", judgement.wait);
  Json block;
  if (judgement.block.has_value()) {
    block = {{"pod", judgement.block->pod}, {"reason", std::string(Name(judgement.block->reason))}};
  }
  answers->Equal("block", block);
}

// --- budgets
// -------------------------------------------------------------------------------------------------

void CanRemovePods(const Json& in, Answers* answers) {
  std::vector<k8s::v1::Pod> pods;
  const auto add = [&](int count, bool a, bool b) {
    for (int i = 0; i < count; ++i) {
      k8s::v1::Pod& pod = pods.emplace_back();
      pod.mutable_metadata()->set_namespace_("default");
      if (a) SetEntry(pod.mutable_metadata()->mutable_labels(), "a", "yes");
      if (b) SetEntry(pod.mutable_metadata()->mutable_labels(), "b", "yes");
      SetReady(&pod);
    }
  };
  add(in.at("pods").at("a_only"), true, false);
  add(in.at("pods").at("b_only"), false, true);
  add(in.at("pods").at("a_and_b"), true, true);
  DrainCluster cluster;
  for (const auto& [name, allowed] : in.at("allowed").items()) {
    if (!allowed.is_null()) cluster.Add(Budget("default", name, {{name, "yes"}}, allowed));
  }
  cluster.Add(AnyNode(), pods);
  const DisruptionBudgets budgets(cluster.state());
  std::vector<BudgetUse> uses;
  for (const NodePods::Pod& pod : cluster.state().pods(Slot{0}).pods()) {
    uses.push_back(budgets.UseOf(pod.shape));
  }
  const DisruptionBudgets::Answer answer = budgets.Ask(uses);
  answers->Equal("can_remove", !answer.refused.has_value());
  answers->Equal("in_parallel", !answer.refused.has_value() && !answer.risky);
}

}  // namespace

void AddDrainPodHandlers(Handlers* handlers) {
  handlers->insert({{"chain", Chain},
                    {"local_storage", LocalStorage},
                    {"long_terminating", LongTerminating},
                    {"replica_count", ReplicaCount},
                    {"replicated", Replicated},
                    {"pods_to_move", PodsToMove},
                    {"can_remove_pods", CanRemovePods}});
}

}  // namespace loadline::vectors
