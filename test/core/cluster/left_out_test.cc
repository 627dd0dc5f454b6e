// The report of objects that are left out, and whose turn it is if not all can be taken.
#include "core/cluster/left_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

TEST(LeftOutListTest, NamesTheFirstAndCountsAll) {
  LeftOutList down, up;
  for (int i = 999; i >= 0; --i) down.Add("Pod", "default", absl::StrCat("pod-", i), "bad");
  for (int i = 0; i < 1000; ++i) up.Add("Pod", "default", absl::StrCat("pod-", i), "bad");
  EXPECT_EQ(down.total(), 1000);
  EXPECT_EQ(down.named().size(), 256u);
  EXPECT_EQ(down.named(), up.named()) << "whatever the order";
  EXPECT_EQ(down.named().begin()->name, "pod-0");
  LeftOutList both;
  both.Add("Node", "", "n", "worse");
  both.Add(down);
  EXPECT_EQ(both.total(), 1001);
  EXPECT_EQ(both.named().size(), 256u);
  EXPECT_EQ(both.named().begin()->kind, "Node");
}

// Each namespace has its turn, in whatever order its objects come.
TEST(LeftOutListTest, NamesOfANamespaceAreNotHiddenBehindThoseOfAnother) {
  LeftOutList first, last;
  const auto add_evil = [](LeftOutList* list) {
    for (int i = 0; i < 400; ++i) list->Add("Pod", absl::StrCat("evil-", i % 3), absl::StrCat(i), "bad");
  };
  const auto add_others = [](LeftOutList* list) {
    for (int i = 0; i < 5; ++i) list->Add("Pod", "victim", absl::StrCat("p-", i), "bad");
    list->Add("Node", "", "n", "bad");
  };
  add_others(&first);
  add_evil(&first);
  add_evil(&last);
  add_others(&last);
  EXPECT_EQ(first.named(), last.named());
  EXPECT_EQ(last.total(), 406);
  std::map<std::string, int> named;
  for (const LeftOutObject& object : last.named()) ++named[object.namespace_name];
  const std::map<std::string, int> want = {
      {"", 1}, {"evil-0", 84}, {"evil-1", 83}, {"evil-2", 83}, {"victim", 5}};
  EXPECT_EQ(named, want);
}

TEST(LeftOutListTest, OneOfEachNamespaceIsNamedWhereThereAreTooMany) {
  LeftOutList list;
  for (int i = 0; i < 1000; ++i) list.Add("Pod", absl::StrCat("n-", 1000 + i), "p", "bad");
  EXPECT_EQ(list.total(), 1000);
  EXPECT_EQ(list.named().size(), 256u);
  EXPECT_EQ(list.named().rbegin()->namespace_name, "n-1255");
}

TEST(LeftOutListTest, AnObjectCountsOnceAndItsTextIsCut) {
  LeftOutList list;
  list.Add("Pod", "default", "p", "bad");
  list.Add("Pod", "default", "p", "bad");
  EXPECT_EQ(list.total(), 1);
  list.Add("A", std::string(1000, 'n'), std::string(1000, 'x'), std::string(1000, 'r'));
  EXPECT_EQ(list.named().begin()->namespace_name.size(), 253u);
  EXPECT_EQ(list.named().begin()->name.size(), 253u);
  EXPECT_EQ(list.named().begin()->reason.size(), 512u);
}

TEST(TakeInTurnsTest, NamespacesTakeTurns) {
  EXPECT_THAT(TakeInTurns({"a", "a"}, 2), ElementsAre(true, true));
  EXPECT_THAT(TakeInTurns({"a", "a", "a", "a", "b", "c"}, 4),
              ElementsAre(true, true, false, false, true, true));
  EXPECT_THAT(TakeInTurns({"a", "a", "b"}, 0), ElementsAre(false, false, false));
}

}  // namespace
}  // namespace loadline
