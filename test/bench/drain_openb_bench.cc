// Benchmarks of the nodes of the openb trace that can be removed when a third of its pods has ended. OPENB
// names the folder of the trace, which is not part of this tree.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/drain/planner.h"
#include "core/fit/fit_search.h"
#include "core/price/price_catalogue.h"
#include "core/price/price_model.h"
#include "test/core/drain/drain_cluster.h"
#include "test/core/drain/naive_checker.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

constexpr char kGpuShare[] = "example.com/gpu-milli";  // pods of the trace share GPUs

// The fields of a list, without its header.
std::vector<std::vector<std::string>> ReadCsv(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::stringstream fields(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    row.resize(12);
  }
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

int64_t Number(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

// Nodes by what they offer, each kind a group with the price of the GCE list.
void AddNodes(const std::vector<std::vector<std::string>>& rows, const PriceModel& prices,
              DrainCluster* cluster) {
  std::map<std::string, GroupIndex> groups;
  cluster->groups.clear();
  for (const std::vector<std::string>& row : rows) {
    const std::string kind = row[1] + "/" + row[2] + "/" + row[3] + "/" + row[4];
    const auto [group, is_new] = groups.try_emplace(kind, cluster->groups.end_index());
    const int64_t gpus = Number(row[3]);
    if (is_new) {
      PricedNode node{.milli_cpu = Number(row[1]), .memory_bytes = Number(row[2]) * kMi};
      node.gpus = gpus;
      cluster->groups.push_back({.name = kind, .node_price = PriceNode(prices, node).price});
    }
    ++cluster->groups[group->second].target;
    DrainNode& node = cluster->nodes.emplace_back();
    node.group = group->second;
    node.node.name = row[0];
    node.node.allocatable = {
        {"cpu", Number(row[1])}, {"memory", Number(row[2]) * kMi}, {"pods", 110}, {kGpuShare, gpus * 1000}};
  }
}

// Places pods in the order of the trace where they fit first, and then lets every third one end.
void AddPods(const std::vector<std::vector<std::string>>& rows, DrainCluster* cluster) {
  FitCluster empty;
  for (const DrainNode& node : cluster->nodes) empty.Add(node.node);
  std::vector<FitPod> pods;
  for (const std::vector<std::string>& row : rows) {
    FitPod pod = ReplicaPod(row[0], Number(row[1]), Number(row[2]) * kMi);
    pod.labels.clear();
    if (const int64_t share = Number(row[3]) * Number(row[4]); share > 0)
      pod.requests.push_back({kGpuShare, share});
    pods.push_back(std::move(pod));
  }
  empty.state().set_resource_names(empty.names());
  Snapshot snapshot(empty.state());
  const FitOptions options;
  FitSearch search(&snapshot, &options);
  std::map<std::vector<std::pair<std::string, int64_t>>, SearchPod> handles;
  for (size_t i = 0; i < pods.size(); ++i) {
    const auto found = handles.find(pods[i].requests);
    const SearchPod handle = found != handles.end() ? found->second : search.Add(empty.Incoming(pods[i]));
    handles.emplace(pods[i].requests, handle);
    const std::optional<NodeIndex> node = search.FirstFit(handle);
    if (!node.has_value()) continue;
    snapshot.PlacePod(*node, search.fit(handle).shape());
    if (i % 3 != 2) cluster->nodes[IndexOf(snapshot.slot(*node))].pods.push_back(pods[i]);
  }
}

// range(0): 0 plain greedy, 1 improved; range(1): the threshold of utilization, in percent.
void BM_PlanDrainOpenb(benchmark::State& state) {
  const char* const folder = std::getenv("OPENB");
  if (folder == nullptr) {
    state.SkipWithError("OPENB is not set: no trace");
    return;
  }
  const auto nodes = ReadCsv(std::string(folder) + "/openb_node_list_all_node.csv");
  const auto pods = ReadCsv(std::string(folder) + "/openb_pod_list_default.csv");
  std::ifstream list("manifests/prices/gce-us-central1.csv");
  const std::string csv((std::istreambuf_iterator<char>(list)), std::istreambuf_iterator<char>());
  const auto catalogue = ParsePriceCatalogue("gce-us-central1", csv);
  if (nodes.empty() || pods.empty() || !catalogue.ok()) {
    state.SkipWithError("the trace or the price list cannot be read; run it from the top of the tree");
    return;
  }
  DrainCluster cluster;
  PriceModel prices;
  prices.catalogues = {std::make_shared<const PriceCatalogue>(*catalogue)};
  AddNodes(nodes, prices, &cluster);
  AddPods(pods, &cluster);
  DrainModel model(cluster);
  DrainOptions options;
  options.improve = state.range(0) == 1;
  options.eligibility.utilization_threshold = static_cast<double>(state.range(1)) / 100;
  double total = 0;
  int64_t left = 0;
  for (const DrainNode& node : cluster.nodes) {
    total += *cluster.groups[*node.group].node_price;
    left += static_cast<int64_t>(node.pods.size());
  }
  NamedPlan named;
  for (auto _ : state) {
    DrainPlanner planner;
    WorkBudget budget;
    const DrainPlan& plan = planner.Plan(model.problem(), options, &budget);
    state.PauseTiming();
    named = Named(model, plan);
    state.counters["usd_per_hour_saved"] = plan.price_saved;
    state.ResumeTiming();
  }
  if (!CheckPlan(cluster, {}, named).empty()) state.SkipWithError("the plan does not pass the checker");
  int64_t empty = 0;
  for (const NamedRemoval& removal : named.remove) empty += removal.empty;
  state.counters["nodes"] = static_cast<double>(cluster.nodes.size());
  state.counters["pods"] = static_cast<double>(left);
  state.counters["removed"] = static_cast<double>(named.remove.size());
  state.counters["removed_empty"] = static_cast<double>(empty);
  state.counters["usd_per_hour"] = total;
}
BENCHMARK(BM_PlanDrainOpenb)->ArgsProduct({{0, 1}, {50, 100}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
