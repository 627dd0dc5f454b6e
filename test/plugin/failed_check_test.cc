// In production a check that fails ends the call with INTERNAL and is counted; what the call had begun is
// undone, and the engine works on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "loadline/v1/drain.pb.h"
#include "loadline/v1/fit.pb.h"
#include "test/plugin/messages.h"
#include "test/testing/throw_on_failed_check.h"

namespace loadline {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kFitMethod[] = "/loadline.v1.SchedulerExtender/Fit";
constexpr char kDrainMethod[] = "/loadline.v1.Autoscaler/PlanDrain";

// Nodes "a" and "b"; on "a" a pod of shape 0.
ChangesBuilder TwoNodes(int64_t epoch) {
  const k8s::v1::Pod pod = MakePod({}, {{"cpu", "600m"}});
  return ChangesBuilder::FullList(epoch, 1)
      .Shape(0, pod)
      .Node(0, MakeNode("a", {{"cpu", "1"}, {"pods", "3"}}), {{0, "old", "uid"}})
      .Node(1, MakeNode("b", {{"cpu", "1"}, {"pods", "3"}}));
}

class FailedCheckTest : public ::testing::Test {
 protected:
  FailedCheckTest() { EXPECT_TRUE(engine_.Sync(TwoNodes(1)).ok()); }

  // Takes the shape of the pod away under it, as only a fault of ours could.
  ShapeTable<PodShape>& Shapes() {
    return const_cast<ClusterState&>(engine_.views().All().at(0).second->Current()->cluster()).pod_shapes();
  }
  void Break() {
    shape_ = Shapes()[0];
    Shapes().Release(0);
  }
  void Mend() { Shapes().Acquire(shape_); }

  absl::StatusOr<std::string> Fit() {
    v1::FitRequest request;
    *request.mutable_changes() = ChangesBuilder::At(1, 1).changes();
    request.add_pods()->set_pod(MakePod({}, {{"cpu", "500m"}}).SerializeAsString());
    return engine_.CallBytes(kFitMethod, request.SerializeAsString());
  }
  // With other filters than the last time nothing that is remembered answers: all shapes are read.
  absl::StatusOr<std::string> Drain(bool other_filters = false) {
    v1::PlanDrainRequest request;
    if (other_filters) request.mutable_fit()->add_ignored_resources("example.com/widget");
    *request.mutable_changes() = ChangesBuilder::At(1, 1).changes();
    request.set_now_s(1'000'000);
    return engine_.CallBytes(kDrainMethod, request.SerializeAsString());
  }
  int64_t FailedChecks() {
    const absl::StatusOr<v1::DescribeResponse> response = engine_.Describe(v1::DescribeRequest());
    EXPECT_TRUE(response.ok()) << response.status();
    return response->failed_checks();
  }
  static void ExpectInternal(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("shape 0 is not in use"),
                                                     EndsWith("(a fault of Loadline: please report it)")));
  }

  const ThrowOnFailedCheck in_production_;
  TypedEngine engine_;
  PodShape shape_;
};

TEST_F(FailedCheckTest, AQuestionEndsAndIsCountedAndTheNextOneIsAnswered) {
  const absl::StatusOr<std::string> before = Drain();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(FailedChecks(), 0);
  Break();
  ExpectInternal(Fit().status());
  ExpectInternal(Drain(/*other_filters=*/true).status());
  EXPECT_EQ(FailedChecks(), 2);
  Mend();
  EXPECT_TRUE(Fit().ok());
  EXPECT_EQ(Drain().value(), *before);  // the planner started over from its state
  EXPECT_EQ(FailedChecks(), 2);
  engine_.views().CheckConsistent();
}

// A view that is half changed is forgotten, and starts over with a full list.
TEST_F(FailedCheckTest, AViewThatWasBeingChangedStartsOver) {
  ASSERT_TRUE(engine_.Sync(ChangesBuilder::Delta(1, 1, 2).Node(0, MakeNode("a", {{"cpu", "1"}}))).ok());
  Break();  // no pod refers to it any more, so that it may be sent anew
  const ChangesBuilder redefined =
      ChangesBuilder::Delta(1, 2, 3).Remove(1).Shape(0, MakePod({}, {{"cpu", "700m"}}));
  ExpectInternal(engine_.Sync(redefined).status());
  EXPECT_EQ(FailedChecks(), 1);
  const absl::Status lost = engine_.Sync(redefined).status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(lost.message()), EndsWith("was lost when a check failed; send a full list"));
  EXPECT_TRUE(engine_.Sync(TwoNodes(2)).ok());
  engine_.views().CheckConsistent();
}

}  // namespace
}  // namespace loadline
