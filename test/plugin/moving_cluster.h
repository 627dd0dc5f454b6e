// A cluster that moves on, of whose states everybody can tell which answer is right.
#ifndef LOADLINE_TEST_PLUGIN_MOVING_CLUSTER_H_
#define LOADLINE_TEST_PLUGIN_MOVING_CLUSTER_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loadline/v1/score.pb.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {

// How often threads meet.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kRounds = 100;
#else
inline constexpr int kRounds = 500;
#endif

// In the state of revision n, node "a" has pods with a limit of n modulo 9 and node "b" one of 4.
inline ChangesBuilder FirstState() {
  return ChangesBuilder::FullList(1, 1)
      .Shape(0, MakePod({{"cpu", "1"}}))
      .Node(0, MakeNode("a", {{"cpu", "8"}}), {{0, "p", ""}})
      .Node(1, MakeNode("b", {{"cpu", "8"}}), std::vector<PodOnNode>(4, {0, "q", ""}));
}
inline ChangesBuilder StateOf(int64_t revision) {
  return ChangesBuilder::Delta(1, revision - 1, revision)
      .Node(0, MakeNode("a", {{"cpu", "8"}}),
            std::vector<PodOnNode>(static_cast<size_t>(revision % 9), {0, "p", ""}));
}

inline v1::ScorePolicy CpuPolicy(int32_t weight) {
  v1::ScorePolicy policy = Preset(v1::ScorePolicy::STRICT);
  policy.add_resources()->set_resource("cpu");
  policy.mutable_resources(0)->set_weight(weight);
  return policy;
}

inline void ExpectScoresOf(int64_t revision, const v1::ScoreResponse& response) {
  ASSERT_EQ(response.scores_size(), 2);
  const int64_t pods = revision % 9;
  EXPECT_EQ(response.scores(0), pods < 4 ? 100 : 0) << revision;
  EXPECT_EQ(response.scores(1), pods > 4 ? 100 : 0) << revision;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_MOVING_CLUSTER_H_
