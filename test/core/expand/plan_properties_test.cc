// Plans of growth for any cluster: what they promise holds, by a count of our own.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "test/core/expand/growth_question.h"

namespace loadline {
namespace {

rc::Gen<std::string> AnyTopology() {
  return rc::gen::element(std::string(kZone), std::string(kHostnameLabel));
}
rc::Gen<std::string> AnyZone() {
  return rc::gen::element(std::string("a"), std::string("b"), std::string("c"));
}
rc::Gen<std::string> AnyPool() { return rc::gen::element(std::string("x"), std::string("y")); }

// Pods ask for hundreds: exactly as many as fit, or one unit short of it.
int64_t AnyRoom(int least, int most) {
  return *rc::gen::inRange(least, most) * 100 - *rc::gen::inRange(0, 2);
}

FitPod RandomGrowthPod(int i) {
  const std::string app = "app-" + std::to_string(i);
  FitPod pod{.requests = {{"cpu", *rc::gen::inRange(0, 12) * 100}, {"memory", *rc::gen::inRange(0, 900)}},
             .labels = {{"app", app}}};
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      pod.rules.anti_affinity = {Term(Select("app", app), *AnyTopology())};
      break;
    case 1:
      pod.rules.has_spread = true;
      pod.rules.spread = {{.max_skew = *rc::gen::inRange(1, 3),
                           .topology_key = *AnyTopology(),
                           .selector = Select("app", app)}};
      break;
    case 2:
      pod.rules.host_ports = {{8080, "TCP", "0.0.0.0"}};
      break;
    case 3:
      pod.rules.node_selector = Labels(std::vector<Label>{{"pool", *AnyPool()}});
      break;
    case 4:
      pod.rules.node_affinity = NodeSelector{
          {{.labels = {
                {kZone, *rc::gen::element(SelectorOperator::kIn, SelectorOperator::kNotIn), {*AnyZone()}}}}}};
      break;
    default:
      break;
  }
  if (*rc::gen::inRange(0, 3) == 0) pod.rules.tolerations = {{"dedicated", "Exists", "", ""}};
  return pod;
}

// Nodes that are there run some of the pods, also more than they have room for.
PlanningQuestion RandomGrowthQuestion() {
  PlanningQuestion question;
  std::vector<FitPod> apps;
  for (int i = 0; i < *rc::gen::inRange(1, 6); ++i) apps.push_back(RandomGrowthPod(i));
  for (int i = 0; i < *rc::gen::inRange(0, 4); ++i) {
    FitNode node{.name = "old-" + std::to_string(i),
                 .allocatable = {{"cpu", AnyRoom(1, 20)}, {"memory", 1000}, {"pods", 5}},
                 .labels = {{kZone, i % 2 == 0 ? "a" : "b"}}};
    if (*rc::gen::inRange(0, 4) == 0) node.taints = {{"dedicated", "", "NoSchedule"}};
    std::vector<FitPod> running;
    for (const FitPod& pod : apps) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      running.push_back(pod);
      running.back().name = running.back().uid = pod.labels[0].value + "-on-" + node.name;
    }
    question.AddOld(node, running);
  }
  for (const FitPod& pod : apps) question.Pods(pod, *rc::gen::inRange(0, 12));
  const bool with_priorities = *rc::gen::inRange(0, 3) == 0;
  for (int i = 0; i < *rc::gen::inRange(1, 5); ++i) {
    question.Add(
        {.name = "group-" + std::to_string(i),
         .milli_cpu = AnyRoom(5, 40),
         .memory = *rc::gen::inRange(500, 4000),
         .usd = *rc::gen::inRange(1, 20) * 0.25,
         .max = *rc::gen::inRange(0, 9),
         .zone = *AnyZone(),
         .pool = *AnyPool(),
         .tainted = *rc::gen::inRange(0, 4) == 0,
         .priority = with_priorities ? std::optional<int64_t>(*rc::gen::inRange(0, 3)) : std::nullopt});
  }
  if (*rc::gen::inRange(0, 3) == 0) question.options.max_new_nodes = *rc::gen::inRange(1, 10);
  return question;
}

// Invariants C1, C2, C3.
RC_GTEST_PROP(PlanProperty, HoldsWhatItPromises, ()) {
  PlanningQuestion question = RandomGrowthQuestion();
  const ScaleUpPlan plan = question.Ask();
  const CheckedGrowth check = CheckGrowth(question, plan);
  RC_ASSERT(check.adds_up);
  RC_ASSERT(check.stuck == 0);
  RC_ASSERT(check.forgotten == 0);
  double cost = 0;
  int64_t nodes = 0;
  StrongVector<GrowableIndex, int64_t> growth(question.groups.size(), 0);
  for (const PlannedNodes& entry : plan.nodes) {
    RC_ASSERT(!entry.pods.empty());
    growth[entry.group] += entry.nodes;
  }
  for (const GrowableIndex i : growth.indices()) {
    cost += UsdOf(question.groups[i]) * static_cast<double>(growth[i]);
    nodes += growth[i];
    RC_ASSERT(growth[i] <= std::max<int64_t>(0, question.groups[i].max_nodes - question.groups[i].target));
  }
  RC_ASSERT(nodes <= question.options.max_new_nodes.value_or(nodes));
  RC_ASSERT(std::abs(cost - plan.cost) < 1e-9);
  RC_ASSERT(plan.lower_bound <= plan.cost + 1e-9);
  if (question.groups[GrowableIndex{0}].priority.has_value()) return;
  // Never worse than the best single option, which starts from the same room on existing nodes.
  int64_t left = 0, existing = 0, asked = 0;
  for (const int64_t count : plan.unplaced) left += count;
  for (const PendingPods& entry : question.pods()) asked += entry.count;
  Snapshot snapshot(question.cluster.state());
  const FitOptions options;
  std::vector<PendingPods> pods = question.pods();
  for (PendingPods& entry : pods) entry.pod.names = question.cluster.names();
  WorkBudget budget;
  Estimator estimator(&snapshot, &options, std::move(pods), {}, &budget);
  snapshot.Fork();
  for (const ExistingUse& use : estimator.UseExistingRoom(&budget)) existing += use.pods.count;
  const int64_t single_left = asked - existing - plan.best_single.pods;
  RC_ASSERT(left <= single_left);
  if (left == single_left) RC_ASSERT(plan.cost <= plan.best_single.cost + 1e-9);
}

RC_GTEST_PROP(PlanProperty, TheOrderOfTheQuestionDecidesNothing, ()) {
  PlanningQuestion question = RandomGrowthQuestion();
  const ScaleUpPlan plan = question.Ask();
  const std::map<std::string, int64_t> nodes = NodesOf(plan, question);
  std::reverse(question.groups.begin(), question.groups.end());
  const ScaleUpPlan again = question.Ask();
  RC_ASSERT(NodesOf(again, question) == nodes);
  RC_ASSERT(again.cost == plan.cost);
  RC_ASSERT(again.unplaced == plan.unplaced);
}

}  // namespace
}  // namespace loadline
