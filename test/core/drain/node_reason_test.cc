#include "core/drain/node_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace loadline {
namespace {

// Every row of the table: what a state remembers is read back, and advice is never forgotten.
TEST(NodeReasonTest, EachReasonReadsBackAndIsExplained) {
  std::set<std::string> names;
  for (const NodeReason reason : AllNodeReasons()) {
    const NodeReasonEntry entry = EntryOf(reason);
    names.emplace(entry.name);
    EXPECT_EQ(Name(reason), entry.name);
    EXPECT_EQ(NodeReasonNamed(entry.name), reason) << entry.name;
    EXPECT_FALSE(entry.meaning.empty()) << entry.name;
    EXPECT_EQ(entry.advice.empty(), reason == NodeReason::kNone) << entry.name;
  }
  EXPECT_EQ(names.size(), AllNodeReasons().size());
  EXPECT_EQ(NodeReasonNamed("Unreadable"), NodeReason::kUnreadable);
  EXPECT_EQ(NodeReasonNamed("HoldsRoomForWaitingPods"), NodeReason::kHoldsRoomForWaitingPods);
}

TEST(NodeReasonTest, OtherNamesAndNumbersAreNone) {
  EXPECT_EQ(NodeReasonNamed(""), std::nullopt);
  EXPECT_EQ(NodeReasonNamed("notUnderutilized"), std::nullopt);
  EXPECT_EQ(Name(static_cast<NodeReason>(AllNodeReasons().size())), "invalid reason");
}

}  // namespace
}  // namespace loadline
