// Prints what core/consolidate reaches on random small clusters, one JSON object per line, which
// consolidate_oracle.py compares with the optimum.
//
//   consolidate_answers CASES
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/consolidate/consolidator.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

using Json = nlohmann::json;

// All pods on new nodes of any type, as a packing.
Json ProblemOf(const ModelCluster& model) {
  std::vector<int64_t> counts(model.apps.size(), 0);
  for (const ModelNode& node : model.nodes) {
    for (const ModelPod& pod : node.pods) ++counts[pod.app];
  }
  Json problem = {{"limit", nullptr}, {"items", Json::array()}, {"types", Json::array()}};
  for (size_t i = 0; i < counts.size(); ++i) {
    const Json request = {model.apps[i].cpu, model.apps[i].memory};
    problem["items"].push_back({{"request", request}, {"count", counts[i]}});
  }
  for (const ModelType& type : model.types) {
    const std::vector<int64_t> most(counts.size(), 1'000'000);
    const Json free = {type.cpu, type.memory};
    problem["types"].push_back({{"free", free}, {"cost", type.usd}, {"limit", nullptr}, {"most", most}});
  }
  return problem;
}

void Answer(uint32_t seed) {
  const RandomClusterOptions options{.nodes = 4 + seed % 17, .apps = 3 + seed % 4, .smallest_pod = 400};
  const ModelCluster model = RandomModel(seed, options);
  PlannedCluster cluster(model);
  Snapshot snapshot(cluster.cluster().state());
  ConsolidationOptions eager;
  eager.least_saving_percent = 0;
  eager.least_saving_usd_per_hour = 1e-6;
  WorkBudget budget;
  const ConsolidationBill bill = Consolidator().Plan(&snapshot, cluster.problem(), eager, &budget).bill;
  const Json line = {{"seed", seed},
                     {"now", bill.now},
                     {"bound", bill.bound},
                     {"reachable", bill.reachable},
                     {"problem", ProblemOf(model)}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) {
  try {
    const int cases = argc > 1 ? std::atoi(argv[1]) : 24;
    for (int seed = 1; seed <= cases; ++seed) loadline::Answer(static_cast<uint32_t>(seed));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
