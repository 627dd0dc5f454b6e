// Random clusters that cost too much, as plain lists: the truth that plans are followed on and checked
// against.
#ifndef LOADLINE_TEST_TESTING_CONSOLIDATION_CLUSTER_H_
#define LOADLINE_TEST_TESTING_CONSOLIDATION_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/consolidate/consolidation.h"
#include "test/testing/fit_cluster.h"

namespace loadline {

// A type of nodes, which is a group. Memory in MiB.
struct ModelType {
  std::string name;
  int64_t cpu = 0;
  int64_t memory = 0;
  double usd = 0;
  std::string zone = "a";
  int64_t min = 0;
  int64_t max = 1'000'000;
  bool spot = false;
  std::optional<double> usd_of_old = std::nullopt;  // of existing nodes, which are of another kind
};

struct ModelApp {
  int64_t cpu = 0;
  int64_t memory = 0;
  bool apart = false;             // no two on one node
  int32_t max_skew = 0;           // over zones; 0: any
  std::optional<int64_t> budget;  // how many may go at once
  double usd = 0;                 // what it costs to disturb one
  int64_t cpu_limit = 0;          // 0: none
  int64_t memory_limit = 0;
};

struct ModelPod {
  std::string name;
  size_t app = 0;
};

struct ModelNode {
  std::string name;
  size_t type = 0;
  bool may_go = true;
  std::vector<ModelPod> pods;
};

struct ModelCluster {
  std::vector<ModelType> types;
  std::vector<ModelApp> apps;
  std::vector<ModelNode> nodes;
  int64_t daemon_cpu = 0;  // of a pod that each node carries
  std::optional<int64_t> max_nodes;
  // Load lines, in thousandths; 0: none.
  int64_t cpu_line = 0;
  int64_t memory_line = 0;

  double Cost() const {
    double cost = 0;
    for (const ModelNode& node : nodes) cost += types[node.type].usd;
    return cost;
  }
};

// c5, m5 and r5 in four sizes, at list prices per hour in us-east-1.
inline std::vector<ModelType> TwelveTypes() {
  std::vector<ModelType> types;
  const auto add = [&](const std::string& family, int64_t gib_per_cpu, double usd_per_cpu) {
    for (const auto& [size, cpus] :
         {std::pair<std::string, int64_t>{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}}) {
      types.push_back({absl::StrCat(family, ".", size), cpus * 1000 - 80, cpus * gib_per_cpu * 1024 - 700,
                       usd_per_cpu * static_cast<double>(cpus)});
    }
  };
  add("c5", 2, 0.0425);
  add("m5", 4, 0.048);
  add("r5", 8, 0.063);
  return types;
}

struct RandomClusterOptions {
  size_t nodes = 10;
  size_t apps = 12;
  double most_full = 1;  // nodes are filled to a share between 0.2 and this
  int64_t smallest_pod = 100;
  bool rules = false;  // some pods keep apart, spread, have budgets, and some nodes may not go
  bool zones = false;
};

inline ModelCluster RandomModel(uint32_t seed, const RandomClusterOptions& options) {
  std::mt19937 random(seed);
  const auto below = [&](size_t end) { return static_cast<size_t>(random()) % end; };
  ModelCluster cluster;
  cluster.types = TwelveTypes();
  if (options.zones) {
    std::vector<ModelType> zoned;
    for (const char* zone : {"a", "b", "c"}) {
      for (ModelType type : cluster.types) {
        type.name += absl::StrCat("-", zone);
        type.zone = zone;
        zoned.push_back(std::move(type));
      }
    }
    cluster.types = std::move(zoned);
  }
  for (size_t i = 0; i < options.apps; ++i) {
    ModelApp app;
    // From a quarter to three cores and from one to eight GiB, in this proportion.
    app.cpu = options.smallest_pod * static_cast<int64_t>(1 + below(12));
    app.memory =
        options.smallest_pod * 4 * static_cast<int64_t>(1 + below(8)) + static_cast<int64_t>(below(128));
    if (options.rules && below(5) == 0) app.apart = true;
    if (options.rules && options.zones && below(5) == 0) app.max_skew = static_cast<int32_t>(1 + below(2));
    if (options.rules && below(3) == 0) app.budget = static_cast<int64_t>(1 + below(4));
    cluster.apps.push_back(app);
  }
  std::map<std::pair<size_t, std::string>, int64_t> in_zone;
  int64_t pods = 0;
  for (size_t i = 0; i < options.nodes; ++i) {
    ModelNode node;
    node.name = absl::StrCat("node-", 10'000 + i);
    node.type = below(cluster.types.size());
    node.may_go = !options.rules || below(20) != 0;
    const ModelType& type = cluster.types[node.type];
    const double full = 0.2 + (options.most_full - 0.2) * static_cast<double>(random() % 1000) / 1000;
    int64_t cpu = static_cast<int64_t>(static_cast<double>(type.cpu) * full);
    int64_t memory = static_cast<int64_t>(static_cast<double>(type.memory) * full);
    for (int failed = 0; failed < 8 && node.pods.size() < 230;) {
      const size_t a = below(cluster.apps.size());
      const ModelApp& app = cluster.apps[a];
      const bool here =
          std::any_of(node.pods.begin(), node.pods.end(), [&](const ModelPod& pod) { return pod.app == a; });
      int64_t least = INT64_MAX;
      for (const char* zone : {"a", "b", "c"}) least = std::min(least, in_zone[{a, zone}]);
      const bool skewed = app.max_skew > 0 && in_zone[{a, type.zone}] + 1 - least > app.max_skew;
      if (app.cpu > cpu || app.memory > memory || (app.apart && here) || skewed) {
        ++failed;
        continue;
      }
      cpu -= app.cpu;
      memory -= app.memory;
      ++in_zone[{a, type.zone}];
      node.pods.push_back({absl::StrCat("pod-", ++pods), a});
    }
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

// The same cluster as the planner sees it.
class PlannedCluster {
 public:
  explicit PlannedCluster(const ModelCluster& model) {
    problem_.cluster = &cluster_.state();
    std::vector<int64_t> counts(model.types.size(), 0);
    std::map<size_t, int32_t> budget_of;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const ModelNode& node = model.nodes[i];
      std::vector<FitPod> pods;
      ConsolidationNode entry;
      entry.slot = Slot{static_cast<int32_t>(i)};
      entry.group = IndexAt<GroupIndex>(node.type);
      entry.usd_per_hour = model.types[node.type].usd_of_old.value_or(model.types[node.type].usd);
      entry.may_go = node.may_go;
      for (const ModelPod& pod : node.pods) {
        const ModelApp& app = model.apps[pod.app];
        LeavingPod leaving;
        leaving.position = static_cast<int32_t>(pods.size());
        leaving.usd = app.usd;
        if (app.budget.has_value()) {
          const auto [found, is_new] =
              budget_of.try_emplace(pod.app, static_cast<int32_t>(problem_.budgets.size()));
          if (is_new) problem_.budgets.push_back(*app.budget);
          leaving.budget = found->second;
        }
        entry.pods.push_back(leaving);
        pods.push_back(Pod(app, pod.app, pod.name));
      }
      if (model.daemon_cpu > 0) pods.push_back(Daemon(model));
      cluster_.Add(Node(model.types[node.type], node.name), pods);
      problem_.nodes.push_back(std::move(entry));
      ++counts[node.type];
    }
    for (size_t i = 0; i < model.types.size(); ++i) {
      const ModelType& type = model.types[i];
      NodeGroup group;
      group.name = type.name;
      group.model = NodeModel{cluster_.Shape(Node(type, ""))};
      group.usd_per_hour = type.usd;
      group.priced.spot = type.spot;
      if (type.usd_of_old.has_value()) group.other_prices = OtherPrices(model, i);
      group.min_nodes = type.min;
      group.max_nodes = type.max;
      group.target = counts[i];
      groups_.push_back(std::move(group));
    }
    problem_.groups = StrongSpan<GroupIndex, const NodeGroup>(groups_);
    cluster_.state().set_resource_names(cluster_.names());
    if (model.daemon_cpu > 0) problem_.daemons.push_back(cluster_.Incoming(Daemon(model)));
    problem_.max_nodes = model.max_nodes;
    problem_.now_s = 1'000'000;
  }

  ConsolidationProblem& problem() { return problem_; }
  FitCluster& cluster() { return cluster_; }

  // The prices of the existing nodes of a type, each at ModelType::usd_of_old.
  static std::shared_ptr<const NodesOfOtherPrices> OtherPrices(const ModelCluster& model, size_t type) {
    const auto prices = std::make_shared<NodesOfOtherPrices>();
    prices->kinds.emplace_back().price.price = *model.types[type].usd_of_old;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      if (model.nodes[i].type == type) prices->kind_of[Slot{static_cast<int32_t>(i)}] = 0;
    }
    return prices;
  }

  static FitNode Node(const ModelType& type, const std::string& name) {
    FitNode node;
    node.name = name;
    node.allocatable = {{"cpu", type.cpu}, {"memory", type.memory}, {"pods", 234}};
    node.labels = {{kZone, type.zone}, {"type", type.name}};
    return node;
  }

  static FitPod Pod(const ModelApp& app, size_t number, const std::string& name) {
    FitPod pod;
    pod.name = pod.uid = name;
    pod.requests = {{"cpu", app.cpu}, {"memory", app.memory}};
    if (app.cpu_limit > 0) pod.limits.push_back({"cpu", app.cpu_limit});
    if (app.memory_limit > 0) pod.limits.push_back({"memory", app.memory_limit});
    const std::string label = absl::StrCat("app-", number);
    pod.labels = {{"app", label}};
    if (app.apart) pod.rules.anti_affinity = {Term(Select("app", label), "kubernetes.io/hostname")};
    if (app.max_skew > 0) {
      pod.rules.has_spread = true;
      pod.rules.spread = {{app.max_skew, kZone, Select("app", label)}};
    }
    return pod;
  }

  static FitPod Daemon(const ModelCluster& model) {
    FitPod pod;
    pod.requests = {{"cpu", model.daemon_cpu}};
    pod.labels = {{"daemon", "yes"}};
    return pod;
  }

 private:
  FitCluster cluster_;
  std::vector<NodeGroup> groups_;
  ConsolidationProblem problem_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_CONSOLIDATION_CLUSTER_H_
