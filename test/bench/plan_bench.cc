// A joint plan from bytes to bytes, at the size of Cluster Autoscaler's BenchmarkRunOnceScaleUp.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "plugin/service/engine.h"

namespace loadline {
namespace {

void AddQuantity(const std::string& key, const std::string& value,
                 google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  auto* const entry = entries->Add();
  entry->set_key(key);
  entry->mutable_value()->set_string(value);
}

std::string Node(const std::string& name, int64_t milli_cpu, int64_t memory_mib, const std::string& zone) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"kubernetes.io/hostname", name},
                                   {"topology.kubernetes.io/zone", zone}}) {
    auto* const label = node.mutable_metadata()->add_labels();
    label->set_key(key);
    label->set_value(value);
  }
  for (auto* const list :
       {node.mutable_status()->mutable_allocatable(), node.mutable_status()->mutable_capacity()}) {
    AddQuantity("cpu", absl::StrCat(milli_cpu, "m"), list);
    AddQuantity("memory", absl::StrCat(memory_mib, "Mi"), list);
    AddQuantity("pods", "110", list);
  }
  return node.SerializeAsString();
}

k8s::v1::Pod Pod(const std::string& app, int64_t milli_cpu, int64_t memory_mib) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  auto* const label = pod.mutable_metadata()->add_labels();
  label->set_key("app");
  label->set_value(app);
  auto* const requests = pod.mutable_spec()->add_containers()->mutable_resources()->mutable_requests();
  AddQuantity("cpu", absl::StrCat(milli_cpu, "m"), requests);
  AddQuantity("memory", absl::StrCat(memory_mib, "Mi"), requests);
  return pod;
}

// 30 pods of 100 kinds on each node, which are nearly full.
std::string SyncBytes(int64_t nodes) {
  v1::SyncRequest sync;
  v1::Changes* const changes = sync.mutable_changes();
  changes->set_view("bench");
  changes->set_epoch(1);
  changes->set_revision(1);
  changes->mutable_full_list()->set_last(true);
  for (int32_t i = 0; i < 100; ++i) {
    auto* const shape = changes->add_pod_shapes();
    shape->set_id(i);
    shape->set_pod(Pod(absl::StrCat("old-", i), 240 + i % 10, 800 + i).SerializeAsString());
  }
  for (int32_t i = 0; i < nodes; ++i) {
    auto* const node = changes->add_nodes();
    node->set_slot(i);
    node->set_node(Node(absl::StrCat("node-", i), 7900, 30000, absl::StrCat("zone-", i % 3)));
    for (int32_t k = 0; k < 30; ++k) {
      auto* const pod = node->add_pods();
      pod->set_shape((i + k) % 100);
      pod->set_name(absl::StrCat("pod-", i, "-", k));
    }
  }
  return sync.SerializeAsString();
}

struct Type {
  const char* name;
  int64_t milli_cpu, memory_mib;
  double usd;
};
constexpr Type kTypes[] = {{"c", 15800, 27000, 0.68},
                           {"m", 15800, 58000, 0.77},
                           {"r", 15800, 118000, 1.01},
                           {"xl", 63600, 240000, 3.07}};

// 12 node groups of 4 types in 3 zones, and a view of nearly full nodes.
void AddCluster(v1::ScaleUpProblem* problem) {
  v1::Changes* const changes = problem->mutable_changes();
  changes->set_view("bench");
  changes->set_epoch(1);
  changes->set_base_revision(1);
  changes->set_revision(1);
  for (const Type& type : kTypes) {
    for (int zone = 0; zone < 3; ++zone) {
      auto* const group = problem->add_groups();
      group->set_node_group(absl::StrCat(type.name, "-", zone));
      group->set_template_node(Node(absl::StrCat("template-", type.name, zone), type.milli_cpu,
                                    type.memory_mib, absl::StrCat("zone-", zone)));
      group->set_max_nodes(1000);
      group->set_node_usd_per_hour(type.usd);
    }
  }
}

// 48,000 pods of 48 Deployments, one entry each, and 2,000 of StatefulSets, each of which has labels of its
// own and so an entry of its own; 12 node groups of 4 types in 3 zones.
v1::PlanScaleUpRequest Request() {
  v1::PlanScaleUpRequest request;
  v1::ScaleUpProblem* const problem = request.mutable_problem();
  // An answer within a tenth of a second: the best that this much work finds.
  problem->set_max_work(800'000);
  AddCluster(problem);
  for (int64_t i = 0; i < 48; ++i) {
    auto* const pods = problem->add_pods();
    pods->mutable_pod()->set_pod(
        Pod(absl::StrCat("app-", i), 100 + 53 * i % 1900, 128 + 211 * i % 6000).SerializeAsString());
    pods->set_count(1000);
  }
  for (int64_t i = 0; i < 2000; ++i) {
    k8s::v1::Pod pod = Pod(absl::StrCat("set-", i / 500), 500, 2000);
    auto* const label = pod.mutable_metadata()->add_labels();
    label->set_key("apps.kubernetes.io/pod-index");
    label->set_value(absl::StrCat(i % 500));
    auto* const pods = problem->add_pods();
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(1);
  }
  return request;
}

void BM_PlanScaleUp(benchmark::State& state) {
  Engine engine{EngineLimits()};
  if (!engine.Call("/loadline.v1.ClusterState/Sync", SyncBytes(state.range(0)), Deadline()).ok()) {
    state.SkipWithError("Sync failed");
    return;
  }
  const std::string request = Request().SerializeAsString();
  absl::StatusOr<std::string> answer;
  for (auto _ : state) {
    answer = engine.Call("/loadline.v1.Autoscaler/PlanScaleUp", request, Deadline());
    if (!answer.ok()) state.SkipWithError(std::string(answer.status().message()).c_str());
  }
  v1::PlanScaleUpResponse response;
  if (!answer.ok() || !response.ParseFromString(*answer)) return;
  if (response.unplaced_size() > 0) state.SkipWithError("pods are left over");
  state.counters["request_bytes"] = static_cast<double>(request.size());
  state.counters["gap"] = response.gap();
  state.counters["usd_per_hour"] = response.usd_per_hour();
  state.counters["single_usd"] = response.best_single().usd_per_hour();
}
BENCHMARK(BM_PlanScaleUp)->Arg(1'000)->Unit(benchmark::kMillisecond);

// Returns a question with so many pods of pairwise different sizes.
std::string RequestOfSizes(int64_t pods) {
  v1::PlanScaleUpRequest request;
  v1::ScaleUpProblem* const problem = request.mutable_problem();
  AddCluster(problem);
  for (int64_t i = 0; i < pods; ++i) {
    auto* const entry = problem->add_pods();
    entry->mutable_pod()->set_pod(
        Pod("size", 100 + 37 * i % 3'900, 128 + 211 * i % 14'009).SerializeAsString());
    entry->set_count(1);
  }
  return request.SerializeAsString();
}

// Returns the most memory that the process has had, in bytes.
double PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Run it alone: `peak_bytes` is that of the process, of which `bytes_before` were in use before.
void BM_PlanScaleUpOfSizes(benchmark::State& state) {
  Engine engine{EngineLimits()};
  if (!engine.Call("/loadline.v1.ClusterState/Sync", SyncBytes(1'000), Deadline()).ok()) {
    state.SkipWithError("Sync failed");
    return;
  }
  const std::string request = RequestOfSizes(state.range(0));
  const double before = PeakBytes();
  absl::StatusOr<std::string> answer;
  for (auto _ : state) {
    answer = engine.Call("/loadline.v1.Autoscaler/PlanScaleUp", request, Deadline());
    if (!answer.ok()) state.SkipWithError(std::string(answer.status().message()).c_str());
  }
  v1::PlanScaleUpResponse response;
  if (!answer.ok() || !response.ParseFromString(*answer)) return;
  if (response.unplaced_size() > 0) state.SkipWithError("pods are left over");
  state.counters["gap"] = response.gap();
  state.counters["usd_per_hour"] = response.usd_per_hour();
  state.counters["single_usd"] = response.best_single().usd_per_hour();
  state.counters["bytes_before"] = before;
  state.counters["peak_bytes"] = PeakBytes();
}
BENCHMARK(BM_PlanScaleUpOfSizes)->Arg(8'200)->Arg(16'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
