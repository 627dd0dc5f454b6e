// How long it takes to price and to rank.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/expand/rank_options.h"
#include "core/price/price_catalogue.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/scale_up.pb.h"
#include "plugin/service/engine.h"

namespace loadline {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
// Pods are of so many shapes, in runs: 10,000 pods of 2 to 3 replicas would be no cluster.
constexpr int64_t kPodShapes = 100;

// A table with 1,000 instance types of 50 families.
std::string Catalogue() {
  std::string csv = "instance_type,capacity_vcpu,on_demand_usd_per_hour\n";
  for (int i = 0; i < 1000; ++i) {
    const int cpus = 2 << (i % 6);
    const int family = i / 20;
    csv += "f" + std::to_string(family) + ".t" + std::to_string(i % 20) + "," + std::to_string(cpus) + "," +
           std::to_string(0.04 * cpus + 0.0001 * family) + "\n";
  }
  return csv;
}

struct Question {
  std::vector<PodRequests> pods;
  std::vector<ExpansionOption> options;
  PriceModel prices;
  RankPolicy policy = ClusterAutoscalerRanking();

  Question(int64_t option_count, int64_t pod_count) {
    std::mt19937_64 random(7);
    for (int64_t i = 0; i < kPodShapes; ++i) {
      pods.push_back({.milli_cpu = 50 + static_cast<int64_t>(random() % 8000),
                      .memory_bytes = static_cast<int64_t>(random() % 64) * kGib / 4});
    }
    prices.catalogues.push_back(
        std::make_shared<const PriceCatalogue>(*ParsePriceCatalogue("table", Catalogue())));
    for (int64_t i = 0; i < option_count; ++i) {
      ExpansionOption& option = options.emplace_back();
      const int64_t cpus = int64_t{2} << (i % 6);
      option.node_group = "group-" + std::to_string(random() % 100'000);
      option.node_count = 1 + pod_count / cpus;
      // One in ten is not listed and is priced by its family.
      option.node.instance_type =
          "f" + std::to_string(i % 50) + (i % 10 == 0 ? ".x" : ".t") + std::to_string(i % 20);
      option.node.milli_cpu = cpus * 1000;
      option.node.memory_bytes = cpus * 4 * kGib;
      for (size_t shape = 0; shape < pods.size(); ++shape)
        option.pods.push_back({shape, pod_count / kPodShapes});
    }
  }
};

// From decoded options to the order with its terms.
void BM_RankOptions(benchmark::State& state) {
  const Question question(state.range(0), state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(RankOptions({question.pods, question.options, question.prices, question.policy,
                                          TablePreferredNode(PreferredTable::kClusterAutoscaler, 1000)}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_RankOptions)->Args({20, 10'000})->Args({200, 10'000})->Unit(benchmark::kMicrosecond);

k8s::v1::QuantityEntry Entry(const std::string& key, const std::string& value) {
  k8s::v1::QuantityEntry entry;
  entry.set_key(key);
  entry.mutable_value()->set_string(value);
  return entry;
}

v1::RankOptionsRequest RequestOf(const Question& question) {
  v1::RankOptionsRequest request;
  for (const PodRequests& pod : question.pods) {
    k8s::v1::Pod message;
    k8s::v1::ResourceRequirements* const resources =
        message.mutable_spec()->add_containers()->mutable_resources();
    *resources->add_requests() = Entry("cpu", std::to_string(pod.milli_cpu) + "m");
    *resources->add_requests() = Entry("memory", std::to_string(pod.memory_bytes));
    request.add_pods(message.SerializeAsString());
  }
  for (const ExpansionOption& option : question.options) {
    k8s::v1::Node node;
    node.mutable_metadata()->set_name("template-" + option.node_group);
    k8s::v1::StringEntry* const label = node.mutable_metadata()->add_labels();
    label->set_key("node.kubernetes.io/instance-type");
    label->set_value(option.node.instance_type);
    *node.mutable_status()->add_capacity() = Entry("cpu", std::to_string(option.node.milli_cpu) + "m");
    *node.mutable_status()->add_capacity() = Entry("memory", std::to_string(option.node.memory_bytes));
    v1::ExpansionOption* const message = request.add_options();
    message->set_node_group(option.node_group);
    message->set_node_count(static_cast<int32_t>(option.node_count));
    message->set_template_node(node.SerializeAsString());
    for (const PodRun& run : option.pods) {
      v1::PodRun* const out = message->add_pods();
      out->set_pod(static_cast<int32_t>(run.pod));
      out->set_count(static_cast<int32_t>(run.count));
    }
  }
  request.mutable_policy()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  request.set_cluster_nodes(1000);
  v1::PriceCatalogue* const catalogue = request.mutable_prices()->add_catalogues();
  catalogue->set_name("table");
  catalogue->set_csv(Catalogue());
  return request;
}

// From bytes to bytes: also decodes pods, templates and a catalogue of 1,000 types, and writes the answer.
void BM_RankOptionsBytes(benchmark::State& state) {
  const std::string request = RequestOf(Question(state.range(0), state.range(1))).SerializeAsString();
  Engine engine{EngineLimits{}};
  for (auto _ : state) {
    const auto answer = engine.Call("/loadline.v1.Autoscaler/RankOptions", request, Deadline());
    if (!answer.ok()) return state.SkipWithError(std::string(answer.status().message()).c_str());
    benchmark::DoNotOptimize(*answer);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(request.size()));
}
BENCHMARK(BM_RankOptionsBytes)->Args({200, 10'000})->Unit(benchmark::kMicrosecond);

void BM_ParsePriceCatalogue(benchmark::State& state) {
  const std::string csv = Catalogue();
  for (auto _ : state) benchmark::DoNotOptimize(ParsePriceCatalogue("table", csv));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(csv.size()));
}
BENCHMARK(BM_ParsePriceCatalogue)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace loadline
