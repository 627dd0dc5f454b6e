// Pods that are being resized, as clients of different releases of Kubernetes send them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/base/amount.h"
#include "loadline/v1/load_line.pb.h"
#include "plugin/convert/changes.h"
#include "plugin/convert/pod.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

// Two containers that swap what they request and limit: 1 and 3 cores by the spec, 3 and 1 on the node.
k8s::v1::Pod Swapping() {
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}}, {{"cpu", "1"}});
  k8s::v1::Container* const second = pod.mutable_spec()->add_containers();
  second->set_name("second");
  AddEntries({{"cpu", "3"}}, second->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "3"}}, second->mutable_resources()->mutable_requests());
  for (const auto& [name, cpu] : {std::pair("app", "3"), {"second", "1"}}) {
    k8s::v1::ContainerStatus* const status = pod.mutable_status()->add_container_statuses();
    status->set_name(name);
    AddEntries({{"cpu", cpu}}, status->mutable_resources()->mutable_limits());
    AddEntries({{"cpu", cpu}}, status->mutable_resources()->mutable_requests());
  }
  return pod;
}

ChangesBuilder OneNode(int64_t epoch, int32_t minor) {
  return ChangesBuilder::FullList(epoch, 1)
      .Minor(minor)
      .Shape(0, Swapping())
      .Node(0, MakeNode("a", {{"cpu", "8"}}), {{0, "p", "u"}});
}

TEST(ResizedPodsTest, CountAsInTheReleaseOfTheClient) {
  TypedEngine engine;
  int64_t epoch = 0;
  for (const auto& [minor, cpu] : {std::pair(0, 6'000), {35, 6'000}, {36, 6'000}, {37, 4'000}, {38, 4'000}}) {
    ASSERT_TRUE(engine.Sync(OneNode(++epoch, minor)).ok());
    const v1::DescribeResponse described = engine.DescribeAll();
    EXPECT_EQ(described.nodes(0).resources(0).requested(), cpu) << minor;
    EXPECT_EQ(described.nodes(0).resources(0).limits(), cpu) << minor;
  }
  const absl::Status status = engine.Sync(OneNode(++epoch, -1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kubernetes_minor: -1 is negative"));
}

TEST(ResizedPodsTest, AnotherRuleTakesAFullList) {
  TypedEngine engine;
  ASSERT_TRUE(engine.Sync(OneNode(1, 37)).ok());
  const absl::Status status = engine.Sync(ChangesBuilder::Delta(1, 1, 2).Remove(0)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another rule"));
  EXPECT_TRUE(engine.Sync(ChangesBuilder::Delta(1, 1, 2).Minor(38).Remove(0)).ok());
}

// A pod counts as much where it is as where it is supposed to come.
TEST(ResizedPodsTest, ComeAsWhatTheyCount) {
  for (const int32_t minor : {36, 37}) {
    TypedEngine engine;
    ASSERT_TRUE(engine.Sync(OneNode(1, minor)).ok());
    v1::CheckLoadLineRequest request;
    request.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
    v1::LineResource* const line = request.mutable_line()->add_resources();
    line->set_resource("cpu");
    line->set_max_limits_over_allocatable("1");
    request.set_with_nodes(true);
    request.set_with_rooms(true);
    request.set_with_pods(true);
    request.set_pod(Swapping().SerializeAsString());
    request.add_arrivals()->set_pod(Swapping().SerializeAsString());
    const absl::StatusOr<std::string> bytes = engine.CallBytes("/loadline.v1.SchedulerExtender/CheckLoadLine",
                                                               request.SerializeAsString(), Deadline());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    v1::CheckLoadLineResponse response;
    ASSERT_TRUE(response.ParseFromString(*bytes));
    ASSERT_EQ(response.rooms(0).pods_size(), 2) << minor;
    EXPECT_EQ(response.rooms(0).pods(0), response.nodes(0).resources(0).limits()) << minor;
    EXPECT_EQ(response.rooms(0).pods(0), response.rooms(0).pods(1)) << minor;
  }
}

int64_t HugePages(const k8s::v1::Pod& pod, ResizeRule rule) {
  ResourceNames names;
  ResourceReader resources(&names, {.resize_rule = rule});
  const absl::StatusOr<PodShape> shape =
      PodDecoder(&resources).Decode(pod.SerializeAsString(), PodRole::kExisting);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return shape->requests.Get(names.Find("hugepages-2Mi").value_or(ResourceId{-1}));
}

// An amount of 0 of huge pages names them, though it is not kept.
TEST(ResizedPodsTest, NoHugePagesOfThePodReplaceThoseOfContainers) {
  k8s::v1::Pod pod = MakePod({}, {{"hugepages-2Mi", "4"}});
  AddEntries({{"cpu", "1"}}, pod.mutable_spec()->mutable_resources()->mutable_requests());
  AddEntries({{"hugepages-2Mi", "0"}}, pod.mutable_status()->mutable_resources()->mutable_requests());
  EXPECT_EQ(HugePages(pod, ResizeRule::kPerContainer), 4);
  EXPECT_EQ(HugePages(pod, ResizeRule::kPerPod), 0);
}

TEST(ResizedPodsTest, NoHugePagesInTheSpecSetWhatTheStatusHas) {
  k8s::v1::Pod pod = MakePod({}, {{"memory", "4"}});
  AddEntries({{"hugepages-2Mi", "0"}}, pod.mutable_spec()->mutable_resources()->mutable_requests());
  AddEntries({{"memory", "3"}}, pod.mutable_status()->mutable_resources()->mutable_requests());
  const auto memory = [&](ResizeRule rule) {
    ResourceNames names;
    ResourceReader resources(&names, {.resize_rule = rule});
    return PodDecoder(&resources).Decode(pod.SerializeAsString(), PodRole::kExisting)->requests.Get(kMemory);
  };
  EXPECT_EQ(memory(ResizeRule::kPerContainer), 4);
  EXPECT_EQ(memory(ResizeRule::kPerPod), 3);
}

}  // namespace
}  // namespace loadline
