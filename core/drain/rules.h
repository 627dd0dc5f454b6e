// May this pod be moved: the drainability rules of Cluster Autoscaler.
#ifndef LOADLINE_CORE_DRAIN_RULES_H_
#define LOADLINE_CORE_DRAIN_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"
#include "core/drain/disruption_budgets.h"

namespace loadline {

// Flags of Cluster Autoscaler, with its defaults.
struct DrainRuleOptions {
  bool skip_nodes_with_system_pods = true;
  bool skip_nodes_with_local_storage = true;
  bool skip_nodes_with_custom_controller_pods = true;
  int64_t min_replica_count = 0;
  // --blocking-system-pod-distruption-timeout: older pods of kube-system move.
  int64_t system_pod_timeout_s = 3600;
  friend bool operator==(const DrainRuleOptions&, const DrainRuleOptions&) = default;
};

// The outcome for a pod when its node is removed.
enum class PodOutcome {
  kUndefined,  // of a rule: it does not say; of a pod: it moves
  kSkip,       // as if it were not there
  kMove,       // it is evicted, and its replacement needs a place
  kDaemon,     // of a DaemonSet: ends with its node
  kWait,       // it may run to completion first
  kBlock,      // the node stays
};

// Under Cluster Autoscaler's names.
enum class PodReason {
  kNone,
  kControllerNotFound,
  kMinReplicasReached,
  kNotReplicated,
  kLocalStorageRequested,
  kNotSafeToEvictAnnotation,
  kUnmovableKubeSystemPod,
  kNotEnoughPdb,
  kUnexpectedError,
  kUnreadable,              // ours: not all of the pod could be read, so nobody knows what would become of it
  kDoNotDisruptAnnotation,  // Karpenter's
};
absl::string_view Name(PodReason reason);

// The answer of one rule for a pod.
struct RuleAnswer {
  PodOutcome outcome = PodOutcome::kUndefined;
  PodReason reason = PodReason::kNone;  // of kBlock
  // Not empty: it holds only in place of a later answer of these outcomes.
  std::vector<PodOutcome> overrides = {};
  friend bool operator==(const RuleAnswer&, const RuleAnswer&) = default;
};

// A pod on a node, and all that rules read beside it.
struct PodQuestion {
  const PodShape& shape;
  absl::string_view node_name;
  absl::string_view node_uid;  // empty: not known
  const ClusterObjects& objects;
  const DisruptionBudgets& budgets;
  const DrainRuleOptions& options;
  int64_t now_s = 0;  // since 1970
};

// A rule that may keep a pod on its node.
struct DrainRule {
  absl::string_view name;  // as the folder of the rule in Cluster Autoscaler: "longterminating"
  RuleAnswer (*judge)(const PodQuestion& question);
};

// "placeholder"; "donotdisrupt", by Karpenter's annotation; "expendable"; then the twelve rules of Cluster
// Autoscaler in their order, of which the last one is that of budgets, with "unreadable" behind "daemonset":
// what ends with its node need not be understood. "donotdisrupt" precedes all rules by which a pod may move
// or end with its node while it runs, as Karpenter asks it of mirror pods and those of DaemonSets too.
//
// They differ from Cluster Autoscaler's in what can be forged: a pod with the mirror annotation that somebody
// else than its node owns blocks (ControllerNotFound), and an owner of a kind that is known complete has to
// be there under its UID, whatever the flags. A placeholder of slack moves, and an expendable pod is skipped,
// as Cluster Autoscaler drops it before it asks the rules. Source:
// cluster-autoscaler/simulator/drainability/rules, f7bb0c36.
std::span<const DrainRule> DrainRules();

// Takes the answers of rules in their order. The first one that says something holds; one that overrides is
// only remembered, and holds when a later one gives an outcome that it overrides.
class RuleChain {
 public:
  // False: it is settled.
  bool Add(RuleAnswer answer);
  const RuleAnswer& answer() const { return answer_; }

 private:
  std::vector<RuleAnswer> remembered_;
  RuleAnswer answer_;
};

// Asks rules in their order.
RuleAnswer JudgePod(const PodQuestion& question, std::span<const DrainRule> rules = DrainRules());

// The pods of one node. Positions in ClusterState::pods(slot), in order.
struct NodePodsJudgement {
  struct Block {
    size_t pod;
    PodReason reason;
    friend bool operator==(const Block&, const Block&) = default;
  };
  std::vector<size_t> move;
  std::vector<size_t> daemon;
  std::vector<size_t> wait;
  // The first pod that blocks; those behind it were not judged.
  std::optional<Block> block;
};

// Judges pods by their shapes, each shape once: but for mirror pods, whose node counts, and for budgets,
// which change as a plan grows. Not thread-safe.
class PodJudge {
 public:
  // All outlive the object; neither the state nor its objects change meanwhile.
  PodJudge(const ClusterState& state, const DisruptionBudgets& budgets, const DrainRuleOptions& options,
           int64_t now_s);

  // Judges a pod of this shape (in ClusterState::pod_shapes()) on this node, as JudgePod(). Cost: O(1) after
  // the first pod of the shape.
  RuleAnswer Judge(Slot slot, int32_t shape);

  // Cost: O(pods of the node).
  NodePodsJudgement JudgeNode(Slot slot);

 private:
  PodQuestion Question(Slot slot, int32_t shape) const;

  const ClusterState& state_;
  const DisruptionBudgets& budgets_;
  const DrainRuleOptions& options_;
  const int64_t now_s_;
  // By shape: what all rules but that of budgets say; nullopt: not asked yet.
  std::vector<std::optional<RuleAnswer>> by_shape_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_RULES_H_
