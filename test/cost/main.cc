// Measures the cost of growing a cluster by least-waste, by price and by a joint plan. Prints one line of
// JSON per scenario, with the scenario itself: report.py makes a table of it, and compares it with the
// optimum.
//
//   cost_bench AWS_CSV GCE_CSV [OPENB_PODS_CSV]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/expand/plan.h"
#include "core/expand/rank_options.h"
#include "test/cost/groups.h"
#include "test/cost/scenarios.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/units.h"

namespace loadline::cost {
namespace {

constexpr int kScenariosPerSize = 60;

// A scenario in the core's types.
struct Question {
  explicit Question(const Scenario& scenario) : groups(GroupsOf<GrowableGroups>(scenario.types, &cluster)) {
    for (const PodKind& kind : scenario.pods) {
      pods.push_back(
          {cluster.Incoming({.requests = {{"cpu", kind.milli_cpu}, {"memory", kind.memory_mib * kMi}}}),
           kind.count});
    }
    daemons.push_back(cluster.Incoming({.requests = {{"cpu", 300}, {"memory", 512 * kMi}}}));
  }

  FitCluster cluster;
  FitOptions fit;
  std::vector<PendingPods> pods;
  std::vector<IncomingPod> daemons;
  GrowableGroups groups;
};

struct Outcome {
  double cost = 0;
  int64_t left = 0;
};

// One option after the other, as Cluster Autoscaler grows, until nothing waits.
Outcome Greedy(const Scenario& scenario, const Question& question, RankStrategy strategy) {
  Snapshot snapshot(question.cluster.state());
  WorkBudget unlimited;
  Estimator estimator(&snapshot, &question.fit, question.pods, question.daemons, &unlimited,
                      EstimateMode::kClusterAutoscaler);
  RankPolicy policy = ClusterAutoscalerRanking();
  policy.strategies = {strategy};
  const PriceModel prices;
  std::vector<PodRequests> requests;
  for (const PodKind& kind : scenario.pods) requests.push_back({kind.milli_cpu, kind.memory_mib * kMi});
  const NodeCapacity preferred = TablePreferredNode(policy.preferred_table, scenario.cluster_nodes);
  std::vector<int64_t> waiting;
  for (const PodKind& kind : scenario.pods) waiting.push_back(kind.count);
  Outcome outcome;
  for (;;) {
    std::vector<ExpansionOption> options;
    std::vector<NodeEstimate> estimates;
    WorkBudget budget;
    for (size_t i = 0; i < scenario.types.size(); ++i) {
      const NodeKind& type = scenario.types[i];
      NodeEstimate estimate =
          estimator.Estimate(question.groups[IndexAt<GrowableIndex>(i)], NodeLimiter(), &budget);
      ExpansionOption option{.node_group = type.name, .node_count = estimate.nodes};
      option.node = {
          .given = type.usd_per_hour, .milli_cpu = type.cpus * 1000, .memory_bytes = type.memory_mib * kMi};
      for (size_t k = 0; k < estimate.placed.size(); ++k) {
        if (estimate.placed[k] > 0) option.pods.push_back({k, estimate.placed[k]});
      }
      if (estimate.pods == 0) continue;
      options.push_back(std::move(option));
      estimates.push_back(std::move(estimate));
    }
    if (options.empty()) break;
    const size_t best = RankOptions({requests, options, prices, policy, preferred}).front().option;
    outcome.cost += static_cast<double>(options[best].node_count) * *options[best].node.given;
    for (size_t k = 0; k < waiting.size(); ++k) waiting[k] -= estimates[best].placed[k];
    estimator.set_counts(waiting);
  }
  for (const int64_t left : waiting) outcome.left += left;
  return outcome;
}

void Print(const Scenario& scenario, uint64_t seed) {
  const Question question(scenario);
  const Outcome waste = Greedy(scenario, question, RankStrategy::kLeastWaste);
  const Outcome price = Greedy(scenario, question, RankStrategy::kPrice);
  Snapshot snapshot(question.cluster.state());
  WorkBudget budget(10'000'000);
  const auto start = std::chrono::steady_clock::now();
  const ScaleUpPlan plan =
      PlanScaleUp(&snapshot, &question.fit, question.pods, question.daemons, question.groups, {}, &budget);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  int64_t left = 0;
  for (const int64_t count : plan.unplaced) left += count;
  int64_t pods = 0;
  for (const PodKind& kind : scenario.pods) pods += kind.count;
  const bool single_takes_all = plan.best_single.pods + left == pods;
  std::printf(
      "{\"cpus\":%lld,\"seed\":%llu,\"source\":\"%s\",\"least_waste\":%.9g,\"price\":%.9g,\"joint\":%.9g,",
      static_cast<long long>(scenario.cpus), static_cast<unsigned long long>(seed), scenario.source.c_str(),
      waste.cost, price.cost, plan.cost);
  std::printf("\"best_single\":%.9g,\"bound\":%.9g,\"seconds\":%.4f,\"left\":[%lld,%lld,%lld],\"pods\":[",
              single_takes_all ? plan.best_single.cost : 0.0, plan.lower_bound, time.count(),
              static_cast<long long>(waste.left), static_cast<long long>(price.left),
              static_cast<long long>(left));
  const char* comma = "";
  for (const PodKind& kind : scenario.pods) {
    std::printf("%s[%lld,%lld,%lld]", comma, static_cast<long long>(kind.milli_cpu),
                static_cast<long long>(kind.memory_mib), static_cast<long long>(kind.count));
    comma = ",";
  }
  std::printf("],\"types\":[");
  comma = "";
  for (const NodeKind& type : scenario.types) {
    std::printf("%s[\"%s\",%lld,%lld,%lld,%.9g]", comma, type.name.c_str(),
                static_cast<long long>(type.milli_cpu - 300), static_cast<long long>(type.memory_mib - 512),
                static_cast<long long>(type.pods - 1), type.usd_per_hour);
    comma = ",";
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: cost_bench AWS_CSV GCE_CSV [OPENB_PODS_CSV]\n");
    return 2;
  }
  const std::vector<NodeKind> aws = ReadAws(argv[1]);
  const std::vector<NodeKind> gce = ReadGce(argv[2]);
  const std::vector<PodKind> openb = argc > 3 ? ReadOpenb(argv[3]) : std::vector<PodKind>();
  if (aws.empty() || gce.empty()) {
    std::fprintf(stderr, "cost_bench: a catalogue has no node types\n");
    return 1;
  }
  for (const int64_t cpus : {20, 200, 2'000, 5'000}) {
    for (int i = 0; i < kScenariosPerSize; ++i) {
      const uint64_t seed = static_cast<uint64_t>(cpus * 1'000 + i);
      const bool from_aws = i % 2 == 0;
      const bool from_trace = !openb.empty() && i % 4 >= 2;
      Scenario scenario =
          MakeScenario(seed, cpus, from_aws ? aws : gce, from_trace ? openb : std::vector<PodKind>());
      scenario.source = std::string(from_aws ? "aws" : "gce") + (from_trace ? " openb" : " synthetic");
      Print(scenario, seed);
    }
  }
  return 0;
}

}  // namespace
}  // namespace loadline::cost

int main(int argc, char** argv) { return loadline::cost::Main(argc, argv); }
