#include "test/plugin/messages.h"

#include <gtest/gtest.h>

#include "loadline/v1/loop.pb.h"
#include "loadline/v1/score.pb.h"

namespace loadline {
namespace {

std::string BytesOf(const google::protobuf::MessageLite& message) { return message.SerializeAsString(); }

v1::Changes Header(int64_t epoch, int64_t base_revision, int64_t revision) {
  v1::Changes changes;
  changes.set_view("test");
  changes.set_epoch(epoch);
  changes.set_base_revision(base_revision);
  changes.set_revision(revision);
  return changes;
}

}  // namespace

void AddEntries(const Quantities& quantities,
                google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries) {
  for (const auto& [name, quantity] : quantities) {
    k8s::v1::QuantityEntry* const entry = entries->Add();
    entry->set_key(name);
    entry->mutable_value()->set_string(quantity);
  }
}

void Annotate(const std::string& key, const std::string& value, k8s::v1::ObjectMeta* metadata) {
  k8s::v1::StringEntry* const entry = metadata->add_annotations();
  entry->set_key(key);
  entry->set_value(value);
}

k8s::v1::Pod MakePod(const Quantities& limits, const Quantities& requests) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_namespace_("default");
  k8s::v1::Container* const container = pod.mutable_spec()->add_containers();
  container->set_name("app");
  AddEntries(limits, container->mutable_resources()->mutable_limits());
  AddEntries(requests, container->mutable_resources()->mutable_requests());
  return pod;
}

k8s::v1::Node MakeNode(const std::string& name, const Quantities& allocatable) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  AddEntries(allocatable, node.mutable_status()->mutable_allocatable());
  return node;
}

ChangesBuilder ChangesBuilder::FullList(int64_t epoch, int64_t revision) {
  return Chunk(epoch, revision, 0, true);
}

ChangesBuilder ChangesBuilder::Chunk(int64_t epoch, int64_t revision, int32_t index, bool last) {
  ChangesBuilder builder;
  builder.changes_ = Header(epoch, 0, revision);
  builder.changes_.mutable_full_list()->set_index(index);
  builder.changes_.mutable_full_list()->set_last(last);
  return builder;
}

ChangesBuilder ChangesBuilder::Delta(int64_t epoch, int64_t base_revision, int64_t revision) {
  ChangesBuilder builder;
  builder.changes_ = Header(epoch, base_revision, revision);
  return builder;
}

ChangesBuilder& ChangesBuilder::View(const std::string& name) {
  changes_.set_view(name);
  return *this;
}

ChangesBuilder& ChangesBuilder::Minor(int32_t kubernetes_minor) {
  changes_.set_kubernetes_minor(kubernetes_minor);
  return *this;
}

ChangesBuilder& ChangesBuilder::Shape(int32_t id, const k8s::v1::Pod& pod) {
  v1::PodShape* const shape = changes_.add_pod_shapes();
  shape->set_id(id);
  shape->set_pod(BytesOf(pod));
  return *this;
}

ChangesBuilder& ChangesBuilder::Node(int32_t slot, const k8s::v1::Node& node,
                                     const std::vector<PodOnNode>& pods) {
  v1::NodeRecord* const record = changes_.add_nodes();
  record->set_slot(slot);
  record->set_node(BytesOf(node));
  for (const PodOnNode& pod : pods) {
    v1::PodRecord* const message = record->add_pods();
    message->set_shape(pod.shape);
    message->set_name(pod.name);
    message->set_uid(pod.uid);
  }
  return *this;
}

ChangesBuilder& ChangesBuilder::Remove(int32_t slot) {
  changes_.add_removed_slots(slot);
  return *this;
}

v1::SyncRequest ChangesBuilder::Sync() const {
  v1::SyncRequest request;
  *request.mutable_changes() = changes_;
  return request;
}

template <typename Response>
absl::StatusOr<Response> TypedEngine::Call(absl::string_view method,
                                           const google::protobuf::MessageLite& request) {
  const absl::StatusOr<std::string> bytes = CallBytes(method, BytesOf(request));
  if (!bytes.ok()) return bytes.status();
  Response response;
  EXPECT_TRUE(response.ParseFromString(*bytes)) << response.GetTypeName();
  return response;
}

absl::StatusOr<v1::SyncResponse> TypedEngine::Sync(const ChangesBuilder& changes) {
  return Call<v1::SyncResponse>(kSyncMethod, changes.Sync());
}

absl::StatusOr<v1::ScoreResponse> TypedEngine::Score(const v1::ScoreRequest& request) {
  return Call<v1::ScoreResponse>(kScoreMethod, request);
}

absl::StatusOr<v1::ExplainResponse> TypedEngine::Explain(const v1::ExplainRequest& request) {
  return Call<v1::ExplainResponse>(kExplainMethod, request);
}

absl::StatusOr<v1::DescribeResponse> TypedEngine::Describe(const v1::DescribeRequest& request) {
  return Call<v1::DescribeResponse>(kDescribeMethod, request);
}

absl::StatusOr<v1::DropResponse> TypedEngine::Drop(const std::string& view) {
  v1::DropRequest request;
  request.set_view(view);
  return Call<v1::DropResponse>(kDropMethod, request);
}

absl::StatusOr<v1::PlanLoopResponse> TypedEngine::PlanLoop(const v1::PlanLoopRequest& request) {
  return Call<v1::PlanLoopResponse>(kPlanLoopMethod, request);
}

absl::StatusOr<std::string> TypedEngine::CallBytes(absl::string_view method, absl::string_view request,
                                                   const Deadline& deadline) {
  return engine_.Call(method, request, deadline);
}

v1::DescribeResponse TypedEngine::DescribeAll(bool include_pods) {
  v1::DescribeRequest request;
  request.set_view("test");
  request.set_include_pods(include_pods);
  absl::StatusOr<v1::DescribeResponse> response = Describe(request);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? *std::move(response) : v1::DescribeResponse();
}

}  // namespace loadline
