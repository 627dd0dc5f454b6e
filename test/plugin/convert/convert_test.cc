// Text, slots, headers of changes, and the configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "loadline/v1/engine_config.pb.h"
#include "plugin/convert/changes.h"
#include "plugin/convert/config.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/text.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string TextOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(QuotedTest, EscapesAndCuts) {
  EXPECT_EQ(Quoted("node-1"), R"("node-1")");
  EXPECT_EQ(Quoted(std::string("a\0\x1b[31m\n\"\xff", 9)), R"("a\x00\x1b[31m\n\"")");
  EXPECT_EQ(Quoted(std::string(64, 'x')), '"' + std::string(64, 'x') + '"');
  EXPECT_EQ(Quoted(std::string(65, 'x')), '"' + std::string(64, 'x') + "\"...");
}

TEST(StoredNameTest, StandsInForATextThatIsNoName) {
  EXPECT_EQ(StoredName("a.b-c"), "a.b-c");
  const std::string longest(1 << 20, 'x');
  EXPECT_NE(StoredName(longest), StoredName(longest + "y"));
  EXPECT_NE(StoredName("\xff"), StoredName("\xfe"));
  for (const std::string& text : {std::string("a\0 \x1b[2J\n", 8), longest, std::string("\xff")}) {
    EXPECT_TRUE(CheckName(StoredName(text)).ok()) << StoredName(text);
  }
}

TEST(CheckNameTest, TakesPrintableAsciiUpToTheBound) {
  EXPECT_TRUE(CheckName("").ok());
  EXPECT_TRUE(CheckName("!a.b-c/D_0~").ok());
  EXPECT_TRUE(CheckName(std::string(253, 'a')).ok());
  EXPECT_THAT(TextOf(CheckName(std::string(254, 'a'))),
              ::testing::HasSubstr("it has 254 bytes, at most 253"));
  for (const char bad : {' ', '\t', '\x7f', '\x80', '\0'}) {
    EXPECT_FALSE(CheckName(std::string("a") + bad).ok()) << static_cast<int>(bad);
  }
}

TEST(CheckViewNameTest, KeepsToItsAlphabet) {
  EXPECT_TRUE(CheckViewName("scheduler/default-2").ok());
  EXPECT_TRUE(CheckViewName(std::string(63, 'a')).ok());
  for (const std::string& name : {std::string(), std::string(64, 'a'), std::string("A"), std::string("a.b"),
                                  std::string("a\0", 2), std::string("a b")}) {
    EXPECT_THAT(TextOf(CheckViewName(name)), StartsWith("view: " + Quoted(name) + " is not the name"));
  }
}

struct BadHeader {
  std::string name;
  std::function<void(v1::Changes*)> change;
  std::string error;
};

class BadHeaderTest : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaderTest, IsRefusedWithTheField) {
  v1::Changes changes = ChangesBuilder::Delta(5, 3, 4).changes();
  ASSERT_TRUE(CheckHeader(changes).ok());
  GetParam().change(&changes);
  EXPECT_THAT(TextOf(CheckHeader(changes)), StartsWith(GetParam().error));
}

constexpr int64_t kTooLarge = (int64_t{1} << 62) + 1;

INSTANTIATE_TEST_SUITE_P(
    Cases, BadHeaderTest,
    ::testing::ValuesIn(std::vector<BadHeader>{
        {"View", [](v1::Changes* c) { c->set_view("Test"); }, R"(view: "Test" is not the name of a view)"},
        {"EpochZero", [](v1::Changes* c) { c->set_epoch(0); }, "epoch: 0 is not in [1, 4611686018427387904]"},
        {"EpochNegative", [](v1::Changes* c) { c->set_epoch(-1); }, "epoch: -1 is not in"},
        {"EpochTooLarge", [](v1::Changes* c) { c->set_epoch(kTooLarge); },
         "epoch: 4611686018427387905 is not"},
        {"RevisionZero", [](v1::Changes* c) { c->set_revision(0); }, "revision: 0 is not in [1,"},
        {"RevisionTooLarge", [](v1::Changes* c) { c->set_revision(kTooLarge); }, "revision: 46116860184"},
        {"BaseNegative", [](v1::Changes* c) { c->set_base_revision(-1); },
         "base_revision: -1 is not in [0, 4]"},
        {"BaseAboveRevision", [](v1::Changes* c) { c->set_base_revision(5); },
         "base_revision: 5 is not in [0, 4]"},
        {"FullListWithBase", [](v1::Changes* c) { c->mutable_full_list(); },
         "base_revision of a full list: 3 is not in [0, 0]"},
        {"ChunkNegative",
         [](v1::Changes* c) { c->set_base_revision(0), c->mutable_full_list()->set_index(-1); },
         "full_list.index: -1 is negative"},
        {"ContentWithoutStep", [](v1::Changes* c) { c->set_base_revision(4), c->add_removed_slots(0); },
         "base_revision and revision are both 4, but the batch holds changes"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(DecodeBatchTest, NamesObjectAndField) {
  const auto error_of = [](const ChangesBuilder& builder) {
    return TextOf(DecodeBatch(builder.changes(), ResourceNames()).status());
  };
  EXPECT_EQ(error_of(ChangesBuilder::FullList(1, 1).Shape(3, MakePod({})).Shape(3, MakePod({}))),
            "pod shape 3 is sent twice in one batch");
  EXPECT_EQ(error_of(ChangesBuilder::FullList(1, 1).Node(4, MakeNode("", {}))),
            "node in slot 4 has an empty metadata.name");

  ChangesBuilder builder = ChangesBuilder::FullList(1, 1).Node(2, MakeNode("n", {}));
  v1::Changes changes = builder.changes();
  changes.mutable_nodes(0)->set_node("\xff");
  EXPECT_THAT(TextOf(DecodeBatch(changes, ResourceNames()).status()),
              StartsWith("node in slot 2 is not a k8s.io.api.core.v1.Node: "));
}

// The objects that are there are taken as far as they can be read.
TEST(DecodeBatchTest, TellsWhatItCannotRead) {
  ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
  builder.Shape(7, MakePod({{"memory", "1.5.2"}, {"cpu", "1"}}))
      .Node(4, MakeNode("n", {{"cpu", "-1"}, {"pods", "9"}}));
  v1::Changes changes = builder.changes();
  changes.add_pod_shapes()->set_pod("\xff");
  const absl::StatusOr<DecodedBatch> decoded = DecodeBatch(changes, ResourceNames());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const PodShape& shape = decoded->batch.pod_shapes[0].shape;
  EXPECT_THAT(TraitsOf(shape).unreadable,
              StartsWith(R"((namespace "default"): spec.containers[0] "app": resources.limits["memory"]: )"
                         R"("1.5.2" is not a quantity)"));
  EXPECT_EQ(shape.limits.Get(kCpu), 1000);
  EXPECT_THAT(TraitsOf(decoded->batch.pod_shapes[1].shape).unreadable,
              StartsWith("is not a k8s.io.api.core.v1.Pod: "));
  const NodeRecord& node = decoded->batch.nodes[0];
  EXPECT_EQ(node.traits.unreadable, R"(("n"): status.allocatable["cpu"]: "-1" is negative)");
  EXPECT_EQ(node.shape.allocatable.size(), 1u);
}

TEST(DecodeBatchTest, AddsNamesToThoseOfTheView) {
  ResourceNames names;
  const ResourceId known = names.Intern("example.com/known");
  const ChangesBuilder builder = ChangesBuilder::FullList(1, 1).Shape(
      0, MakePod({{"example.com/new", "1"}, {"example.com/known", "2"}}));
  const absl::StatusOr<DecodedBatch> decoded = DecodeBatch(builder.changes(), names);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->batch.resource_names.size(), names.size() + 1);
  EXPECT_EQ(decoded->batch.pod_shapes[0].shape.limits.Get(known), 2);
  EXPECT_FALSE(names.Find("example.com/new").has_value());
}

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() {
    for (const int32_t slot : {1, 3, 4}) {
      cluster_.SetNode(Slot{slot}, "n" + std::to_string(slot), MakeNodeShape({}, names_), {});
    }
  }
  static SlotNumbers Numbers(const std::vector<int32_t>& slots) { return {slots.begin(), slots.end()}; }

  ResourceNames names_;
  ClusterState cluster_;
};

TEST_F(SlotsTest, CandidatesAreTakenInTheirOrderOrAll) {
  EXPECT_THAT(*DecodeCandidates(Numbers({4, 1}), cluster_), ElementsAre(Slot{4}, Slot{1}));
  EXPECT_THAT(*DecodeCandidates({}, cluster_), ElementsAre(Slot{1}, Slot{3}, Slot{4}));
  EXPECT_THAT(*DecodeCandidates({}, ClusterState()), IsEmpty());
}

TEST_F(SlotsTest, BadCandidatesAreRefusedByPositionAndSlot) {
  const auto error_of = [&](const std::vector<int32_t>& slots) {
    return TextOf(DecodeCandidates(Numbers(slots), cluster_).status());
  };
  EXPECT_EQ(error_of({1, 3, 1}), "slots[2]: slot 1 is named twice");
  EXPECT_EQ(error_of({1, 2}), "slots[1]: slot 2 holds no node");
  EXPECT_EQ(error_of({5}), "slots[0]: slot 5 is not in [0, 5)");
  EXPECT_EQ(error_of({-1}), "slots[0]: slot -1 is not in [0, 5)");
  EXPECT_EQ(error_of({INT32_MIN}), "slots[0]: slot -2147483648 is not in [0, 5)");
}

TEST_F(SlotsTest, ExplainedAreCandidates) {
  const std::vector<Slot> candidates = {Slot{4}, Slot{1}};
  EXPECT_THAT(*DecodeExplained(Numbers({1}), candidates, cluster_), ElementsAre(1));
  EXPECT_THAT(*DecodeExplained({}, candidates, cluster_), ElementsAre(0, 1));
  EXPECT_EQ(TextOf(DecodeExplained(Numbers({4, 3}), candidates, cluster_).status()),
            "explain_slots[1]: slot 3 is not a candidate");
  EXPECT_EQ(TextOf(DecodeExplained(Numbers({4, 4}), candidates, cluster_).status()),
            "explain_slots[1]: slot 4 is named twice");
  EXPECT_EQ(TextOf(DecodeExplained(Numbers({9}), candidates, cluster_).status()),
            "explain_slots[0]: slot 9 is not in [0, 5)");
}

TEST_F(SlotsTest, DescribedMayBeEmptySlots) {
  EXPECT_THAT(*DecodeDescribed(Numbers({7, 0}), 8), ElementsAre(Slot{7}, Slot{0}));
  EXPECT_EQ(TextOf(DecodeDescribed(Numbers({8}), 8).status()), "slots[0]: slot 8 is not in [0, 8)");
  EXPECT_EQ(TextOf(DecodeDescribed(Numbers({7, 7}), 8).status()), "slots[1]: slot 7 is named twice");
}

TEST(DecodeConfigTest, ZeroTakesTheDefault) {
  const absl::StatusOr<EngineLimits> limits = DecodeConfig("");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->views, 16);
  EXPECT_EQ(limits->view.nodes, 131072);
  EXPECT_EQ(limits->view.pods, 2'000'000);
  EXPECT_EQ(limits->view.pod_shapes, 2'000'000);
  EXPECT_EQ(limits->view.resources, 256);
  EXPECT_EQ(limits->policies, 8);
}

TEST(DecodeConfigTest, AFieldOfTheFutureIsRefused) {
  const absl::Status status = DecodeConfig("\xc0\x3e\x01").status();  // field 1000 is 1
  EXPECT_EQ(status.message(),
            "configuration: field 1000 of loadline.v1.EngineConfig is not known to this engine");
}

TEST(DecodeConfigTest, TakesWhatIsStated) {
  v1::EngineConfig config;
  config.set_max_views(1);
  config.set_max_nodes(1 << 18);
  config.set_max_pods(2);
  config.set_max_pod_shapes(1 << 21);
  config.set_max_resources(3);
  config.set_max_policies(4);
  const absl::StatusOr<EngineLimits> limits = DecodeConfig(config.SerializeAsString());
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->views, 1);
  EXPECT_EQ(limits->view.nodes, 1 << 18);
  EXPECT_EQ(limits->view.pods, 2);
  EXPECT_EQ(limits->view.pod_shapes, 1 << 21);
  EXPECT_EQ(limits->view.resources, 3);
  EXPECT_EQ(limits->policies, 4);
}

TEST(DecodeConfigTest, RefusesWhatIsOutOfRange) {
  const auto error_of = [](const std::function<void(v1::EngineConfig*)>& change) {
    v1::EngineConfig config;
    change(&config);
    return TextOf(DecodeConfig(config.SerializeAsString()).status());
  };
  EXPECT_EQ(error_of([](auto* c) { c->set_max_views(-1); }),
            "max_views: -1 is not in [1, 2147483647] and not 0 for the default");
  EXPECT_THAT(error_of([](auto* c) { c->set_max_nodes((1 << 18) + 1); }), StartsWith("max_nodes: 262145"));
  EXPECT_THAT(error_of([](auto* c) { c->set_max_pods(INT32_MIN); }), StartsWith("max_pods: -2147483648"));
  EXPECT_THAT(error_of([](auto* c) { c->set_max_pod_shapes((1 << 21) + 1); }),
              StartsWith("max_pod_shapes: 2097153"));
  EXPECT_THAT(error_of([](auto* c) { c->set_max_resources(-5); }), StartsWith("max_resources: -5"));
  EXPECT_THAT(error_of([](auto* c) { c->set_max_policies(-5); }), StartsWith("max_policies: -5"));
  EXPECT_THAT(TextOf(DecodeConfig("\xff").status()),
              StartsWith("configuration is not a loadline.v1.EngineConfig: "));
}

}  // namespace
}  // namespace loadline
