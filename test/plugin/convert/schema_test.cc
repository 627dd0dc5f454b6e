#include "plugin/convert/schema.h"

#include <string>

#include "gtest/gtest.h"
#include "loadline/v1/load_line.pb.h"
#include "loadline/v1/score.pb.h"

namespace loadline {
namespace {

// A field of a number that no message has: tag and the value 1.
const std::string kFuture("\x98\x3f\x01", 3);

std::string UnknownIn(const std::string& type, const std::string& bytes) {
  return Schema::OfThisEngine().UnknownField("loadline.v1." + type, bytes);
}

TEST(SchemaTest, KnowsWhatMessagesHave) {
  v1::ScoreRequest request;
  request.mutable_changes()->set_view("v");
  request.mutable_changes()->add_nodes()->add_pods()->set_shape(1);
  request.add_slots(1);
  request.add_slots(2);
  request.mutable_policy()->add_resources()->set_weight(1);
  EXPECT_EQ(UnknownIn("ScoreRequest", request.SerializeAsString()), "");
  v1::ScoreResponse response;
  response.add_raw_scores(-1);
  EXPECT_EQ(UnknownIn("ScoreResponse", response.SerializeAsString()), "");
  EXPECT_EQ(UnknownIn("ScoreResponse", std::string("\x19\1\0\0\0\0\0\0\0", 9)),
            "");  // not packed
  EXPECT_EQ(UnknownIn("ScoreRequest", ""), "");
}

TEST(SchemaTest, FindsFieldsOfTheFuture) {
  EXPECT_EQ(UnknownIn("ScoreRequest", kFuture), "field 1011 of loadline.v1.ScoreRequest");
  v1::ScoreRequest request;
  request.mutable_policy()->set_preset(v1::ScorePolicy::STRICT);
  EXPECT_TRUE(request.mutable_policy()->add_resources()->ParseFromString(kFuture));
  EXPECT_EQ(UnknownIn("ScoreRequest", request.SerializeAsString()),
            "field 1011 of loadline.v1.ResourceWeight");
  // Objects of Kubernetes are bytes, into which it does not look.
  request.clear_policy();
  request.set_pod(kFuture);
  EXPECT_EQ(UnknownIn("ScoreRequest", request.SerializeAsString()), "");
  // A number that was given up, and a field of another wire type.
  EXPECT_EQ(UnknownIn("CheckLoadLineRequest", std::string("\x2a\0", 2)),
            "field 5 of loadline.v1.CheckLoadLineRequest");
  EXPECT_EQ(UnknownIn("ScoreRequest", std::string("\x10\1", 2)), "field 2 of loadline.v1.ScoreRequest");
  EXPECT_EQ(UnknownIn("ScoreRequest", std::string("\x2d\0\0\0\0", 5)), "field 5 of loadline.v1.ScoreRequest");
  EXPECT_EQ(UnknownIn("Nothing", ""), "message loadline.v1.Nothing");
}

// A file of the package "p" with the message "M" that has the field "f = 7" of type string.
const std::string kOneField(
    "\x0a\x13\x12\x01p\"\x0e\x0a\x01M\x12\x09\x0a\x01"
    "f\x18\x07(\x09 \x01");

TEST(SchemaTest, ReadsDescriptors) {
  const Schema schema(kOneField);
  EXPECT_EQ(schema.UnknownField("p.M", std::string("\x3a\x01x", 3)), "");
  EXPECT_EQ(schema.UnknownField("p.M", std::string("\x38\x01", 2)), "field 7 of p.M");
  EXPECT_EQ(schema.UnknownField("p.N", ""), "message p.N");
}

// Whatever the bytes are, reading them ends.
TEST(SchemaTest, ReadsWhatIsNoDescriptor) {
  for (const std::string& bytes : {std::string(1'000, '\xff'), std::string("\x0a\x7f"),
                                   std::string("\x0b\x0c"), std::string("\x0a\x04\x22\x02\x12\x7f", 6)}) {
    EXPECT_EQ(Schema(bytes).UnknownField("p.M", ""), "message p.M");
  }
  EXPECT_EQ(Schema(kOneField + "\x0a\x7f").UnknownField("p.M", ""), "");
}

}  // namespace
}  // namespace loadline
