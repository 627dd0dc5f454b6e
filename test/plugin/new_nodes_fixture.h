// Loops that plan for one group of nodes, from bytes to bytes.
#ifndef LOADLINE_TEST_PLUGIN_NEW_NODES_FIXTURE_H_
#define LOADLINE_TEST_PLUGIN_NEW_NODES_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace new_nodes {

inline constexpr int64_t kAskedS = 1'800'000'000;
inline constexpr int64_t kHour = 3600;

using ChangeNode = std::function<void(k8s::v1::Node*)>;

inline k8s::v1::Node NodeOf(const std::string& name, int64_t age_s = kHour) {
  k8s::v1::Node node = MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}});
  node.mutable_metadata()->mutable_creation_timestamp()->set_seconds(kAskedS - age_s);
  k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  return node;
}

inline k8s::v1::Pod PodOf(const std::string& cpu) {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", cpu}, {"memory", "1Gi"}});
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_name("web");
  owner->set_controller(true);
  return pod;
}

inline void AddLabel(const std::string& key, const std::string& value, k8s::v1::Node* node) {
  k8s::v1::StringEntry* const label = node->mutable_metadata()->add_labels();
  label->set_key(key);
  label->set_value(value);
}

inline void AddTaint(const std::string& key, k8s::v1::Node* node) {
  k8s::v1::Taint* const taint = node->mutable_spec()->add_taints();
  taint->set_key(key);
  taint->set_value("x");
  taint->set_effect("NoSchedule");
}

inline void Select(const std::string& key, const std::string& value, k8s::v1::Pod* pod) {
  k8s::v1::StringEntry* const entry = pod->mutable_spec()->add_node_selector();
  entry->set_key(key);
  entry->set_value(value);
}

// One group "g", and loops that plan for it.
class NewNodesTest : public ::testing::Test {
 protected:
  NewNodesTest() {
    request_.set_now_s(kAskedS);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("g");
    group->mutable_growth()->set_max_nodes(50);
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    group->mutable_cloud();
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    v1::FleetOptions* const options = request_.mutable_fleet()->mutable_options();
    options->set_max_node_provision_milliseconds(900'000);
    options->set_max_node_startup_milliseconds(900'000);
    options->set_initial_back_off_milliseconds(300'000);
    options->set_max_back_off_milliseconds(1'800'000);
    options->set_back_off_reset_milliseconds(10'800'000);
    request_.mutable_fleet()->set_now_milliseconds(kAskedS * 1000);
    request_.mutable_fleet()->set_acts(true);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  }

  void SetTemplate(const k8s::v1::Node& node, bool by_cloud = true) {
    request_.mutable_groups(0)->mutable_growth()->set_template_node(node.SerializeAsString());
    request_.mutable_groups(0)->mutable_cloud()->set_cloud_template(by_cloud);
  }

  // A machine of the group with a node, which runs a pod that fills it unless it is `empty`.
  void AddNode(const k8s::v1::Node& node, bool empty = false) {
    v1::CloudGroup* const cloud = request_.mutable_groups(0)->mutable_cloud();
    v1::CloudMachine* const machine = cloud->add_machines();
    machine->set_id(absl::StrCat("m", nodes_.size()));
    machine->set_slot(static_cast<int32_t>(nodes_.size()));
    cloud->set_target(cloud->machines_size());
    nodes_.push_back(node);
    full_.push_back(!empty);
  }
  void AddNodes(int count, const ChangeNode& change_first = nullptr) {
    for (int i = 0; i < count; ++i) {
      k8s::v1::Node node = NodeOf(absl::StrCat("node-", 10 + nodes_.size()));
      if (i == 0 && change_first != nullptr) change_first(&node);
      AddNode(node);
    }
  }

  void AddObject(v1::ObjectKind kind, const google::protobuf::MessageLite& object) {
    auto* const added = objects_.add_objects();
    added->set_kind(kind);
    added->set_object(object.SerializeAsString());
  }

  void Wait(const k8s::v1::Pod& pod, int count = 1) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(count);
  }

  // One loop, `seconds` after the first one.
  v1::PlanLoopResponse Loop(int64_t seconds = 0) {
    ++epoch_;
    request_.set_now_s(kAskedS + seconds);
    request_.mutable_fleet()->set_now_milliseconds((kAskedS + seconds) * 1000);
    ChangesBuilder changes = ChangesBuilder::FullList(epoch_, 1);
    changes.Shape(0, PodOf("2"));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<PodOnNode> pods;
      if (full_[i]) pods.push_back({0, absl::StrCat("p", i), absl::StrCat("u", i)});
      changes.Node(static_cast<int32_t>(i), nodes_[i], pods);
    }
    v1::SyncRequest sync = changes.Sync();
    sync.mutable_changes()->MergeFrom(objects_);
    EXPECT_TRUE(engine_.CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
    *request_.mutable_changes() = ChangesBuilder::At(epoch_, 1).changes();
    const absl::StatusOr<v1::PlanLoopResponse> answer = engine_.PlanLoop(request_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    request_.mutable_fleet()->set_state(answer->fleet().state());
    return *answer;
  }
  static int64_t Bought(const v1::PlanLoopResponse& answer) {
    return answer.growth_size() == 0 ? 0 : answer.growth(0).nodes_for_pods();
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
  v1::Changes objects_;
  std::vector<k8s::v1::Node> nodes_;
  std::vector<bool> full_;
  int64_t epoch_ = 0;
};

}  // namespace new_nodes
}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_NEW_NODES_FIXTURE_H_
