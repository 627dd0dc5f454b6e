// MeasureUtilization from bytes to bytes, in a view that holds the cluster already.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/size.pb.h"
#include "plugin/service/engine.h"

namespace loadline {
namespace {

constexpr int kGroups = 20;
constexpr int kShapes = 2'000;

void AddQuantities(const std::string& cpu, const std::string& memory,
                   google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  for (const auto& [key, value] : {std::pair{"cpu", cpu}, std::pair{"memory", memory}}) {
    auto* const entry = entries->Add();
    entry->set_key(key);
    entry->mutable_value()->set_string(value);
  }
}

std::string Node(int32_t i) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(absl::StrCat("ip-10-0-", i / 250, "-", i % 250, ".ec2.internal"));
  node.mutable_metadata()->mutable_creation_timestamp()->set_seconds(1'700'000'000 + i);
  auto* const label = node.mutable_metadata()->add_labels();
  label->set_key("pool");
  label->set_value(absl::StrCat("pool-", i % kGroups));
  auto* const allocatable = node.mutable_status()->mutable_allocatable();
  AddQuantities("16", "64Gi", allocatable);
  auto* const pods = allocatable->Add();
  pods->set_key("pods");
  pods->mutable_value()->set_string("110");
  return node.SerializeAsString();
}

// Pods of the group of the node that they run on; one in 30 is of a DaemonSet.
std::string Pod(int32_t shape) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  auto* const label = pod.mutable_metadata()->add_labels();
  label->set_key("app");
  label->set_value(absl::StrCat("app-", shape));
  auto* const selector = pod.mutable_spec()->add_node_selector();
  selector->set_key("pool");
  selector->set_value(absl::StrCat("pool-", shape % kGroups));
  auto* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind(shape / kGroups % 30 == 0 ? "DaemonSet" : "ReplicaSet");
  owner->set_name(absl::StrCat("app-", shape));
  owner->set_controller(true);
  AddQuantities(absl::StrCat(200 + shape % 300, "m"), absl::StrCat(500 + shape % 900, "Mi"),
                pod.mutable_spec()->add_containers()->mutable_resources()->mutable_requests());
  return pod.SerializeAsString();
}

// 30 pods on each node.
void Fill(int32_t nodes, Engine* engine) {
  constexpr int32_t kPerChunk = 500;
  int32_t index = 0;
  for (int32_t first = 0; first < nodes; first += kPerChunk) {
    v1::SyncRequest sync;
    v1::Changes* const changes = sync.mutable_changes();
    changes->set_view("bench");
    changes->set_epoch(1);
    changes->set_revision(1);
    changes->mutable_full_list()->set_index(index++);
    changes->mutable_full_list()->set_last(first + kPerChunk >= nodes);
    for (int32_t i = 0; first == 0 && i < kShapes; ++i) {
      auto* const shape = changes->add_pod_shapes();
      shape->set_id(i);
      shape->set_pod(Pod(i));
    }
    for (int32_t i = first; i < std::min(nodes, first + kPerChunk); ++i) {
      auto* const node = changes->add_nodes();
      node->set_slot(i);
      node->set_node(Node(i));
      for (int32_t k = 0; k < 30; ++k) {
        auto* const pod = node->add_pods();
        pod->set_shape((i + kGroups * (7 * i + k)) % kShapes);
        pod->set_name(absl::StrCat("pod-", i, "-", k));
      }
    }
    const auto synced = engine->Call("/loadline.v1.ClusterState/Sync", sync.SerializeAsString(), Deadline());
    if (!synced.ok()) std::abort();
  }
}

std::string Request(v1::SizeOptions::Mode mode) {
  v1::MeasureUtilizationRequest request;
  request.mutable_changes()->set_view("bench");
  request.mutable_changes()->set_epoch(1);
  request.mutable_changes()->set_base_revision(1);
  request.mutable_changes()->set_revision(1);
  request.set_now_milliseconds(1'800'000'000'000);
  request.mutable_state();
  for (int i = 0; i < kGroups; ++i) {
    v1::SizedGroup* const group = request.add_groups();
    group->set_node_group(absl::StrCat("group-", i));
    group->add_labels()->set_key("pool");
    group->mutable_labels(0)->set_value(absl::StrCat("pool-", i));
    v1::SizeOptions* const options = group->mutable_options();
    options->set_mode(mode);
    options->set_max_nodes(1000);
    options->set_scale_up_percent(70);
    options->set_taint_upper_percent(60);
    options->set_taint_lower_percent(40);
    options->set_slow_rate(2);
    options->set_fast_rate(5);
    options->set_soft_grace_milliseconds(60'000);
    options->set_hard_grace_milliseconds(600'000);
    options->set_cool_down_milliseconds(120'000);
    options->set_scale_on_starve(true);
  }
  for (int32_t i = 0; i < 100; ++i) {
    v1::WaitingPods* const pods = request.add_pods();
    pods->set_pod(Pod(i + kGroups));
    pods->set_count(10);
  }
  return request.SerializeAsString();
}

void Measure(benchmark::State& state, v1::SizeOptions::Mode mode) {
  Engine engine{EngineLimits()};
  Fill(static_cast<int32_t>(state.range(0)), &engine);
  const std::string request = Request(mode);
  for (auto _ : state) {
    const auto answer = engine.Call("/loadline.v1.Autoscaler/MeasureUtilization", request, Deadline());
    if (!answer.ok()) state.SkipWithError(std::string(answer.status().message()).c_str());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// 30 pods a node, in 20 groups; 1,000 pods wait.
void BM_MeasureUtilization(benchmark::State& state) { Measure(state, v1::SizeOptions::DEFAULT); }
void BM_MeasureUtilizationCompat(benchmark::State& state) { Measure(state, v1::SizeOptions::COMPAT); }
BENCHMARK(BM_MeasureUtilization)->Arg(1'000)->Arg(5'000)->Arg(15'000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_MeasureUtilizationCompat)->Arg(5'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
