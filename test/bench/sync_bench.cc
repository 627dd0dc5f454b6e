// Bringing the engine up to date, from bytes to bytes.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/score.pb.h"
#include "plugin/service/engine.h"

namespace loadline {
namespace {

constexpr char kSync[] = "/loadline.v1.ClusterState/Sync";
constexpr char kScore[] = "/loadline.v1.SchedulerExtender/Score";

void AddQuantity(google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* list, const std::string& name,
                 const std::string& text) {
  k8s::v1::QuantityEntry* entry = list->Add();
  entry->set_key(name);
  entry->mutable_value()->set_string(text);
}

// A node of 16 to 64 cores with 4 GiB each.
std::string NodeBytes(const std::string& name, uint64_t cores) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  auto* allocatable = node.mutable_status()->mutable_allocatable();
  AddQuantity(allocatable, "cpu", absl::StrCat(cores * 1000 - 80, "m"));
  AddQuantity(allocatable, "memory", absl::StrCat(cores * 4 * 1024 * 1024 - 131072, "Ki"));
  AddQuantity(allocatable, "ephemeral-storage", "95551679124");
  AddQuantity(allocatable, "pods", "110");
  return node.SerializeAsString();
}

// A pod of two containers. `labels`: metadata.labels on the wire.
std::string PodBytes(std::mt19937_64* random, const std::string& labels = "") {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_(absl::StrCat("team-", (*random)() % 20));
  *pod.mutable_metadata()->mutable_unknown_fields() += labels;
  for (const char* name : {"app", "sidecar"}) {
    k8s::v1::Container* container = pod.mutable_spec()->add_containers();
    container->set_name(name);
    auto* resources = container->mutable_resources();
    const uint64_t millis = 10 + (*random)() % 200;
    const uint64_t mebibytes = 16 + (*random)() % 512;
    AddQuantity(resources->mutable_requests(), "cpu", absl::StrCat(millis, "m"));
    AddQuantity(resources->mutable_requests(), "memory", absl::StrCat(mebibytes, "Mi"));
    AddQuantity(resources->mutable_limits(), "cpu", absl::StrCat(3 * millis, "m"));
    AddQuantity(resources->mutable_limits(), "memory", absl::StrCat(2 * mebibytes, "Mi"));
  }
  return pod.SerializeAsString();
}

// One entry of metadata.labels (field 11) on the wire.
std::string LabelBytes(const std::string& key, const std::string& value) {
  std::string entry;
  for (const auto& [field, text] : {std::pair{'\x0a', &key}, {'\x12', &value}}) {
    entry += field;
    entry += static_cast<char>(text->size());
    entry += *text;
  }
  return absl::StrCat("\x5a", std::string(1, static_cast<char>(entry.size())), entry);
}

std::string Uid(uint64_t number) {
  return absl::StrCat("3f2504e0-4f89-41d3-9a0c-", absl::Hex(number, absl::kZeroPad12));
}

// Splits a full list into serialized requests of about 1 MiB.
class FullListWriter {
 public:
  v1::Changes& changes() { return *request_.mutable_changes(); }
  void NodeDone() {
    if (changes().ByteSizeLong() > 1 << 20) Flush(false);
  }
  void ShapeDone() { NodeDone(); }
  std::vector<std::string> Finish() {
    Flush(true);
    return std::move(requests_);
  }

 private:
  void Flush(bool last) {
    changes().set_view("bench");
    changes().set_epoch(1);
    changes().set_revision(1);
    changes().mutable_full_list()->set_index(static_cast<int32_t>(requests_.size()));
    changes().mutable_full_list()->set_last(last);
    requests_.push_back(request_.SerializeAsString());
    request_.Clear();
  }

  v1::SyncRequest request_;
  std::vector<std::string> requests_;
};

// `distinct`: every pod has a shape of its own on the wire, as pods of StatefulSets and Jobs do by their
// labels; without it all pods share 2,000 shapes.
std::vector<std::string> FullList(int64_t nodes, int64_t pods_per_node, bool distinct) {
  std::mt19937_64 random(15);
  FullListWriter writer;
  const int64_t shapes = distinct ? nodes * pods_per_node : 2000;
  std::mt19937_64 resources(1);
  for (int64_t id = 0; id < shapes; ++id) {
    if (id % 40 == 0 && distinct) resources.seed(static_cast<uint64_t>(id / 40 % 50));
    v1::PodShape* shape = writer.changes().add_pod_shapes();
    shape->set_id(static_cast<int32_t>(id));
    const std::string name = absl::StrCat("set-", id / 40, "-", id % 40);
    shape->set_pod(
        distinct ? PodBytes(&resources, LabelBytes("statefulset.kubernetes.io/pod-name", name) +
                                            LabelBytes("controller-uid", Uid(static_cast<uint64_t>(id))))
                 : PodBytes(&random));
    writer.ShapeDone();
  }
  for (int64_t slot = 0; slot < nodes; ++slot) {
    v1::NodeRecord* node = writer.changes().add_nodes();
    node->set_slot(static_cast<int32_t>(slot));
    node->set_node(NodeBytes(absl::StrCat("node-", slot), 16 + random() % 49));
    for (int64_t i = 0; i < pods_per_node; ++i) {
      const int64_t number = slot * pods_per_node + i;
      v1::PodRecord* pod = node->add_pods();
      pod->set_shape(static_cast<int32_t>(distinct ? number : static_cast<int64_t>(random() % 2000)));
      pod->set_name(absl::StrCat("deployment-", number % 997, "-7d4b9c6f5-", absl::Hex(number)));
      pod->set_uid(Uid(static_cast<uint64_t>(number)));
    }
    writer.NodeDone();
  }
  return writer.Finish();
}

void Send(Engine* engine, const std::vector<std::string>& requests, benchmark::State& state) {
  for (const std::string& request : requests) {
    const absl::StatusOr<std::string> response = engine->Call(kSync, request, Deadline());
    if (!response.ok()) state.SkipWithError(response.status().ToString().c_str());
  }
}

double AllocatedMebibytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

void SyncBench(benchmark::State& state, int64_t pods_per_node, bool distinct) {
  const std::vector<std::string> requests = FullList(state.range(0), pods_per_node, distinct);
  double held = 0;
  for (auto _ : state) {
    const double before = AllocatedMebibytes();
    auto engine = std::make_unique<Engine>(EngineLimits{});
    Send(engine.get(), requests, state);
    held = AllocatedMebibytes() - before;
    state.PauseTiming();
    engine.reset();
    state.ResumeTiming();
  }
  state.counters["held_MiB"] = held;
  state.SetItemsProcessed(state.iterations() * state.range(0) * pods_per_node);
}

// 40 pods a node of 2,000 shapes.
void BM_Sync(benchmark::State& state) { SyncBench(state, 40, false); }
BENCHMARK(BM_Sync)->Arg(15'000)->Unit(benchmark::kMillisecond);

// 30 pods a node, no two with the same labels.
void BM_SyncDistinct(benchmark::State& state) { SyncBench(state, 30, true); }
BENCHMARK(BM_SyncDistinct)->Arg(5'000)->Unit(benchmark::kMillisecond);

// A scheduling cycle: one changed node of 5,000, then the scores of 500.
void BM_SyncDelta(benchmark::State& state) {
  Engine engine(EngineLimits{});
  Send(&engine, FullList(state.range(0), 30, false), state);
  std::mt19937_64 random(5);
  v1::ScoreRequest request;
  request.set_pod(PodBytes(&random));
  request.mutable_policy()->set_preset(v1::ScorePolicy::STRICT);
  for (int64_t slot = 0; slot < 500; ++slot)
    request.add_slots(static_cast<int32_t>(slot * state.range(0) / 500));
  std::vector<std::string> requests;
  for (int64_t revision = 1; revision <= 1000; ++revision) {
    v1::Changes& changes = *request.mutable_changes();
    changes.set_view("bench");
    changes.set_epoch(1);
    const int64_t slot = static_cast<int64_t>(random() % static_cast<uint64_t>(state.range(0)));
    changes.clear_nodes();
    v1::NodeRecord* node = changes.add_nodes();
    node->set_slot(static_cast<int32_t>(slot));
    node->set_node(NodeBytes(absl::StrCat("node-", slot), 32));
    for (int i = 0; i < 31; ++i) node->add_pods()->set_shape(static_cast<int32_t>(random() % 2000));
    requests.push_back(request.SerializeAsString());
  }
  // The revision is written into a ready request: fields 3 and 4 of its changes, sent once more at the end.
  int64_t revision = 1;
  for (auto _ : state) {
    v1::ScoreRequest numbers;
    numbers.mutable_changes()->set_base_revision(revision);
    numbers.mutable_changes()->set_revision(revision + 1);
    const std::string bytes =
        requests[static_cast<size_t>(revision) % requests.size()] + numbers.SerializeAsString();
    const absl::StatusOr<std::string> response = engine.Call(kScore, bytes, Deadline());
    if (!response.ok()) state.SkipWithError(response.status().ToString().c_str());
    ++revision;
  }
}
BENCHMARK(BM_SyncDelta)->Arg(5'000)->Unit(benchmark::kMicrosecond);

// The copy with which others go on who change the cluster of a plan.
void BM_ForkView(benchmark::State& state) {
  Engine engine(EngineLimits{});
  Send(&engine, FullList(state.range(0), 40, false), state);
  const std::shared_ptr<const View> view = engine.views().All().at(0).second->Current();
  double held = 0;
  for (auto _ : state) {
    const double before = AllocatedMebibytes();
    std::unique_ptr<View> fork = view->Fork();
    held = AllocatedMebibytes() - before;
    state.PauseTiming();
    fork.reset();
    state.ResumeTiming();
  }
  state.counters["held_MiB"] = held;
}
BENCHMARK(BM_ForkView)->Arg(2'000)->Arg(15'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
