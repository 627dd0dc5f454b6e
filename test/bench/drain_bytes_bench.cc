// Benchmarks of nodes that can be removed together: from the bytes of a question to those of its answer.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/service/engine.h"

namespace loadline {
namespace {

constexpr int32_t kNodesPerChunk = 500;
constexpr int32_t kPodsPerNode = 40;

void SetAmount(google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries, const std::string& name,
               const std::string& amount) {
  k8s::v1::QuantityEntry* const entry = entries->Add();
  entry->set_key(name);
  entry->mutable_value()->set_string(amount);
}

std::string PodBytes() {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  k8s::v1::StringEntry* const annotation = pod.mutable_metadata()->add_annotations();
  annotation->set_key("cluster-autoscaler.kubernetes.io/safe-to-evict");
  annotation->set_value("true");
  auto* const requests = pod.mutable_spec()->add_containers()->mutable_resources()->mutable_requests();
  SetAmount(requests, "cpu", "100m");
  SetAmount(requests, "memory", "100Mi");
  return pod.SerializeAsString();
}

std::string NodeBytes(int32_t slot) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name("node-" + std::to_string(1'000'000 + slot));
  auto* const allocatable = node.mutable_status()->mutable_allocatable();
  SetAmount(allocatable, "cpu", "10");
  SetAmount(allocatable, "memory", "10000Mi");
  SetAmount(allocatable, "pods", "110");
  return node.SerializeAsString();
}

// Sends a cluster like that of BM_PlanDrain.
void Sync(int32_t nodes, Engine* engine, benchmark::State* state) {
  for (int32_t first = 0; first < nodes; first += kNodesPerChunk) {
    v1::SyncRequest request;
    v1::Changes* const changes = request.mutable_changes();
    changes->set_view("bench");
    changes->set_epoch(1);
    changes->set_revision(1);
    changes->mutable_full_list()->set_index(first / kNodesPerChunk);
    changes->mutable_full_list()->set_last(first + kNodesPerChunk >= nodes);
    if (first == 0) {
      v1::PodShape* const shape = changes->add_pod_shapes();
      shape->set_id(0);
      shape->set_pod(PodBytes());
      for (const v1::ObjectKind kind :
           {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
        changes->add_complete_kinds(kind);
      }
    }
    for (int32_t slot = first; slot < std::min(nodes, first + kNodesPerChunk); ++slot) {
      v1::NodeRecord* const record = changes->add_nodes();
      record->set_slot(slot);
      record->set_node(NodeBytes(slot));
      for (int32_t i = 0; i < kPodsPerNode; ++i) {
        v1::PodRecord* const pod = record->add_pods();
        const std::string name = "pod-" + std::to_string(slot) + "-" + std::to_string(i);
        pod->set_shape(0);
        pod->set_name(name);
        pod->set_uid("00000000-0000-0000-0000-" + name);
      }
    }
    const auto answer =
        engine->Call("/loadline.v1.ClusterState/Sync", request.SerializeAsString(), Deadline());
    if (!answer.ok()) state->SkipWithError(std::string(answer.status().message()).c_str());
  }
}

// Same as BM_PlanDrain, with a state that knows nothing: each time anew.
void BM_PlanDrainBytes(benchmark::State& state) {
  const int32_t nodes = static_cast<int32_t>(state.range(0));
  Engine engine{EngineLimits{}};
  Sync(nodes, &engine, &state);
  v1::PlanDrainRequest request;
  request.mutable_changes()->set_view("bench");
  request.mutable_changes()->set_epoch(1);
  request.mutable_changes()->set_base_revision(1);
  request.mutable_changes()->set_revision(1);
  request.set_now_s(1'700'000'000);
  request.set_compact(true);
  request.mutable_state();
  v1::DrainGroup* const group = request.add_groups();
  group->set_node_group("group");
  for (int32_t slot = 0; slot < nodes; ++slot) group->add_slots(slot);
  const std::string bytes = request.SerializeAsString();
  v1::PlanDrainResponse response;
  for (auto _ : state) {
    const auto answer = engine.Call("/loadline.v1.Autoscaler/PlanDrain", bytes, Deadline());
    state.PauseTiming();
    if (!answer.ok() || !response.ParseFromString(*answer)) state.SkipWithError("no answer");
    state.ResumeTiming();
  }
  state.counters["removed"] = static_cast<double>(response.remove_size());
  state.SetItemsProcessed(state.iterations() * nodes);
}
BENCHMARK(BM_PlanDrainBytes)->Arg(2'000)->Arg(15'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
