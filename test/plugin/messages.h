// Requests in a line each, and an engine to send them to.
#ifndef LOADLINE_TEST_PLUGIN_MESSAGES_H_
#define LOADLINE_TEST_PLUGIN_MESSAGES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/service/engine.h"

namespace loadline {

// Only declared: who asks for a score includes score_messages.h, who plans loop.pb.h.
namespace v1 {
class ExplainRequest;
class ExplainResponse;
class PlanLoopRequest;
class PlanLoopResponse;
class ScoreRequest;
class ScoreResponse;
}  // namespace v1

// Resource name and quantity, as Kubernetes writes it.
using Quantities = std::vector<std::pair<std::string, std::string>>;

void AddEntries(const Quantities& quantities,
                google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries);

// A pod of namespace "default" with one container "app".
k8s::v1::Pod MakePod(const Quantities& limits, const Quantities& requests = {});
k8s::v1::Node MakeNode(const std::string& name, const Quantities& allocatable);

// One annotation more.
void Annotate(const std::string& key, const std::string& value, k8s::v1::ObjectMeta* metadata);

// A pod on a node.
struct PodOnNode {
  int32_t shape;
  std::string name;
  std::string uid;
};

// Changes of view "test", step by step.
class ChangesBuilder {
 public:
  // A full list in one piece.
  static ChangesBuilder FullList(int64_t epoch, int64_t revision);
  static ChangesBuilder Chunk(int64_t epoch, int64_t revision, int32_t index, bool last);
  static ChangesBuilder Delta(int64_t epoch, int64_t base_revision, int64_t revision);
  // Names a state in which a question is asked.
  static ChangesBuilder At(int64_t epoch, int64_t revision) { return Delta(epoch, revision, revision); }

  ChangesBuilder& View(const std::string& name);
  ChangesBuilder& Minor(int32_t kubernetes_minor);
  ChangesBuilder& Shape(int32_t id, const k8s::v1::Pod& pod);
  ChangesBuilder& Node(int32_t slot, const k8s::v1::Node& node, const std::vector<PodOnNode>& pods = {});
  ChangesBuilder& Remove(int32_t slot);

  const v1::Changes& changes() const { return changes_; }
  v1::SyncRequest Sync() const;

 private:
  v1::Changes changes_;
};

// An Engine with typed calls. The requests go through bytes.
class TypedEngine {
 public:
  explicit TypedEngine(const EngineLimits& limits = {}) : engine_(limits) {}

  absl::StatusOr<v1::SyncResponse> Sync(const ChangesBuilder& changes);
  absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request);
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request);
  absl::StatusOr<v1::DescribeResponse> Describe(const v1::DescribeRequest& request);
  absl::StatusOr<v1::DropResponse> Drop(const std::string& view);
  absl::StatusOr<v1::PlanLoopResponse> PlanLoop(const v1::PlanLoopRequest& request);
  absl::StatusOr<std::string> CallBytes(absl::string_view method, absl::string_view request,
                                        const Deadline& deadline = Deadline());

  Views& views() { return engine_.views(); }

  // View "test" with all nodes; with pods if asked for. The call must succeed.
  v1::DescribeResponse DescribeAll(bool include_pods = false);

 private:
  template <typename Response>
  absl::StatusOr<Response> Call(absl::string_view method, const google::protobuf::MessageLite& request);

  Engine engine_;
};

inline constexpr char kSyncMethod[] = "/loadline.v1.ClusterState/Sync";
inline constexpr char kDescribeMethod[] = "/loadline.v1.ClusterState/Describe";
inline constexpr char kDropMethod[] = "/loadline.v1.ClusterState/Drop";
inline constexpr char kScoreMethod[] = "/loadline.v1.SchedulerExtender/Score";
inline constexpr char kExplainMethod[] = "/loadline.v1.SchedulerExtender/Explain";
inline constexpr char kPlanLoopMethod[] = "/loadline.v1.Autoscaler/PlanLoop";

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_MESSAGES_H_
