#include "core/replace/consolidation_question.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/cluster/node_kind.h"
#include "core/drain/being_deleted.h"
#include "core/drain/eligibility.h"
#include "core/drain/node_reason.h"
#include "core/drain/rules.h"

namespace loadline {
namespace {

class QuestionMaker {
 public:
  QuestionMaker(const DrainProblem& drain, const DrainOptions& options, const DisturbancePrices& prices)
      : drain_(drain),
        state_(*drain.cluster),
        options_(options),
        prices_(prices),
        budgets_(state_),
        judge_(state_, budgets_, options.rules, drain.now_s) {}

  ConsolidationQuestion Make(NodeGroupSpan groups) {
    problem_.cluster = &state_;
    problem_.now_s = drain_.now_s;
    problem_.groups = groups;
    problem_.minimum = options_.minimum;
    problem_.gpu_labels = options_.eligibility.utilization.gpu_labels;
    TakeForNodesBeingDeleted();
    for (const BudgetIndex budget : budgets_.indices()) {
      problem_.budgets.push_back(std::max<int64_t>(0, budgets_.left(budget)));
    }
    node_of_.assign(static_cast<size_t>(state_.slot_end()), -1);
    for (int32_t i = 0; i < state_.slot_end(); ++i) {
      if (state_.Occupied(Slot{i})) AddNode(Slot{i});
    }
    AddPlaceholders();
    return {std::move(problem_), std::move(fixed_)};
  }

 private:
  // Their pods are evicted first.
  void TakeForNodesBeingDeleted() {
    for (const Slot slot : NodesBeingDeleted(state_, {}, drain_.now_s)) {
      for (const NodePods::Pod& pod : state_.pods(slot).pods()) {
        const bool moves = NeedsAnotherNode(state_.pod_shapes()[pod.shape], state_.objects());
        if (moves) budgets_.Take(budgets_.UseOf(pod.shape));
      }
    }
  }

  void AddNode(Slot slot) {
    ConsolidationNode& node = problem_.nodes.emplace_back();
    node_of_[IndexOf(slot)] = static_cast<int32_t>(problem_.nodes.size()) - 1;
    node.slot = slot;
    node.group = drain_.group_of[slot];
    if (node.group.has_value()) node.usd_per_hour = UsdOf(problem_.groups[*node.group], slot);
    node.kind = KindForPlan(state_, slot, drain_.group_of);
    node.takes_pods = TakesMovedPods(state_, slot);
    node.leaving = IsBeingDeleted(state_, slot, drain_.now_s);
    node.started = !absl::c_binary_search(drain_.not_started, slot);
    FixedNode fixed{slot};
    fixed.reason = node.started ? ReasonOf(slot, node.group) : NodeReason::kNotStarted;
    if (fixed.reason == NodeReason::kNone && AddPods(&node, &fixed)) {
      node.may_go = true;
      return;
    }
    node.pods.clear();
    fixed_.push_back(fixed);
  }

  NodeReason ReasonOf(Slot slot, std::optional<GroupIndex> group) const {
    const NodeGroup* const of = group.has_value() ? &problem_.groups[*group] : nullptr;
    // How full a node is does not matter.
    const NodeQuestion question{.slot = slot, .group = of, .replaced = true};
    const NodeReason reason = CheckEligibility(state_, question, options_.eligibility, drain_.now_s).reason;
    if (reason != NodeReason::kNone) return reason;
    if (of->atomic) return NodeReason::kAtomicScaleDownFailed;
    return IsReady(state_, slot) ? NodeReason::kNone : NodeReason::kNotUnreadyLongEnough;
  }

  // False: a pod keeps the node.
  bool AddPods(ConsolidationNode* node, FixedNode* fixed) {
    const NodePodsJudgement judgement = judge_.JudgeNode(node->slot);
    if (judgement.block.has_value()) {
      fixed->reason = NodeReason::kBlockedByPod;
      fixed->pod = PodRef::Pod(judgement.block->pod);
      fixed->pod_reason = judgement.block->reason;
      const int32_t shape = state_.pods(node->slot).pods()[judgement.block->pod].shape;
      if (fixed->pod_reason == PodReason::kNotEnoughPdb)
        fixed->budget = budgets_.Refuses(budgets_.UseOf(shape));
      return false;
    }
    if (!judgement.wait.empty()) {
      fixed->reason = NodeReason::kBlockedByOnCompletionPod;
      fixed->pod = PodRef::Pod(judgement.wait.front());
      return false;
    }
    for (const size_t position : judgement.move) {
      const int32_t shape_id = state_.pods(node->slot).pods()[position].shape;
      const PodShape& shape = state_.pod_shapes()[shape_id];
      if (shape.finished) continue;  // it holds nothing, and nothing takes its place
      const BudgetUse& use = budgets_.UseOf(shape_id);
      if (const BudgetRefusal refusal = budgets_.Refuses(use); refusal != BudgetRefusal::kNone) {
        *fixed = {node->slot, NodeReason::kBlockedByPod, PodRef::Pod(position), PodReason::kNotEnoughPdb,
                  refusal};
        return false;
      }
      LeavingPod& pod = node->pods.emplace_back();
      pod.position = static_cast<int32_t>(position);
      pod.budget = use.takes ? static_cast<int32_t>(*use.budget) : -1;
      pod.usd = PriceOf(prices_, TraitsOf(shape));
    }
    return true;
  }

  // All that are kept, those on nodes that stay as well: their room is taken.
  void AddPlaceholders() {
    for (size_t i = 0; i < drain_.placeholders.size(); ++i) {
      const DrainPlaceholder& placeholder = drain_.placeholders[i];
      problem_.placeholders.push_back({placeholder.name, *placeholder.pod});
      const std::optional<Slot> slot = state_.Find(placeholder.node);
      if (!slot.has_value()) continue;
      LeavingPod pod;
      pod.position = static_cast<int32_t>(i);
      pod.placeholder = true;
      problem_.nodes[static_cast<size_t>(node_of_[IndexOf(*slot)])].pods.push_back(pod);
    }
  }

  const DrainProblem& drain_;
  const ClusterState& state_;
  const DrainOptions& options_;
  const DisturbancePrices& prices_;
  DisruptionBudgets budgets_;
  PodJudge judge_;
  std::vector<int32_t> node_of_;  // by slot
  ConsolidationProblem problem_;
  std::vector<FixedNode> fixed_;
};

}  // namespace

ConsolidationQuestion PrepareConsolidation(const DrainProblem& drain, const DrainOptions& options,
                                           NodeGroupSpan groups, const DisturbancePrices& prices) {
  return QuestionMaker(drain, options, prices).Make(groups);
}

void SetAges(ConsolidationProblem* problem) {
  for (ConsolidationNode& node : problem->nodes) {
    const std::optional<int64_t>& created_s = problem->cluster->traits(node.slot).created_s;
    if (!created_s.has_value()) continue;
    node.age_hours = static_cast<double>(std::max<int64_t>(0, problem->now_s - *created_s)) / 3'600;
  }
}

}  // namespace loadline
