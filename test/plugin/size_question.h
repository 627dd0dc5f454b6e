// Questions to MeasureUtilization about one group, and an engine to send them to.
#ifndef LOADLINE_TEST_PLUGIN_SIZE_QUESTION_H_
#define LOADLINE_TEST_PLUGIN_SIZE_QUESTION_H_

#include <gtest/gtest.h>

#include <string>

#include "loadline/v1/size.pb.h"
#include "test/plugin/messages.h"

namespace loadline {

inline constexpr int64_t kNowMs = 1'700'000'000'000;
inline constexpr int64_t kHourS = 3600;

inline k8s::v1::Node PoolNode(const std::string& name, const std::string& cpu = "1000m",
                              const std::string& memory = "4000M") {
  k8s::v1::Node node = MakeNode(name, {{"cpu", cpu}, {"memory", memory}, {"pods", "110"}});
  auto* const label = node.mutable_metadata()->add_labels();
  label->set_key("pool");
  label->set_value("a");
  node.mutable_metadata()->mutable_creation_timestamp()->set_seconds(kNowMs / 1000 - kHourS);
  return node;
}

inline void AddTaint(const std::string& key, const std::string& value, k8s::v1::Node* node) {
  auto* const taint = node->mutable_spec()->add_taints();
  taint->set_key(key);
  taint->set_value(value);
  taint->set_effect("NoSchedule");
}

inline k8s::v1::Pod PoolPod(const std::string& cpu = "500m", const std::string& memory = "100M") {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", cpu}, {"memory", memory}});
  auto* const label = pod.mutable_spec()->add_node_selector();
  label->set_key("pool");
  label->set_value("a");
  return pod;
}

inline void OwnedBy(const std::string& kind, k8s::v1::Pod* pod) {
  auto* const owner = pod->mutable_metadata()->add_owner_references();
  owner->set_kind(kind);
  owner->set_name("owner");
  owner->set_uid("uid");
  owner->set_controller(true);
}

inline v1::SizeOptions SizeTestOptions() {
  v1::SizeOptions options;
  options.set_max_nodes(100);
  options.set_scale_up_percent(70);
  options.set_taint_upper_percent(60);
  options.set_taint_lower_percent(40);
  options.set_slow_rate(1);
  options.set_fast_rate(4);
  options.set_soft_grace_milliseconds(60'000);
  options.set_hard_grace_milliseconds(600'000);
  options.set_cool_down_milliseconds(120'000);
  return options;
}

// View "test" without nodes, and group "a" of the nodes with label pool=a.
class SizeQuestion : public ::testing::Test {
 protected:
  SizeQuestion() : SizeQuestion(ChangesBuilder::FullList(1, 1)) {}
  explicit SizeQuestion(const ChangesBuilder& cluster) {
    Load(cluster);
    request_.set_now_milliseconds(kNowMs);
    AddGroup("a", "a");
  }

  // A full list of epoch 1, or 2 after it.
  void Load(const ChangesBuilder& cluster) {
    const absl::StatusOr<v1::SyncResponse> synced = engine_.Sync(cluster);
    ASSERT_TRUE(synced.ok()) << synced.status();
    *request_.mutable_changes() = ChangesBuilder::At(cluster.changes().epoch(), 1).changes();
  }

  v1::SizedGroup* AddGroup(const std::string& name, const std::string& value) {
    v1::SizedGroup* const group = request_.add_groups();
    group->set_node_group(name);
    v1::GroupLabel* const label = group->add_labels();
    label->set_key("pool");
    label->set_value(value);
    *group->mutable_options() = SizeTestOptions();
    return group;
  }

  v1::WaitingPods* Wait(const k8s::v1::Pod& pod, int32_t count) {
    v1::WaitingPods* const pods = request_.add_pods();
    pods->set_pod(pod.SerializeAsString());
    pods->set_count(count);
    return pods;
  }

  v1::SizeOptions* options() { return request_.mutable_groups(0)->mutable_options(); }
  void SetMode(v1::SizeOptions::Mode mode) { options()->set_mode(mode); }

  absl::StatusOr<v1::MeasureUtilizationResponse> Ask() {
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes("/loadline.v1.Autoscaler/MeasureUtilization", request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::MeasureUtilizationResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }
  // Returns the size of group 0.
  v1::GroupSize Size() {
    const absl::StatusOr<v1::MeasureUtilizationResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->groups(0) : v1::GroupSize();
  }
  std::string Refusal() {
    const absl::Status status = Ask().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TypedEngine engine_;
  v1::MeasureUtilizationRequest request_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_SIZE_QUESTION_H_
