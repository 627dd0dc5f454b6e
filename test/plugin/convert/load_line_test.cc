// The load line, from bytes to bytes: what is refused of it, and that Fit and CheckLoadLine answer alike.
#include "plugin/convert/load_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/fit.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::LoadLine Line(const std::vector<std::pair<std::string, std::string>>& lines) {
  v1::LoadLine message;
  for (const auto& [resource, at_most] : lines) {
    v1::LineResource* const entry = message.add_resources();
    entry->set_resource(resource);
    entry->set_max_limits_over_allocatable(at_most);
  }
  return message;
}

TEST(DecodeLoadLineTest, TakesOverWhatItSays) {
  v1::LoadLine message = Line({{"memory", "1.5"}, {"cpu", "3"}, {"ephemeral-storage", "0.125"}});
  message.set_node_label_prefix("lines.example.com");
  message.add_exempt_namespaces("kube-system");
  message.mutable_counting()->set_preset(v1::ScorePolicy::STRICT);
  message.mutable_counting()->set_max_limit_ratio(-1);
  v1::MissingLimitRule* const rule = message.mutable_counting()->add_missing_limits();
  rule->set_pods(v1::MissingLimitRule::OTHERS);
  rule->set_resource("memory");
  rule->set_rule(v1::MissingLimitRule::FIXED);
  rule->set_fixed("1Gi");
  const absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const LoadLine& line = decoded->line;
  EXPECT_THAT(line.lines, ElementsAre(1'500, 3'000, 125));
  ASSERT_EQ(line.sums.resources.size(), 3u);
  EXPECT_EQ(line.sums.resources[0].id, kMemory);
  EXPECT_EQ(line.sums.resources[0].rules.others, (MissingLimitRule{MissingLimit::kFixed, int64_t{1} << 30}));
  EXPECT_EQ(line.sums.resources[0].rules.best_effort, (MissingLimitRule{MissingLimit::kAllocatable}));
  EXPECT_EQ(line.sums.resources[1].rules.others, (MissingLimitRule{MissingLimit::kRequest}));
  EXPECT_EQ(line.sums.resources[2].rules.others, (MissingLimitRule{MissingLimit::kRequest}));
  EXPECT_EQ(line.sums.max_limit_ratio, 0);
  EXPECT_EQ(line.node_label_prefix, "lines.example.com");
  EXPECT_TRUE(line.exempt_namespaces.contains("kube-system"));
  EXPECT_EQ(decoded->columns.resources.size(), 3u);
}

TEST(DecodeLoadLineTest, TheDefaultCountsAsThePresetStrict) {
  const absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(Line({{"memory", "1"}}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->columns, StrictPolicy({{"cpu", 1}, {"memory", 1}}));
  EXPECT_TRUE(DecodeLoadLine(v1::LoadLine())->line.empty());
}

TEST(DecodeLoadLineTest, RefusesWhatIsNoLine) {
  const auto refused = [](const v1::LoadLine& message) {
    const absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(message);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(decoded.status().message());
  };
  EXPECT_THAT(refused(Line({{"nvidia.com/gpu", "1"}})),
              HasSubstr("resources[0]: resource: \"nvidia.com/gpu\""));
  EXPECT_THAT(refused(Line({{"cpu", "1"}, {"cpu", "2"}})),
              HasSubstr("resources[1]: resource: \"cpu\" is named"));
  for (const char* const text : {"", "0", "0.0999", "1000.1", "1e1", "1.2345", "-1", "inf"}) {
    EXPECT_THAT(refused(Line({{"cpu", text}})), HasSubstr("max_limits_over_allocatable"));
  }
  v1::LoadLine message = Line({{"cpu", "1"}});
  message.mutable_counting()->set_preset(v1::ScorePolicy::KEP217);
  EXPECT_THAT(refused(message), HasSubstr("counting: a load line counts the effective limits"));
  message.mutable_counting()->set_preset(v1::ScorePolicy::STRICT);
  message.mutable_counting()->set_missing_limit_scope(v1::ScorePolicy::INCOMING_POD);
  EXPECT_THAT(refused(message), HasSubstr("counting"));
  message.clear_counting();
  message.mutable_counting();
  EXPECT_THAT(refused(message), HasSubstr("counting: preset: required"));
  message = Line({{"cpu", "1"}});
  message.set_node_label_prefix("a b");
  EXPECT_THAT(refused(message), HasSubstr("node_label_prefix"));
  message.set_node_label_prefix("");
  message.add_exempt_namespaces("a\n");
  EXPECT_THAT(refused(message), HasSubstr("exempt_namespaces[0]"));
  message.set_exempt_namespaces(0, "");
  EXPECT_THAT(refused(message), HasSubstr("exempt_namespaces[0]"));
  for (int i = 0; i < 1'000; ++i) message.add_exempt_namespaces("a");
  EXPECT_THAT(refused(message), HasSubstr("exempt_namespaces"));
}

k8s::v1::Pod Limiting(const std::string& memory, const std::string& namespace_name = "default") {
  k8s::v1::Pod pod = MakePod({{"memory", memory}}, {{"cpu", "1m"}});
  pod.mutable_metadata()->set_namespace_(namespace_name);
  return pod;
}

// Nodes "a" and "b" of 100 bytes of memory in slots 0 and 1; on "a" pods that limit 90.
class CheckLoadLineTest : public ::testing::Test {
 protected:
  CheckLoadLineTest() {
    const auto node = [](const std::string& name) {
      return MakeNode(name, {{"cpu", "4"}, {"memory", "100"}, {"pods", "110"}});
    };
    EXPECT_TRUE(engine_
                    .Sync(ChangesBuilder::FullList(1, 1)
                              .Shape(0, Limiting("90"))
                              .Node(0, node("a"), {{0, "old", "old-uid"}})
                              .Node(1, node("b")))
                    .ok());
    request_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
    *request_.mutable_line() = Line({{"memory", "1.5"}});
  }

  absl::StatusOr<v1::CheckLoadLineResponse> Ask() {
    const absl::StatusOr<std::string> bytes = engine_.CallBytes(
        "/loadline.v1.SchedulerExtender/CheckLoadLine", request_.SerializeAsString(), Deadline());
    if (!bytes.ok()) return bytes.status();
    v1::CheckLoadLineResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }
  v1::LineArrival* AddArrival(int32_t slot, const k8s::v1::Pod& pod) {
    v1::LineArrival* const arrival = request_.add_arrivals();
    arrival->set_slot(slot);
    arrival->set_pod(pod.SerializeAsString());
    return arrival;
  }

  TypedEngine engine_;
  v1::CheckLoadLineRequest request_;
};

TEST_F(CheckLoadLineTest, NamesThoseThatRefuse) {
  request_.set_pod(Limiting("61").SerializeAsString());
  absl::StatusOr<v1::CheckLoadLineResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->refusals_size(), 1);
  EXPECT_THAT(response->refusals(0).slots(), ElementsAre(0));
  EXPECT_THAT(response->refusals(0).reasons(),
              ElementsAre("load line: memory limits would exceed 1.5 x allocatable"));
  EXPECT_FALSE(response->refusals(0).unresolvable());
  EXPECT_EQ(response->nodes_above(), 0);
  EXPECT_EQ(response->nodes_size(), 0);
  request_.set_pod(Limiting("60").SerializeAsString());
  EXPECT_EQ(Ask()->refusals_size(), 0);
  *request_.mutable_line() = Line({{"memory", "0.5"}});
  response = Ask();
  ASSERT_EQ(response->refusals_size(), 1);
  EXPECT_THAT(response->refusals(0).slots(), ElementsAre(0, 1));
  EXPECT_TRUE(response->refusals(0).unresolvable());
  EXPECT_EQ(response->nodes_above(), 1);
  request_.mutable_line()->add_exempt_namespaces("default");
  EXPECT_EQ(Ask()->refusals_size(), 0);
}

// The line is 150. On "a" pods count as 90, on "b" none are.
TEST_F(CheckLoadLineTest, TellsRooms) {
  request_.set_pod(Limiting("61").SerializeAsString());
  request_.set_with_rooms(true);
  absl::StatusOr<v1::CheckLoadLineResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->rooms_size(), 2);
  EXPECT_THAT(response->rooms(0).room(), ElementsAre(150 - 90 - 61));
  EXPECT_THAT(response->rooms(1).room(), ElementsAre(150 - 61));
  EXPECT_EQ(response->rooms(1).slot(), 1);
  EXPECT_THAT(response->rooms(0).pods(), ElementsAre());
  EXPECT_THAT(response->reasons(), ElementsAre("load line: memory limits would exceed 1.5 x allocatable"));
  EXPECT_THAT(response->rooms(1).reasons(), ElementsAre(0));

  request_.add_slots(1);
  request_.add_slots(0);
  request_.set_with_pods(true);
  AddArrival(0, Limiting("7"));
  AddArrival(1, Limiting("200"));  // counts as the node at most
  AddArrival(0, Limiting("8"));
  response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->rooms(1).slot(), 0);
  EXPECT_THAT(response->rooms(1).pods(), ElementsAre(90, 7, 8));
  EXPECT_THAT(response->rooms(0).pods(), ElementsAre(100));
  EXPECT_THAT(response->rooms(1).room(), ElementsAre(150 - 90 - 61));

  // A pod that counts as nothing needs no room: a rule says so, or its namespace is exempt.
  constexpr int64_t kUnbounded = int64_t{1} << 62;
  request_.mutable_line()->add_exempt_namespaces("default");
  EXPECT_THAT(Ask()->rooms(0).room(), ElementsAre(kUnbounded));
}

TEST_F(CheckLoadLineTest, RefusesArrivalsThatCannotCome) {
  request_.set_pod(Limiting("61").SerializeAsString());
  v1::LineArrival* const arrival = AddArrival(0, Limiting("7"));
  EXPECT_THAT(Ask().status().message(), HasSubstr("arrivals: require with_rooms"));
  request_.set_with_rooms(true);
  request_.add_slots(1);
  EXPECT_THAT(Ask().status().message(), HasSubstr("arrivals[0]: slot 0 is no candidate"));
  arrival->set_slot(1);
  request_.clear_pod();
  EXPECT_THAT(Ask().status().message(), HasSubstr("pod: required with with_rooms"));
}

// An arrival that cannot be read in full is no error, since it would be none on the node, and the others
// count.
TEST_F(CheckLoadLineTest, TakesArrivalsThatCannotBeRead) {
  request_.set_pod(Limiting("61").SerializeAsString());
  request_.set_with_rooms(true);
  request_.add_slots(0);
  AddArrival(0, Limiting("7"));
  AddArrival(0, Limiting("-7"));
  request_.add_arrivals()->set_pod("\xff");
  AddArrival(0, Limiting("8"));
  const absl::StatusOr<v1::CheckLoadLineResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->rooms(0).pods(), ElementsAre(7, _, _, 8));
}

TEST_F(CheckLoadLineTest, TellsHowItCounts) {
  EXPECT_FALSE(Ask()->has_counting());
  request_.set_with_counting(true);
  const v1::ScorePolicy counting = Ask()->counting();
  EXPECT_EQ(counting.max_limit_ratio(), 1);
  EXPECT_EQ(counting.missing_limits_size(), 4);  // cpu and memory, of two kinds of pods
}

TEST_F(CheckLoadLineTest, TellsAmounts) {
  request_.set_with_nodes(true);
  request_.add_slots(1);
  request_.add_slots(0);
  *request_.mutable_line() = Line({{"memory", "0.8"}});
  const absl::StatusOr<v1::CheckLoadLineResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->nodes_above(), 1);
  ASSERT_EQ(response->nodes_size(), 2);
  EXPECT_EQ(response->nodes(0).node(), "b");
  const v1::LineAmount& amount = response->nodes(1).resources(0);
  EXPECT_EQ(response->nodes(1).slot(), 0);
  EXPECT_EQ(amount.resource(), "memory");
  EXPECT_EQ(amount.max_limits_over_allocatable(), "0.8");
  EXPECT_EQ(amount.allocatable(), 100);
  EXPECT_EQ(amount.limits(), 90);
  EXPECT_EQ(amount.ceiling(), 80);
}

TEST_F(CheckLoadLineTest, NamesTheFieldThatIsWrong) {
  request_.clear_line();
  EXPECT_THAT(Ask().status().message(), HasSubstr("line: required"));
  *request_.mutable_line() = Line({{"memory", "x"}});
  EXPECT_THAT(Ask().status().message(), HasSubstr("line: resources[0]"));
  *request_.mutable_line() = Line({{"memory", "1"}});
  request_.set_pod("\xff");
  EXPECT_THAT(Ask().status().message(), HasSubstr("pod"));
  request_.clear_pod();
  request_.add_slots(7);
  EXPECT_THAT(Ask().status().message(), HasSubstr("slots[0]"));
  request_.clear_changes();
  EXPECT_THAT(Ask().status().message(), HasSubstr("changes: required"));
}

std::string RandomBytes(std::mt19937* random, int64_t most) {
  return absl::StrCat(std::uniform_int_distribution<int64_t>(1, most)(*random));
}

k8s::v1::Pod RandomLimited(std::mt19937* random) {
  const auto draw = [&](int high) { return std::uniform_int_distribution<int>(0, high)(*random); };
  Quantities limits, requests;
  if (draw(3) > 0) limits.emplace_back("memory", RandomBytes(random, 80));
  if (draw(3) > 0) limits.emplace_back("cpu", absl::StrCat(RandomBytes(random, 3'000), "m"));
  if (draw(3) > 0) requests = {{"cpu", "1m"}, {"memory", "1"}};
  k8s::v1::Pod pod = MakePod(limits, requests);
  pod.mutable_metadata()->set_namespace_(draw(4) == 0 ? "exempt" : "default");
  return pod;
}

// The scheduler asks CheckLoadLine, planners go by the filter: on any cluster both say the same.
TEST(LoadLineParityTest, FitAndCheckLoadLineSayTheSame) {
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    TypedEngine engine;
    ChangesBuilder changes = ChangesBuilder::FullList(1, 1);
    for (int shape = 0; shape < 8; ++shape) changes.Shape(shape, RandomLimited(&random));
    for (int slot = 0; slot < 6; ++slot) {
      k8s::v1::Node node = MakeNode(
          absl::StrCat("node-", slot),
          {{"cpu", absl::StrCat(draw(1, 8))}, {"memory", absl::StrCat(draw(1, 150))}, {"pods", "110"}});
      if (draw(0, 2) == 0) {
        auto* const label = node.mutable_metadata()->add_labels();
        label->set_key("lines.example.com/memory");
        label->set_value(draw(0, 3) == 0 ? "no line" : absl::StrCat("0.", draw(100, 999)));
      }
      std::vector<PodOnNode> pods;
      for (int pod = draw(0, 4); pod > 0; --pod) {
        pods.push_back({draw(0, 7), absl::StrCat("p", pod), absl::StrCat("u", slot, "-", pod)});
      }
      changes.Node(slot, node, pods);
    }
    ASSERT_TRUE(engine.Sync(changes).ok());
    v1::CheckLoadLineRequest question;
    question.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
    *question.mutable_line() =
        Line({{"memory", absl::StrCat("1.", draw(100, 999))}, {"cpu", absl::StrCat(draw(1, 3))}});
    question.mutable_line()->set_node_label_prefix("lines.example.com");
    question.mutable_line()->add_exempt_namespaces("exempt");
    const std::string pod = RandomLimited(&random).SerializeAsString();
    question.set_pod(pod);
    v1::FitRequest fit;
    *fit.mutable_changes() = question.changes();
    fit.add_pods()->set_pod(pod);
    *fit.mutable_options()->mutable_load_line() = question.line();
    using Verdicts = std::set<std::pair<int32_t, std::string>>;
    Verdicts by_filter, by_question;
    const auto fits =
        engine.CallBytes("/loadline.v1.SchedulerExtender/Fit", fit.SerializeAsString(), Deadline());
    ASSERT_TRUE(fits.ok()) << fits.status();
    v1::FitResponse verdicts;
    ASSERT_TRUE(verdicts.ParseFromString(*fits));
    for (const v1::VerdictGroup& group : verdicts.pods(0).groups()) {
      if (group.filter() != v1::VerdictGroup::LOAD_LINE) continue;
      std::string text = group.status_class() == v1::VerdictGroup::UNSCHEDULABLE ? "" : "unresolvable ";
      for (const std::string& reason : group.reasons()) absl::StrAppend(&text, reason, ";");
      for (const int32_t slot : group.slots()) by_filter.insert({slot, text});
    }
    const auto checked = engine.CallBytes("/loadline.v1.SchedulerExtender/CheckLoadLine",
                                          question.SerializeAsString(), Deadline());
    ASSERT_TRUE(checked.ok()) << checked.status();
    v1::CheckLoadLineResponse answer;
    ASSERT_TRUE(answer.ParseFromString(*checked));
    for (const v1::LineRefusal& refusal : answer.refusals()) {
      std::string text = refusal.unresolvable() ? "unresolvable " : "";
      for (const std::string& reason : refusal.reasons()) absl::StrAppend(&text, reason, ";");
      for (const int32_t slot : refusal.slots()) by_question.insert({slot, text});
    }
    // If another filter refuses, the line is not asked: the one request of a byte fits or not.
    Verdicts other;
    for (const v1::VerdictGroup& group : verdicts.pods(0).groups()) {
      if (group.verdict() != v1::VerdictGroup::DOES_NOT_FIT || group.filter() == v1::VerdictGroup::LOAD_LINE)
        continue;
      for (const int32_t slot : group.slots()) {
        std::erase_if(by_question, [slot](const auto& entry) { return entry.first == slot; });
      }
    }
    ASSERT_EQ(by_filter, by_question) << "round " << round;
    refused += static_cast<int>(by_filter.size());
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace loadline
