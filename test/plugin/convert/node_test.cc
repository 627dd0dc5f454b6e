// v1.Node bytes to names and shapes.
#include "plugin/convert/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

class NodeDecoderTest : public ::testing::Test {
 protected:
  absl::StatusOr<DecodedNode> Decode(const k8s::v1::Node& node) {
    return decoder_.Decode(node.SerializeAsString());
  }
  std::map<std::string, int64_t> AllocatableOf(const k8s::v1::Node& node) {
    const absl::StatusOr<DecodedNode> decoded = Decode(node);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    std::map<std::string, int64_t> named;
    for (const auto& [id, amount] : decoded->shape.allocatable) named[std::string(names_.name(id))] = amount;
    return named;
  }
  std::string ErrorOf(const k8s::v1::Node& node) {
    const absl::StatusOr<DecodedNode> decoded = Decode(node);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(decoded.status().message());
  }

  ResourceNames names_;
  ResourceReader resources_{&names_};
  NodeDecoder decoder_{&resources_};
};

TEST_F(NodeDecoderTest, ReadsNameAndAllocatable) {
  const k8s::v1::Node node = MakeNode("worker-1", {{"memory", "1Ki"}, {"cpu", "2"}, {"pods", "110"}});
  EXPECT_EQ(Decode(node)->name, "worker-1");
  EXPECT_THAT(AllocatableOf(node), ElementsAre(Pair("cpu", 2000), Pair("memory", 1024), Pair("pods", 110)));
}

TEST_F(NodeDecoderTest, CapacityHoldsWhereAllocatableIsAbsent) {
  k8s::v1::Node node = MakeNode("a", {});
  EXPECT_THAT(AllocatableOf(node), IsEmpty());
  AddEntries({{"cpu", "4"}}, node.mutable_status()->mutable_capacity());
  EXPECT_THAT(AllocatableOf(node), ElementsAre(Pair("cpu", 4000)));
  AddEntries({{"memory", "1"}}, node.mutable_status()->mutable_allocatable());
  EXPECT_THAT(AllocatableOf(node), ElementsAre(Pair("memory", 1)));
}

TEST_F(NodeDecoderTest, BadNamesAreRefused) {
  EXPECT_EQ(ErrorOf(MakeNode("", {})), "has an empty metadata.name");
  EXPECT_EQ(ErrorOf(MakeNode(std::string("a\0z", 3), {})),
            R"(metadata.name: "a\x00z" is not a name: it has characters other than printable ASCII)");
  EXPECT_THAT(ErrorOf(MakeNode("\x1b[2Jx", {})), StartsWith(R"(metadata.name: "\x1b[2Jx" is not a name)"));
  EXPECT_THAT(ErrorOf(MakeNode(std::string(254, 'n'), {})), StartsWith("metadata.name: \"nnn"));
  EXPECT_TRUE(Decode(MakeNode(std::string(253, 'n'), {})).ok());
}

TEST_F(NodeDecoderTest, BadQuantitiesAreRefused) {
  EXPECT_EQ(ErrorOf(MakeNode("a", {{"cpu", "-2"}})), R"(("a"): status.allocatable["cpu"]: "-2" is negative)");
  k8s::v1::Node node = MakeNode("a", {});
  AddEntries({{"cpu", "two"}}, node.mutable_status()->mutable_capacity());
  EXPECT_THAT(ErrorOf(node), StartsWith(R"(("a"): status.capacity["cpu"]: "two" is not a quantity)"));
}

TEST_F(NodeDecoderTest, HugeAmountsAreClampedAndCounted) {
  EXPECT_THAT(AllocatableOf(MakeNode("a", {{"memory", "8Ei"}})),
              ElementsAre(Pair("memory", int64_t{1} << 62)));
  EXPECT_EQ(resources_.clamped_amounts(), 1);
}

}  // namespace
}  // namespace loadline
