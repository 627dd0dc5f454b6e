#include "core/observe/soft_taints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"
#include "core/loop/loop_actions.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kSoftNowMs = 1'700'000'000'000;

// Nodes, and a plan that will remove some of them.
class SoftTaintsTest : public ::testing::Test {
 protected:
  SoftTaintsTest() {
    options_.max_soft_taints = 10;
    plan_.scale_down_problem = std::make_unique<DrainProblem>();
  }

  Slot Add(const std::string& name, const std::vector<std::string>& taints = {}) {
    FitNode node{.name = name};
    node.traits.uid = "uid-" + name;
    for (const std::string& taint : taints) node.taints.push_back({taint, "5", ""});
    cluster_.Add(node);
    return Slot{next_++};
  }
  Slot Soft(const std::string& name) { return Add(name, {kDeletionCandidateTaint}); }

  void Removes(Slot slot, int64_t since_s, bool start = false) {
    DrainRemoval& removal = plan_.scale_down.remove.emplace_back();
    removal.slot = slot;
    removal.since_s = since_s;
    removal.start = start;
  }

  // "-a" loses its taint, "+b 7" gets one, "remove c" starts to go.
  std::vector<std::string> Actions() {
    std::vector<std::string> texts;
    for (const LoopAction& action :
         ActionsOf(seen_, findings_, plan_, cluster_.state(), options_, kSoftNowMs, &memory_)) {
      if (action.slot == Slot{-1}) continue;
      const absl::string_view name = cluster_.state().name(action.slot);
      if (action.kind == LoopAction::Kind::kTakeSoftTaint) {
        texts.push_back(absl::StrCat("-", name));
      } else if (action.kind == LoopAction::Kind::kSoftTaint) {
        texts.push_back(absl::StrCat("+", name, " ", action.since_s));
      } else if (action.kind == LoopAction::Kind::kRemove) {
        texts.push_back(absl::StrCat("remove ", name));
      }
    }
    return texts;
  }
  void Tried(const std::vector<std::string>& names, int64_t at_ms) {
    std::vector<std::string> uids;
    for (const std::string& name : names) uids.push_back("uid-" + name);
    NoteSoftTaintsTried(uids, at_ms, &memory_);
  }

  FitCluster cluster_;
  int32_t next_ = 0;
  LoopObservation seen_;
  LoopFindings findings_;
  ObserveOptions options_;
  LoopPlan plan_;
  LoopMemory memory_;
};

TEST_F(SoftTaintsTest, NodesLoseThemBeforeOthersGetThemByName) {
  Removes(Add("d"), 4);
  Soft("c");
  Removes(Add("b"), 2);
  Soft("a");
  Removes(Soft("has"), 1);  // what it says is not renewed
  Add("none");
  EXPECT_THAT(Actions(), ElementsAre("-a", "-c", "+b 2", "+d 4"));
}

// They are as little needed as those that can go.
TEST_F(SoftTaintsTest, NodesBehindBudgetsGetThem) {
  const Slot waits = Add("waits");
  plan_.scale_down.behind_budgets = {{waits, 200}, {Soft("has"), 100}};
  EXPECT_THAT(Actions(), ElementsAre("+waits 200"));
}

TEST_F(SoftTaintsTest, ALoopChangesSoMany) {
  Soft("a");
  Removes(Add("b"), 2);
  Removes(Add("c"), 3);
  options_.max_soft_taints = 2;
  EXPECT_THAT(Actions(), ElementsAre("-a", "+b 2"));
  options_.max_soft_taints = 0;
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(SoftTaintsTest, NodesOnTheirWayOutAreLeftAlone) {
  Removes(Add("tainted", {kToBeDeletedTaint}), 1);
  Add("tainted twice", {kDeletionCandidateTaint, kToBeDeletedTaint});
  // A node whose removal was abandoned is shown with a soft taint that it does not have.
  seen_.marks.push_back({.slot = Soft("marked")});
  findings_.marked.going.push_back(Soft("acknowledged"));
  seen_.under_way = {{Soft("under way"), "g"}, {std::nullopt, "g"}};
  Removes(Add("starts"), 2, /*start=*/true);
  EXPECT_THAT(Actions(), ElementsAre("remove starts"));
  findings_.nothing_leaves = true;
  EXPECT_THAT(Actions(), ElementsAre("+starts 2"));
}

TEST_F(SoftTaintsTest, SomebodyElseDecides) {
  Soft("a");
  plan_.scale_down_problem = nullptr;
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(SoftTaintsTest, WhoDoesNotActWritesNone) {
  Soft("a");
  options_.acts = false;
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(SoftTaintsTest, TheyFollowWhileGroupsGrow) {
  seen_.groups.resize(1);
  findings_.groups.resize(1);
  plan_.growth = {{.group = GroupIndex{0}, .for_pods = 1}};
  plan_.no_scale_down = NoScaleDown::kGrowing;
  Soft("a");
  Removes(Add("b"), 2);
  EXPECT_THAT(Actions(), ElementsAre("-a", "+b 2"));
}

// More than are written in one loop, and they come first: the others get theirs nevertheless.
TEST_F(SoftTaintsTest, NodesThatFailTakeTurnsAndKeepNoOthersWaiting) {
  for (const char* const name : {"bad1", "bad2", "bad3"}) Soft(name);
  std::vector<Slot> good;
  for (const char* const name : {"good1", "good2", "good3"}) {
    good.push_back(Add(name));
    Removes(good.back(), 7);
  }
  options_.max_soft_taints = 2;
  const std::vector<std::string> want = {"-bad1 -bad2", "-bad3 +good1 7", "+good2 7 +good3 7", "-bad1 -bad2",
                                         "-bad3 -bad1"};
  for (size_t loop = 0; loop < want.size(); ++loop) {
    const std::vector<std::string> actions = Actions();
    EXPECT_EQ(absl::StrJoin(actions, " "), want[loop]) << "loop " << loop;
    std::vector<std::string> tried;
    for (const std::string& action : actions) {
      tried.push_back(action.substr(1, action.find(' ') - 1));
      if (!absl::StartsWith(tried.back(), "good")) continue;
      FitNode node{.name = tried.back(), .taints = {{kDeletionCandidateTaint, "7", "PreferNoSchedule"}}};
      node.traits.uid = "uid-" + node.name;
      cluster_.Put(good[static_cast<size_t>(node.name.back() - '1')], node, {});
    }
    Tried(tried, kSoftNowMs + static_cast<int64_t>(loop));
  }
}

// For want of time, or since the writes of a loop before go on.
TEST_F(SoftTaintsTest, WhatWasNotTriedComesFirst) {
  for (const char* const name : {"a", "b", "c"}) Soft(name);
  EXPECT_THAT(Actions(), ElementsAre("-a", "-b", "-c"));
  Tried({"a"}, kSoftNowMs);
  EXPECT_THAT(Actions(), ElementsAre("-b", "-c", "-a"));
  EXPECT_THAT(Actions(), ElementsAre("-b", "-c", "-a"));
  Tried({"b", "c"}, kSoftNowMs + 1);
  EXPECT_THAT(Actions(), ElementsAre("-a", "-b", "-c"));
}

TEST_F(SoftTaintsTest, WhatHasChangedIsForgotten) {
  Soft("a");
  const Slot b = Add("b");
  Tried({"a", "b", "gone"}, kSoftNowMs);
  EXPECT_THAT(Actions(), ElementsAre("-a"));
  EXPECT_THAT(memory_.soft_taint_tried_ms, ElementsAre(Pair(FleetKey("uid-a"), kSoftNowMs)));
  Removes(b, 2);
  EXPECT_THAT(Actions(), ElementsAre("+b 2", "-a")) << "b was tried for something else";
}

}  // namespace
}  // namespace loadline
