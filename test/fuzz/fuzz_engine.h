// The parts that the fuzz targets of the engine share: an input is several requests, and an engine must
// outlive them all.
#ifndef LOADLINE_TEST_FUZZ_FUZZ_ENGINE_H_
#define LOADLINE_TEST_FUZZ_FUZZ_ENGINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/amount.h"
#include "google/protobuf/stubs/logging.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/score.pb.h"
#include "plugin/service/engine.h"
#include "test/fuzz/answers.h"

namespace loadline {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Splits an input into requests: each has its length before it, two bytes, little-endian; the last one takes
// what is there.
inline std::vector<absl::string_view> Requests(const uint8_t* data, size_t size) {
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> requests;
  while (rest.size() >= 2) {
    const size_t length = static_cast<uint8_t>(rest[0]) + size_t{256} * static_cast<uint8_t>(rest[1]);
    requests.push_back(rest.substr(2, length));
    rest.remove_prefix(std::min(rest.size(), length + 2));
  }
  return requests;
}

class FuzzEngine {
 public:
  FuzzEngine() : engine_(Limits()) {
    static google::protobuf::LogHandler* const kFormer = google::protobuf::SetLogHandler(nullptr);
    static_cast<void>(kFormer);
    // A view at epoch 1, revision 1, for requests to build on.
    Require(Sync(TwoNodes("test", 1)).ok(), "the first full list is taken");
  }

  absl::StatusOr<std::string> Call(absl::string_view method, absl::string_view request) {
    absl::StatusOr<std::string> answer = engine_.Call(method, request, Deadline());
    if (!answer.ok()) CheckError(answer.status());
    engine_.views().CheckConsistent();
    return answer;
  }

  absl::StatusOr<std::string> Sync(const v1::Changes& changes) {
    v1::SyncRequest request;
    *request.mutable_changes() = changes;
    return Call("/loadline.v1.ClusterState/Sync", request.SerializeAsString());
  }

  // All that the engine tells of its views, one after the other.
  std::string State() {
    v1::DescribeResponse views;
    const absl::StatusOr<std::string> list = Call(kDescribe, "");
    Require(list.ok() && views.ParseFromString(*list), "views are listed");
    std::string state = *list;
    for (const v1::ViewState& view : views.views()) {
      v1::DescribeRequest request;
      request.set_view(view.name());
      request.set_include_pods(true);
      const absl::StatusOr<std::string> nodes = Call(kDescribe, request.SerializeAsString());
      // Some pods of many resources outgrow an answer; the fingerprints are in the list.
      if (nodes.ok()) state += *nodes;
    }
    return state;
  }

  // Checks that the kept sums of every node of view "test" are those of its pods.
  void CheckSums() {
    v1::DescribeRequest request;
    request.set_view("test");
    request.set_include_pods(true);
    const absl::StatusOr<std::string> bytes = Call(kDescribe, request.SerializeAsString());
    v1::DescribeResponse response;
    if (!bytes.ok()) return;  // outgrows an answer
    Require(response.ParseFromString(*bytes), "an answer parses");
    for (const v1::NodeState& node : response.nodes()) {
      std::map<std::string, int64_t> requested;
      std::map<std::string, int64_t> limits;
      for (const v1::PodState& pod : node.pods()) {
        for (const auto& entry : pod.requests()) Add(entry, &requested);
        for (const auto& entry : pod.limits()) Add(entry, &limits);
      }
      for (const v1::ResourceSums& sums : node.resources()) {
        Require(sums.requested() == requested[sums.resource()], "requested is the sum of the pods");
        Require(sums.limits() == limits[sums.resource()], "limits are the sum of the pods");
        Require(sums.allocatable() >= 0 && sums.allocatable() <= kMaxAmount,
                "an amount is within its bounds");
      }
    }
  }

  // Sums that are kept for a policy give the scores of sums that are made anew: a weighted mean is the same
  // when all weights are multiplied.
  void CheckKeptSums() {
    v1::DescribeRequest describe;
    describe.set_view("test");
    describe.add_slots(0);
    const absl::StatusOr<std::string> bytes = Call(kDescribe, describe.SerializeAsString());
    v1::DescribeResponse state;
    Require(bytes.ok() && state.ParseFromString(*bytes) && state.views_size() == 1, "the view is described");
    fresh_weight_ = fresh_weight_ % 99 + 2;
    Require(ScoreAll(state.views(0), 1) == ScoreAll(state.views(0), fresh_weight_),
            "kept sums are those of the pods");
  }

  // Two equal nodes, one of them with a pod: the other one is better, whatever came before.
  void CheckAlive() {
    v1::ScoreRequest request;
    *request.mutable_changes() = TwoNodes("alive", 1);
    request.set_pod(PodOfOneContainer());
    request.mutable_policy()->set_preset(v1::ScorePolicy::STRICT);
    v1::DropRequest drop;
    drop.set_view("alive");
    Call("/loadline.v1.ClusterState/Drop", drop.SerializeAsString()).IgnoreError();
    const absl::StatusOr<std::string> answer =
        Call("/loadline.v1.SchedulerExtender/Score", request.SerializeAsString());
    v1::ScoreResponse response;
    Require(answer.ok() && response.ParseFromString(*answer), "a good call is answered");
    Require(response.scores_size() == 2 && response.scores(0) == 0 && response.scores(1) == 100,
            "a good call gets the right answer");
  }

 private:
  // Returns a pod that requests nothing. One without containers is refused.
  static std::string PodOfOneContainer() {
    k8s::v1::Pod pod;
    pod.mutable_spec()->add_containers();
    return pod.SerializeAsString();
  }

  // Returns the scores of all nodes of the view in this state.
  std::string ScoreAll(const v1::ViewState& view, int32_t weight) {
    v1::ScoreRequest request;
    request.mutable_changes()->set_view(view.name());
    request.mutable_changes()->set_epoch(view.epoch());
    request.mutable_changes()->set_base_revision(view.revision());
    request.mutable_changes()->set_revision(view.revision());
    request.set_pod(PodOfOneContainer());
    request.mutable_policy()->set_preset(v1::ScorePolicy::STRICT);
    for (const char* const resource : {"cpu", "memory"}) {
      v1::ResourceWeight* const weighted = request.mutable_policy()->add_resources();
      weighted->set_resource(resource);
      weighted->set_weight(weight);
    }
    const absl::StatusOr<std::string> answer =
        Call("/loadline.v1.SchedulerExtender/Score", request.SerializeAsString());
    Require(answer.ok(), "a view can be scored in its own state");
    return *answer;
  }

  static constexpr char kDescribe[] = "/loadline.v1.ClusterState/Describe";

  // Room for one view more than the requests can fill.
  static EngineLimits Limits() {
    EngineLimits limits;
    limits.views = 1024;
    limits.view.nodes = 4096;
    return limits;
  }

  static v1::Changes TwoNodes(const std::string& view, int64_t epoch) {
    v1::Changes changes;
    changes.set_view(view);
    changes.set_epoch(epoch);
    changes.set_revision(1);
    changes.mutable_full_list()->set_last(true);
    k8s::v1::Pod pod;
    k8s::v1::QuantityEntry* const limit =
        pod.mutable_spec()->add_containers()->mutable_resources()->add_limits();
    limit->set_key("cpu");
    limit->mutable_value()->set_string("3");
    changes.add_pod_shapes()->set_pod(pod.SerializeAsString());
    for (const int32_t slot : {0, 1}) {
      k8s::v1::Node node;
      node.mutable_metadata()->set_name(slot == 0 ? "a" : "b");
      for (const char* const resource : {"cpu", "memory"}) {
        k8s::v1::QuantityEntry* const entry = node.mutable_status()->add_allocatable();
        entry->set_key(resource);
        entry->mutable_value()->set_string("8");
      }
      v1::NodeRecord* const record = changes.add_nodes();
      record->set_slot(slot);
      record->set_node(node.SerializeAsString());
    }
    changes.mutable_nodes(0)->add_pods()->set_name("p");
    return changes;
  }

  static void Add(const v1::ResourceAmount& amount, std::map<std::string, int64_t>* sums) {
    int64_t& sum = (*sums)[amount.resource()];
    sum = SaturatingAdd(sum, amount.amount());
  }

  static void CheckError(const absl::Status& status) {
    Require(status.code() == absl::StatusCode::kInvalidArgument ||
                status.code() == absl::StatusCode::kNotFound ||
                status.code() == absl::StatusCode::kFailedPrecondition ||
                status.code() == absl::StatusCode::kResourceExhausted,
            "an error is one of those that are documented");
    Require(!status.message().empty() && status.message().size() < 4096, "an error has a short text");
    for (const char c : status.message()) Require(c >= ' ' && c <= '~', "an error is printable");
  }

  Engine engine_;
  int32_t fresh_weight_ = 0;  // more of them than an engine keeps policies
};

}  // namespace loadline

#endif  // LOADLINE_TEST_FUZZ_FUZZ_ENGINE_H_
