// The parts of an error that programs read, and objects in the envelope of the API server.
#include "plugin/convert/error_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "loadline/v1/set_cluster.pb.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/text.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct FieldCase {
  std::string text;
  std::string field;
};

TEST(FieldOfTest, ReadsThePathThatATextBeginsWith) {
  for (const FieldCase& c : std::vector<FieldCase>{
           {"policy: required", "policy"},
           {"problem: groups[1]: node_group: \"a b\" is not a name", "problem.groups[1].node_group"},
           {"own: objects[12] \"x\" is sent twice in one batch", "own"},
           {"pod (namespace \"a\"): spec.containers[0] \"app\": limits: \"x\" is no quantity",
            "pod.spec.containers[0].limits"},
           {"pod (a: b", ""},
           {"state.slack: last_s: -1 is negative", "state.slack.last_s"},
           {"slots[3]: slot 7 holds no node", "slots[3]"},
           {"nodes[3]: spec.containers[0].name: is a number", "nodes[3].spec.containers[0].name"},
           {"view \"test\" is not known", ""},
           {"a[: b", ""},
           {"a[]: b", ""},
           {": b", ""},
           {"", ""}}) {
    EXPECT_EQ(FieldOf(c.text), c.field) << c.text;
  }
}

TEST(ErrorDetailsTest, AnAnnotatedErrorKeepsItsReason) {
  const absl::Status status = WithReason(absl::InvalidArgumentError("b"), kUnknownSlot);
  EXPECT_EQ(ReasonOfError(Annotate(status, "a")), "UNKNOWN_SLOT");
  EXPECT_EQ(ReasonOfError(absl::NotFoundError("a")), "UNKNOWN_VIEW");
}

TEST(ErrorDetailsTest, NamesTheObject) {
  const absl::Status error = absl::InvalidArgumentError("b");
  const auto named = [](const absl::Status& status) { return EncodeError(Annotate(status, "a"), {}); };
  EXPECT_THAT(named(WithObject(error, "Pod", "shop", "web-1")), HasSubstr("object\x12\x0ePod shop/web-1"));
  EXPECT_THAT(named(WithObject(error, "Node", "", "n\x01")), HasSubstr("object\x12\x07Node n?"));
  EXPECT_THAT(named(WithObject(error, "Pod", "shop", "")), Not(HasSubstr("object")));
}

// Field numbers and wire types are those of google/rpc/status.proto and error_details.proto.
TEST(ErrorDetailsTest, IsAGoogleRpcStatus) {
  const std::string url = "type.googleapis.com/google.rpc.ErrorInfo";
  const std::string info =
      "\x0a\x05LIMIT\x12\x0cloadline.dev"
      "\x1a\x12\x0a\x07"
      "changes\x12\x07"
      "applied"
      "\x1a\x0a\x0a\x05"
      "field\x12\x01"
      "a";
  const std::string any = std::string("\x0a") + static_cast<char>(url.size()) + url + "\x12" +
                          static_cast<char>(info.size()) + info;
  EXPECT_EQ(EncodeError(absl::ResourceExhaustedError("a: b"), {"", "", true}),
            std::string("\x08\x08\x12\x04"
                        "a: b\x1a") +
                static_cast<char>(any.size()) + any);
}

// The details of an error of the engine, as text.
std::string DetailsOf(TypedEngine* engine, absl::string_view method,
                      const google::protobuf::MessageLite& request) {
  const absl::Status status = engine->CallBytes(method, request.SerializeAsString()).status();
  const auto payload = status.GetPayload(kErrorDetails);
  return payload.has_value() ? std::string(*payload) : "none";
}

TEST(ErrorDetailsTest, SaysWhatBecameOfTheChanges) {
  TypedEngine engine;
  ASSERT_TRUE(engine.Sync(ChangesBuilder::FullList(1, 1).Node(0, MakeNode("a", {{"cpu", "1"}}))).ok());
  v1::ScoreRequest score = ScoreOf(ChangesBuilder::Delta(1, 1, 2).changes(), MakePod({}),
                                   Preset(v1::ScorePolicy::PRESET_UNSPECIFIED));
  std::string details = DetailsOf(&engine, kScoreMethod, score);
  EXPECT_THAT(details, HasSubstr("applied"));
  EXPECT_THAT(details, HasSubstr("policy"));
  EXPECT_THAT(details, HasSubstr("test")) << "the view";
  *score.mutable_changes() = ChangesBuilder::At(1, 7).changes();
  details = DetailsOf(&engine, kScoreMethod, score);
  EXPECT_THAT(details, HasSubstr("refused"));
  EXPECT_THAT(details, HasSubstr("OTHER_STATE"));
  *score.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  *score.mutable_policy() = Preset(v1::ScorePolicy::STRICT);
  score.add_slots(5);
  details = DetailsOf(&engine, kScoreMethod, score);
  EXPECT_THAT(details, HasSubstr("UNKNOWN_SLOT"));
  EXPECT_THAT(details, HasSubstr("slots[0]"));
  v1::DropRequest drop;
  drop.set_view("other");
  details = DetailsOf(&engine, kDropMethod, drop);
  EXPECT_THAT(details, HasSubstr("UNKNOWN_VIEW"));
  EXPECT_THAT(details, Not(HasSubstr("changes")));
}

TEST(ErrorDetailsTest, NamesWhatIsWrongWithACluster) {
  TypedEngine engine;
  v1::SetClusterRequest request;
  request.set_view("test");
  request.set_last(true);
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}});
  pod.mutable_metadata()->set_namespace_("shop");
  pod.mutable_metadata()->set_name("web-1");
  for (int i = 0; i < 2; ++i) request.add_pods(pod.SerializeAsString());
  std::string details = DetailsOf(&engine, "/loadline.v1.ClusterState/SetCluster", request);
  EXPECT_THAT(details, HasSubstr("Pod shop/web-1"));
  EXPECT_THAT(details, HasSubstr("pods[1].metadata.name"));
  // Field 1000 of the request is of the future.
  const absl::Status unknown =
      engine.CallBytes("/loadline.v1.ClusterState/SetCluster", request.SerializeAsString() + "\xc0\x3e\x01")
          .status();
  details = std::string(unknown.GetPayload(kErrorDetails).value_or(absl::Cord(EncodeError(unknown, {}))));
  EXPECT_THAT(details, HasSubstr("field 1000 of loadline.v1.SetClusterRequest"));
  v1::ScoreRequest score =
      ScoreOf(ChangesBuilder::At(1, 1).changes(), MakePod({}), Preset(v1::ScorePolicy::STRICT));
  EXPECT_THAT(DetailsOf(&engine, kScoreMethod, score), HasSubstr("UNKNOWN_VIEW"));
}

std::string Enveloped(const std::string& object) {
  // A runtime.Unknown: field 1 names the type, field 2 has the object, fields 3 and 4 are empty.
  std::string unknown = "\x0a\x09\x0a\x02v1\x12\x03Pod\x12";
  for (size_t size = object.size();; size >>= 7) {
    unknown.push_back(static_cast<char>(size < 0x80 ? size : (size & 0x7f) | 0x80));
    if (size < 0x80) break;
  }
  return std::string("k8s\0", 4) + unknown + object + std::string("\x1a\0\x22\0", 4);
}

TEST(WithoutEnvelopeTest, TakesTheObjectOut) {
  const std::string object = MakePod({{"cpu", "1"}}).SerializeAsString();
  EXPECT_EQ(WithoutEnvelope(Enveloped(object)), object);
  const std::string large(1000, 'x');
  EXPECT_EQ(WithoutEnvelope(Enveloped(large)), large);
  EXPECT_EQ(WithoutEnvelope(object), object);
  EXPECT_EQ(WithoutEnvelope(""), "");
  // Nobody can parse a damaged one.
  for (size_t size = 4; size + 4 < Enveloped(object).size(); ++size) {
    const std::string damaged = Enveloped(object).substr(0, size);
    const absl::string_view rest = WithoutEnvelope(damaged);
    EXPECT_TRUE(rest == damaged || rest.empty()) << size;
  }
}

TEST(WithoutEnvelopeTest, AnEnvelopedPodScoresAsThePod) {
  TypedEngine engine;
  ASSERT_TRUE(engine
                  .Sync(ChangesBuilder::FullList(1, 1)
                            .Shape(0, MakePod({{"cpu", "1"}}))
                            .Node(0, MakeNode("a", {{"cpu", "2"}}), {{0, "p", ""}})
                            .Node(1, MakeNode("b", {{"cpu", "2"}})))
                  .ok());
  v1::ScorePolicy policy = Preset(v1::ScorePolicy::STRICT);
  policy.add_resources()->set_resource("cpu");
  policy.mutable_resources(0)->set_weight(1);
  v1::ScoreRequest request = ScoreOf(ChangesBuilder::At(1, 1).changes(), MakePod({{"cpu", "1"}}), policy);
  request.set_pod(Enveloped(request.pod()));
  const absl::StatusOr<v1::ScoreResponse> response = engine.Score(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->scores(), ::testing::ElementsAre(0, 100));
}

}  // namespace
}  // namespace loadline
