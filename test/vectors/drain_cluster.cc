#include "test/vectors/drain_cluster.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/node.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/pod.h"

namespace loadline::vectors {
namespace {

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) throw Json::other_error::create(599, value.status().ToString(), nullptr);
  return *std::move(value);
}

}  // namespace

void DrainCluster::Add(const k8s::v1::Node& node, const std::vector<k8s::v1::Pod>& pods) {
  ResourceReader reader(&names_);
  PodDecoder decoder(&reader);
  std::vector<PodContent> contents;
  for (const k8s::v1::Pod& pod : pods) {
    PodShape shape = Must(decoder.Decode(pod.SerializeAsString(), PodRole::kExisting));
    SetLabels(decoder.labels(), &shape);
    contents.push_back({.shape = state_.pod_shapes().Acquire(std::move(shape)),
                        .tag = 0,
                        .name = pod.metadata().name(),
                        .uid = pod.metadata().uid()});
  }
  DecodedNode decoded = Must(NodeDecoder(&reader).Decode(node.SerializeAsString()));
  state_.set_resource_names(names_);
  state_.SetNode(Slot{next_slot_++}, decoded.name, std::move(decoded.shape), contents, decoded.hostname,
                 std::move(decoded.traits));
}

void DrainCluster::Add(v1::ObjectKind kind, const std::string& bytes) {
  v1::ClusterObject message;
  message.set_kind(kind);
  message.set_object(bytes);
  ResourceReader reader(&names_);
  state_.objects().Set(Must(DecodeObject(message, &reader)));
}

void DrainCluster::Add(const k8s::v1::PodDisruptionBudget& budget) {
  Add(v1::POD_DISRUPTION_BUDGET, budget.SerializeAsString());
}

void SetEntry(google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>* entries, const std::string& key,
              const std::string& value) {
  k8s::v1::StringEntry* const entry = entries->Add();
  entry->set_key(key);
  entry->set_value(value);
}

void SetAmount(google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries, const std::string& key,
               const std::string& quantity) {
  k8s::v1::QuantityEntry* const entry = entries->Add();
  entry->set_key(key);
  entry->mutable_value()->set_string(quantity);
}

void SetOwner(const std::string& kind, const std::string& api_version, const std::string& name,
              k8s::v1::ObjectMeta* metadata) {
  k8s::v1::OwnerReference* const owner = metadata->add_owner_references();
  owner->set_kind(kind);
  owner->set_api_version(api_version);
  owner->set_name(name);
  owner->set_controller(true);
}

void SetDeletion(const Json& in, k8s::v1::Pod* pod) {
  const Json& ago = in.at("deleted_s_ago");
  if (!ago.is_null()) {
    pod->mutable_metadata()->mutable_deletion_timestamp()->set_seconds(kRowNow - ago.get<int64_t>());
  }
  const Json& grace = in.at("grace_s");
  if (!grace.is_null()) pod->mutable_spec()->set_termination_grace_period_seconds(grace);
}

k8s::v1::Node NodeOffering(const std::string& name, const Json& mcpu, const Json& memory) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name(name);
  auto* const allocatable = node.mutable_status()->mutable_allocatable();
  if (!mcpu.is_null()) SetAmount(allocatable, "cpu", absl::StrCat(mcpu.get<int64_t>(), "m"));
  if (!memory.is_null()) SetAmount(allocatable, "memory", absl::StrCat(memory.get<int64_t>()));
  k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  return node;
}

}  // namespace loadline::vectors
