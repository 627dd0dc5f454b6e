// The answers of an engine about its views.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Changes = ChangesBuilder;

v1::DescribeRequest Request(const std::vector<int32_t>& slots = {}, bool include_pods = false) {
  v1::DescribeRequest request;
  request.set_view("test");
  request.mutable_slots()->Add(slots.begin(), slots.end());
  request.set_include_pods(include_pods);
  return request;
}

std::vector<int32_t> SlotsOf(const v1::DescribeResponse& response) {
  std::vector<int32_t> slots;
  for (const v1::NodeState& node : response.nodes()) slots.push_back(node.slot());
  return slots;
}

std::vector<std::tuple<std::string, int64_t, int64_t, int64_t>> SumsOf(const v1::NodeState& node) {
  std::vector<std::tuple<std::string, int64_t, int64_t, int64_t>> sums;
  for (const v1::ResourceSums& sum : node.resources()) {
    sums.emplace_back(sum.resource(), sum.allocatable(), sum.requested(), sum.limits());
  }
  return sums;
}

TEST(DescribeTest, TellsSumsPerNode) {
  TypedEngine engine;
  k8s::v1::Pod finished = MakePod({{"cpu", "100"}});
  finished.mutable_status()->set_phase("Failed");
  ASSERT_TRUE(
      engine
          .Sync(Changes::FullList(1, 1)
                    .Shape(0, MakePod({{"cpu", "1500m"}, {"memory", "2Gi"}}, {{"cpu", "0.5"}, {"z/z", "1"}}))
                    .Shape(1, MakePod({}, {{"memory", "1"}}))
                    .Shape(2, finished)
                    .Node(3, MakeNode("b", {{"pods", "110"}, {"cpu", "4"}, {"memory", "8Gi"}}),
                          {{0, "p", ""}, {1, "q", ""}, {0, "r", ""}, {2, "done", ""}})
                    .Node(1, MakeNode("a", {})))
          .ok());
  const v1::DescribeResponse response = engine.DescribeAll();
  EXPECT_EQ(response.engine_version(), LOADLINE_VERSION);
  EXPECT_EQ(response.next_slot(), 0);
  const v1::ViewState& view = response.views(0);
  EXPECT_EQ(view.name(), "test");
  EXPECT_EQ(view.nodes(), 2);
  EXPECT_EQ(view.pods(), 4);
  EXPECT_EQ(view.pod_shapes(), 3);
  ASSERT_THAT(SlotsOf(response), ElementsAre(1, 3));
  EXPECT_EQ(response.nodes(0).name(), "a");
  EXPECT_THAT(SumsOf(response.nodes(0)), IsEmpty());
  EXPECT_EQ(response.nodes(1).pod_count(), 3);
  EXPECT_EQ(response.nodes(1).pods_size(), 0);
  const int64_t gi = int64_t{1} << 30;
  EXPECT_THAT(SumsOf(response.nodes(1)),
              ElementsAre(std::tuple("cpu", 4000, 1000, 3000), std::tuple("memory", 8 * gi, 1, 4 * gi),
                          std::tuple("pods", 110, 0, 0), std::tuple("z/z", 0, 2, 0)));
}

TEST(DescribeTest, TellsPodsByNameAndUid) {
  TypedEngine engine;
  k8s::v1::Pod finished = MakePod({{"cpu", "1"}});
  finished.mutable_status()->set_phase("Succeeded");
  ASSERT_TRUE(engine
                  .Sync(Changes::FullList(1, 1)
                            .Shape(0, MakePod({{"z/z", "1"}, {"cpu", "2"}}, {{"memory", "3"}}))
                            .Shape(1, finished)
                            .Node(0, MakeNode("a", {}), {{0, "b", "2"}, {1, "b", "1"}, {0, "a", "3"}}))
                  .ok());
  const v1::NodeState node = engine.DescribeAll(true).nodes(0);
  ASSERT_EQ(node.pods_size(), 3);
  EXPECT_EQ(node.pods(0).name() + node.pods(0).uid(), "a3");
  EXPECT_EQ(node.pods(1).name() + node.pods(1).uid(), "b1");
  EXPECT_EQ(node.pods(2).name() + node.pods(2).uid(), "b2");
  EXPECT_EQ(node.pods(0).namespace_(), "default");
  ASSERT_EQ(node.pods(0).limits_size(), 2);
  EXPECT_EQ(node.pods(0).limits(0).resource(), "cpu");
  EXPECT_EQ(node.pods(0).limits(0).amount(), 2000);
  EXPECT_EQ(node.pods(0).limits(1).resource(), "z/z");
  ASSERT_EQ(node.pods(0).requests_size(), 1);
  EXPECT_EQ(node.pods(0).requests(0).amount(), 3);
  EXPECT_FALSE(node.pods(0).finished());
  EXPECT_TRUE(node.pods(1).finished());
  EXPECT_EQ(node.pods(1).limits_size(), 0);
}

// A node that is not ready has not started, whatever other taints it loses.
TEST(DescribeTest, TellsTheTaintsThatANodeLosesOnceItHasStarted) {
  TypedEngine engine;
  const auto tainted = [](const std::string& name, const std::vector<std::string>& keys) {
    k8s::v1::Node node = MakeNode(name, {{"cpu", "4"}});
    for (const std::string& key : keys) {
      k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
      taint->set_key(key);
      taint->set_effect("NoSchedule");
    }
    return node;
  };
  const std::string cilium = "node.cilium.io/agent-not-ready";
  ASSERT_TRUE(engine
                  .Sync(Changes::FullList(1, 1)
                            .Node(0, tainted("a", {"example.com/agent", cilium, "dedicated"}))
                            .Node(1, tainted("b", {cilium, "node.kubernetes.io/not-ready"})))
                  .ok());
  v1::DescribeRequest request = Request();
  request.mutable_startup_taints()->add_startup("example.com/agent");
  const absl::StatusOr<v1::DescribeResponse> response = engine.Describe(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->nodes(0).startup_taints(), ElementsAre("example.com/agent", cilium));
  EXPECT_THAT(response->nodes(1).startup_taints(), IsEmpty());
  EXPECT_THAT(engine.DescribeAll().nodes(0).startup_taints(), ElementsAre(cilium));
  request.mutable_startup_taints()->add_startup("");
  EXPECT_EQ(engine.Describe(request).status().message(), "startup_taints.startup[1]: is empty");
}

TEST(DescribeTest, TellsTheSlotsAskedForInTheirOrder) {
  TypedEngine engine;
  ASSERT_TRUE(
      engine.Sync(Changes::FullList(1, 1).Node(0, MakeNode("a", {})).Node(2, MakeNode("c", {}))).ok());
  EXPECT_THAT(SlotsOf(*engine.Describe(Request({2, 1, 0, 100000}))), ElementsAre(2, 0));
  const auto error_of = [&](const v1::DescribeRequest& request) {
    const absl::Status status = engine.Describe(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error_of(Request({0, 0})), "slots[1]: slot 0 is named twice");
  EXPECT_EQ(error_of(Request({-1})), "slots[0]: slot -1 is not in [0, 131072)");
  EXPECT_EQ(error_of(Request({131072})), "slots[0]: slot 131072 is not in [0, 131072)");
  v1::DescribeRequest request = Request({1});
  request.set_first_slot(1);
  EXPECT_EQ(error_of(request), "first_slot: is allowed with empty slots only");
  request = Request();
  request.set_first_slot(-1);
  EXPECT_EQ(error_of(request), "first_slot: -1 is negative");
  request = Request({1});
  request.clear_view();
  EXPECT_EQ(error_of(request), "slots: require the name of a view");
  request.set_view("A");
  EXPECT_EQ(error_of(request), "view: \"A\" is not the name of a view: 1 to 63 characters of [a-z0-9/-]");
  request.set_view("b");
  EXPECT_EQ(engine.Describe(request).status().code(), absl::StatusCode::kNotFound);
}

TEST(DescribeTest, TellsWhichPodsTheirAnnotationsProtect) {
  constexpr int64_t kStart = 1'800'000'000;  // a full minute
  TypedEngine engine;
  v1::DescribeRequest request;
  const auto add = [&](const std::string& key, const std::string& value, bool started = true) {
    k8s::v1::Pod pod;
    k8s::v1::StringEntry* const annotation = pod.mutable_metadata()->add_annotations();
    annotation->set_key(key);
    annotation->set_value(value);
    if (started) pod.mutable_status()->mutable_start_time()->set_seconds(kStart);
    request.add_pods(pod.SerializeAsString());
  };
  add("karpenter.sh/do-not-disrupt", "true");
  add("karpenter.sh/do-not-disrupt", "false");
  add("karpenter.sh/do-not-disrupt", "4h");
  add("karpenter.sh/do-not-disrupt", "4h", /*started=*/false);
  add("karpenter.sh/do-not-disrupt", "always");  // an unknown value protects
  add("karpenter.sh/do-not-evict", "true");
  add("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
  add("cluster-autoscaler.kubernetes.io/safe-to-evict", "true");
  add("example.com/do-not-disrupt", "true");
  request.set_now_s(kStart + 4 * 3600 - 1);
  absl::StatusOr<v1::DescribeResponse> response = engine.Describe(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->protected_pods(),
              ElementsAre(true, false, true, true, true, true, true, false, false));
  EXPECT_EQ(response->views_size(), 0);
  request.set_now_s(kStart + 4 * 3600);
  response = engine.Describe(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->protected_pods(),
              ElementsAre(true, false, false, true, true, true, true, false, false));

  request.add_pods("\xff");
  EXPECT_EQ(
      engine.Describe(request).status().message(),
      "pods[9]: is not a k8s.io.api.core.v1.Pod: truncated or damaged, nested too deeply, or text that is "
      "not UTF-8");
  request.set_now_s(-1);
  EXPECT_EQ(engine.Describe(request).status().message(), "now_s: -1 is negative");
}

TEST(DescribeTest, ListsAllViewsInNameOrder) {
  TypedEngine engine;
  for (const char* const name : {"b", "a/x", "c", "a"}) {
    ASSERT_TRUE(engine.Sync(Changes::FullList(1, 1).View(name).Node(0, MakeNode("n", {}))).ok());
  }
  const absl::StatusOr<v1::DescribeResponse> response = engine.Describe(v1::DescribeRequest());
  ASSERT_TRUE(response.ok());
  std::vector<std::string> names;
  for (const v1::ViewState& view : response->views()) names.push_back(view.name());
  EXPECT_THAT(names, ElementsAre("a", "a/x", "b", "c"));
  EXPECT_EQ(response->nodes_size(), 0);
}

// 40,000 nodes with names of 100 characters take 5 MB.
TEST(DescribeTest, LongAnswersComeInPages) {
  TypedEngine engine;
  constexpr int32_t kNodes = 40'000;
  constexpr int32_t kPerBatch = 10'000;
  for (int32_t begin = 0; begin < kNodes; begin += kPerBatch) {
    Changes changes =
        begin == 0 ? Changes::FullList(1, 1) : Changes::Delta(1, begin / kPerBatch, begin / kPerBatch + 1);
    for (int32_t i = begin; i < begin + kPerBatch; ++i) {
      const std::string number = std::to_string(i);
      changes.Node(i, MakeNode(std::string(100 - number.size(), 'n') + number, {}));
    }
    ASSERT_TRUE(engine.Sync(changes).ok());
  }
  int32_t expected = 0;
  int pages = 0;
  v1::DescribeRequest request = Request();
  do {
    const absl::StatusOr<v1::DescribeResponse> page = engine.Describe(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->ByteSizeLong(), size_t{3} << 20);
    for (const v1::NodeState& node : page->nodes()) ASSERT_EQ(node.slot(), expected++);
    request.set_first_slot(page->next_slot());
    ++pages;
  } while (request.first_slot() != 0);
  EXPECT_EQ(expected, kNodes);
  EXPECT_EQ(pages, 2);

  std::vector<int32_t> all(kNodes);
  for (int32_t i = 0; i < kNodes; ++i) all[static_cast<size_t>(i)] = i;
  const absl::Status status = engine.Describe(Request(all)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "slots: the answer for 40000 slots outgrows 3145728 bytes; name fewer");
}

// A pod of 200 resources with long names is a few bytes in a record and 50 kB in an answer.
TEST(DescribeTest, ANodeThatOutgrowsAnAnswerIsRefused) {
  TypedEngine engine;
  Quantities limits;
  for (int i = 0; i < 200; ++i) limits.emplace_back(std::string(250, 'r') + "/" + std::to_string(i), "1");
  std::vector<PodOnNode> pods;
  for (int i = 0; i < 100; ++i) pods.push_back({0, std::to_string(i), ""});
  ASSERT_TRUE(engine
                  .Sync(Changes::FullList(1, 1)
                            .Shape(0, MakePod(limits))
                            .Node(0, MakeNode("a", limits))
                            .Node(1, MakeNode("b", {}), pods))
                  .ok());
  const absl::Status status = engine.Describe(Request({}, true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "node \"b\" (slot 1) and its pods outgrow 3145728 bytes; ask without include_pods");
  EXPECT_THAT(SlotsOf(engine.DescribeAll()), ElementsAre(0, 1));
  EXPECT_EQ(engine.DescribeAll().nodes(1).resources_size(), 200);
}

}  // namespace
}  // namespace loadline
