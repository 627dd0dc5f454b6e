#include "core/drain/rules.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/cluster/pod_role.h"

namespace loadline {
namespace {

RuleAnswer Undefined() { return {}; }
RuleAnswer Outcome(PodOutcome outcome) { return {.outcome = outcome}; }
RuleAnswer Block(PodReason reason) { return {.outcome = PodOutcome::kBlock, .reason = reason}; }

// Not a rule of Cluster Autoscaler, which never sees such a pod. What has ended holds nothing back.
RuleAnswer Unreadable(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  return traits.unreadable.empty() || question.shape.finished ? Undefined() : Block(PodReason::kUnreadable);
}

// Not a rule of Cluster Autoscaler, which knows no placeholders.
RuleAnswer Placeholder(const PodQuestion& question) {
  return TraitsOf(question.shape).placeholder ? Outcome(PodOutcome::kMove) : Undefined();
}

RuleAnswer Expendable(const PodQuestion& question) {
  return IsExpendable(TraitsOf(question.shape)) ? Outcome(PodOutcome::kSkip) : Undefined();
}

RuleAnswer Mirror(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  if (!traits.mirror) return Undefined();
  if (!traits.owner.has_value()) return Outcome(PodOutcome::kSkip);
  const bool own_node =
      traits.owner->kind == "Node" && traits.owner->name == question.node_name &&
      (question.node_uid.empty() || traits.owner->uid.empty() || traits.owner->uid == question.node_uid);
  return own_node ? Outcome(PodOutcome::kSkip) : Block(PodReason::kControllerNotFound);
}

RuleAnswer LongTerminating(const PodQuestion& question) {
  return IsLongTerminating(TraitsOf(question.shape), question.now_s) ? Outcome(PodOutcome::kSkip)
                                                                     : Undefined();
}

// The kinds whose objects are looked up. Those of other API groups with the same names are not ours to know.
std::optional<ObjectKind> OwnerKind(const PodOwner& owner) {
  const bool apps = absl::StartsWith(owner.api_version, "apps/");
  if (owner.kind == "ReplicationController") return ObjectKind::kReplicationController;
  if (owner.kind == "ReplicaSet") return ObjectKind::kReplicaSet;
  if (owner.kind == "Job") return ObjectKind::kJob;
  if (owner.kind == "StatefulSet" && apps) return ObjectKind::kStatefulSet;
  if (owner.kind == "DaemonSet" && apps) return ObjectKind::kDaemonSet;
  return std::nullopt;
}

// Unlike Cluster Autoscaler it does not ask for the owner of a pod that has ended.
RuleAnswer ReplicaCount(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  if (!traits.owner.has_value() || question.shape.finished) return Undefined();
  const std::optional<ObjectKind> kind = OwnerKind(*traits.owner);
  if (!kind.has_value() || !question.objects.complete(*kind)) return Undefined();
  const Workload* const owner =
      question.objects.FindOwner(*kind, question.shape.namespace_name, *traits.owner);
  if (owner == nullptr) return Block(PodReason::kControllerNotFound);
  const bool counted = kind == ObjectKind::kReplicationController || kind == ObjectKind::kReplicaSet;
  if (counted && question.options.skip_nodes_with_custom_controller_pods &&
      owner->target_replicas < question.options.min_replica_count) {
    return Block(PodReason::kMinReplicasReached);
  }
  return Undefined();
}

RuleAnswer Daemon(const PodQuestion& question) {
  return OfKnownDaemonSet(question.shape, question.objects) ? Outcome(PodOutcome::kDaemon) : Undefined();
}

RuleAnswer SafeToEvictPod(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  const bool safe =
      traits.safe_to_evict == SafeToEvict::kYes && !IsDisruptionForbidden(traits, question.now_s);
  return safe ? Outcome(PodOutcome::kMove) : Undefined();
}

RuleAnswer Terminal(const PodQuestion& question) {
  return question.shape.finished ? Outcome(PodOutcome::kMove) : Undefined();
}

RuleAnswer OnCompletion(const PodQuestion& question) {
  return TraitsOf(question.shape).safe_to_evict == SafeToEvict::kOnCompletion ? Outcome(PodOutcome::kWait)
                                                                              : Undefined();
}

// Karpenter asks it of all pods that run, also of mirror pods and those of DaemonSets.
RuleAnswer DoNotDisrupt(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  const bool runs = !question.shape.finished && !traits.deleted_s.has_value();
  return runs && IsDisruptionForbidden(traits, question.now_s) ? Block(PodReason::kDoNotDisruptAnnotation)
                                                               : Undefined();
}

RuleAnswer Replicated(const PodQuestion& question) {
  const PodTraits& traits = TraitsOf(question.shape);
  if (!traits.owner.has_value()) return Block(PodReason::kNotReplicated);
  if (!question.options.skip_nodes_with_custom_controller_pods) return Undefined();
  constexpr std::array<absl::string_view, 4> kKnown = {"ReplicationController", "Job", "ReplicaSet",
                                                       "StatefulSet"};
  return absl::c_linear_search(kKnown, traits.owner->kind) ? Undefined() : Block(PodReason::kNotReplicated);
}

RuleAnswer System(const PodQuestion& question) {
  if (question.shape.namespace_name != "kube-system" || !question.options.skip_nodes_with_system_pods ||
      question.budgets.Covers(question.shape)) {
    return Undefined();
  }
  // Without a creation time a pod is never old enough.
  const std::optional<int64_t>& created_s = TraitsOf(question.shape).created_s;
  const bool old =
      created_s.has_value() && question.now_s - question.options.system_pod_timeout_s > *created_s;
  return old ? Outcome(PodOutcome::kMove) : Block(PodReason::kUnmovableKubeSystemPod);
}

RuleAnswer NotSafeToEvict(const PodQuestion& question) {
  return TraitsOf(question.shape).safe_to_evict == SafeToEvict::kNo
             ? Block(PodReason::kNotSafeToEvictAnnotation)
             : Undefined();
}

RuleAnswer LocalStorage(const PodQuestion& question) {
  const bool local =
      question.options.skip_nodes_with_local_storage && !TraitsOf(question.shape).local_volume.empty();
  return local ? Block(PodReason::kLocalStorageRequested) : Undefined();
}

RuleAnswer Budget(const BudgetUse& use, const DisruptionBudgets& budgets) {
  return budgets.Refuses(use) == BudgetRefusal::kNone ? Undefined() : Block(PodReason::kNotEnoughPdb);
}

RuleAnswer Pdb(const PodQuestion& question) {
  return Budget(question.budgets.Find(question.shape), question.budgets);
}

constexpr std::array<DrainRule, 16> kRules = {{{"placeholder", Placeholder},
                                               {"donotdisrupt", DoNotDisrupt},
                                               {"expendable", Expendable},
                                               {"mirror", Mirror},
                                               {"longterminating", LongTerminating},
                                               {"replicacount", ReplicaCount},
                                               {"daemonset", Daemon},
                                               {"unreadable", Unreadable},
                                               {"safetoevict", SafeToEvictPod},
                                               {"terminal", Terminal},
                                               {"oncompletion", OnCompletion},
                                               {"replicated", Replicated},
                                               {"system", System},
                                               {"notsafetoevict", NotSafeToEvict},
                                               {"localstorage", LocalStorage},
                                               {"pdb", Pdb}}};

}  // namespace

absl::string_view Name(PodReason reason) {
  switch (reason) {
    case PodReason::kNone:
      return "None";
    case PodReason::kControllerNotFound:
      return "ControllerNotFound";
    case PodReason::kMinReplicasReached:
      return "MinReplicasReached";
    case PodReason::kNotReplicated:
      return "NotReplicated";
    case PodReason::kLocalStorageRequested:
      return "LocalStorageRequested";
    case PodReason::kNotSafeToEvictAnnotation:
      return "NotSafeToEvictAnnotation";
    case PodReason::kUnmovableKubeSystemPod:
      return "UnmovableKubeSystemPod";
    case PodReason::kNotEnoughPdb:
      return "NotEnoughPdb";
    case PodReason::kUnexpectedError:
      return "UnexpectedError";
    case PodReason::kUnreadable:
      return "Unreadable";
    case PodReason::kDoNotDisruptAnnotation:
      return "DoNotDisruptAnnotation";
  }
  return "invalid reason";
}

std::span<const DrainRule> DrainRules() { return kRules; }

bool RuleChain::Add(RuleAnswer answer) {
  if (answer.outcome == PodOutcome::kUndefined) return true;
  if (!answer.overrides.empty()) {
    remembered_.push_back(std::move(answer));
    return true;
  }
  for (const RuleAnswer& earlier : remembered_) {
    if (!absl::c_linear_search(earlier.overrides, answer.outcome)) continue;
    answer_ = earlier;
    return false;
  }
  answer_ = std::move(answer);
  return false;
}

RuleAnswer JudgePod(const PodQuestion& question, std::span<const DrainRule> rules) {
  RuleChain chain;
  for (const DrainRule& rule : rules) {
    if (!chain.Add(rule.judge(question))) break;
  }
  return chain.answer();
}

PodJudge::PodJudge(const ClusterState& state, const DisruptionBudgets& budgets,
                   const DrainRuleOptions& options, int64_t now_s)
    : state_(state), budgets_(budgets), options_(options), now_s_(now_s) {}

PodQuestion PodJudge::Question(Slot slot, int32_t shape) const {
  return {.shape = state_.pod_shapes()[shape],
          .node_name = state_.name(slot),
          .node_uid = state_.traits(slot).uid,
          .objects = state_.objects(),
          .budgets = budgets_,
          .options = options_,
          .now_s = now_s_};
}

RuleAnswer PodJudge::Judge(Slot slot, int32_t shape) {
  const size_t at = static_cast<size_t>(shape);
  if (at >= by_shape_.size()) by_shape_.resize(at + 1);
  std::optional<RuleAnswer>& known = by_shape_[at];
  if (!known.has_value()) {
    const PodQuestion question = Question(slot, shape);
    const std::span<const DrainRule> but_budgets = DrainRules().first(kRules.size() - 1);
    RuleAnswer answer = JudgePod(question, but_budgets);
    if (TraitsOf(question.shape).mirror) return answer;
    known = std::move(answer);
  }
  if (known->outcome != PodOutcome::kUndefined) return *known;
  return Budget(budgets_.UseOf(shape), budgets_);
}

NodePodsJudgement PodJudge::JudgeNode(Slot slot) {
  NodePodsJudgement judgement;
  const std::span<const NodePods::Pod> pods = state_.pods(slot).pods();
  for (size_t i = 0; i < pods.size(); ++i) {
    const RuleAnswer answer = Judge(slot, pods[i].shape);
    switch (answer.outcome) {
      case PodOutcome::kSkip:
        break;
      case PodOutcome::kUndefined:
      case PodOutcome::kMove:
        judgement.move.push_back(i);
        break;
      case PodOutcome::kDaemon:
        judgement.daemon.push_back(i);
        break;
      case PodOutcome::kWait:
        judgement.wait.push_back(i);
        break;
      case PodOutcome::kBlock:
        judgement.block = {i, answer.reason};
        return judgement;
    }
  }
  return judgement;
}

}  // namespace loadline
