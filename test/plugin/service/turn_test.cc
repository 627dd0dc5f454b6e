// Threads that have a view alone, and threads that share it.
#include "plugin/service/turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "plugin/service/policy_columns.h"
#include "plugin/service/views.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using std::chrono::milliseconds;

const Deadline kAtOnce = Deadline().WithoutWaiting();
constexpr milliseconds kSoon{20};

TEST(TurnTest, OneHasItOrSeveralShareIt) {
  Turn turn;
  {
    const absl::StatusOr<Turn::Shared> first = turn.Share(kAtOnce);
    const absl::StatusOr<Turn::Shared> second = turn.Share(kAtOnce);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(turn.Take(kAtOnce).status().code(), absl::StatusCode::kAborted);
    EXPECT_EQ(turn.Take(Deadline(), kSoon).status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(turn.Share(kAtOnce).ok()) << "the one that waited has gone";
  }
  const absl::StatusOr<Turn::Lock> alone = turn.Take(kAtOnce);
  EXPECT_TRUE(alone.ok());
  EXPECT_EQ(turn.Share(kAtOnce).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(turn.Share(Deadline(), kSoon).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(TurnTest, AShareThatIsMadeOfAllLetsOthersIn) {
  Turn turn;
  absl::StatusOr<Turn::Lock> alone = turn.Take(kAtOnce);
  ASSERT_TRUE(alone.ok());
  const Turn::Shared share = Turn::Downgrade(*std::move(alone));
  EXPECT_TRUE(turn.Share(kAtOnce).ok());
  EXPECT_FALSE(turn.Take(kAtOnce).ok());
}

// Each reader gives its share back only when the next one has come: were they not to wait, there would be no
// moment without one.
TEST(TurnTest, ReadersKeepNobodyOut) {
  Turn turn;
  std::atomic<bool> taken = false;
  std::optional<Turn::Shared> share = *turn.Share(kAtOnce);
  std::thread writer([&] {
    const absl::StatusOr<Turn::Lock> held = turn.Take(Deadline());
    EXPECT_TRUE(held.ok());
    taken = true;
  });
  // Until the writer waits.
  while (turn.Share(kAtOnce).ok()) std::this_thread::yield();
  EXPECT_FALSE(taken);
  share.reset();
  writer.join();
  EXPECT_TRUE(taken);
  EXPECT_TRUE(turn.Share(kAtOnce).ok());
}

TEST(TurnTest, NobodyReadsWhatIsBeingWritten) {
  Turn turn;
  int64_t value = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 2'000; ++round) {
        if (i == 0) {
          absl::StatusOr<Turn::Lock> held = turn.Take(Deadline());
          ASSERT_TRUE(held.ok());
          value += 1;
          value += 1;
          const Turn::Shared share = Turn::Downgrade(*std::move(held));
          EXPECT_EQ(value % 2, 0);
        } else {
          const absl::StatusOr<Turn::Shared> share = turn.Share(Deadline());
          ASSERT_TRUE(share.ok());
          EXPECT_EQ(value % 2, 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value, 4'000);
}

class SideBySideTest : public ::testing::Test {
 protected:
  SideBySideTest() {
    EXPECT_TRUE(engine_
                    .Sync(ChangesBuilder::FullList(1, 1)
                              .Shape(0, MakePod({{"cpu", "1"}}))
                              .Node(0, MakeNode("a", {{"cpu", "8"}}), {{0, "p", ""}})
                              .Node(1, MakeNode("b", {{"cpu", "8"}})))
                    .ok());
  }

  static v1::ScoreRequest Question(int64_t time_s = 0) {
    v1::Changes changes = ChangesBuilder::At(1, 1).changes();
    changes.set_time_s(time_s);
    v1::ScorePolicy policy = Preset(v1::ScorePolicy::STRICT);
    policy.add_resources()->set_resource("cpu");
    policy.mutable_resources(0)->set_weight(1);
    return ScoreOf(changes, MakePod({}), policy);
  }
  // The code of a call that may not wait for others.
  absl::StatusCode Ask(absl::string_view method, const google::protobuf::MessageLite& request) {
    return engine_.CallBytes(method, request.SerializeAsString(), kAtOnce).status().code();
  }

  TypedEngine engine_;
};

// A question that only reads does not wait for another one of its kind.
TEST_F(SideBySideTest, QuestionsThatReadDoNotWaitForEachOther) {
  const absl::StatusOr<ReadView> other = engine_.views().Read(Question().changes(), Deadline());
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Ask(kScoreMethod, Question()), absl::StatusCode::kOk);
  EXPECT_EQ(Ask(kExplainMethod, ExplainOf(Question())), absl::StatusCode::kOk);
  v1::DescribeRequest describe;
  EXPECT_EQ(Ask(kDescribeMethod, describe), absl::StatusCode::kOk);
  describe.set_view("test");
  EXPECT_EQ(Ask(kDescribeMethod, describe), absl::StatusCode::kOk);
  v1::CheckLoadLineRequest line;
  *line.mutable_changes() = Question().changes();
  v1::LineResource* const cpu = line.mutable_line()->add_resources();
  cpu->set_resource("cpu");
  cpu->set_max_limits_over_allocatable("1");
  EXPECT_EQ(Ask("/loadline.v1.SchedulerExtender/CheckLoadLine", line), absl::StatusCode::kOk);
  // A batch and a time change the view.
  EXPECT_EQ(Ask(kScoreMethod, Question(/*time_s=*/5)), absl::StatusCode::kAborted);
  EXPECT_EQ(Ask(kSyncMethod, ChangesBuilder::Delta(1, 1, 2).Sync()), absl::StatusCode::kAborted);
}

// A question that brings changes lets others in as soon as they are applied.
TEST_F(SideBySideTest, ChangesAreAppliedAloneAndReadTogether) {
  const absl::StatusOr<ReadView> other =
      engine_.views().Read(ChangesBuilder::Delta(1, 1, 2).changes(), Deadline());
  ASSERT_TRUE(other.ok()) << other.status();
  v1::ScoreRequest question = Question();
  EXPECT_EQ(Ask(kScoreMethod, question), absl::StatusCode::kFailedPrecondition) << "of an older revision";
  *question.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  EXPECT_EQ(Ask(kScoreMethod, question), absl::StatusCode::kOk);
}

// Two policies, of which one has room: threads put each other's columns out while they read them.
TEST(PolicyColumnsTest, ColumnsStayForWhoeverHasThem) {
  ClusterState cluster;
  PolicyColumns columns(/*max_policies=*/1);
  LimitPolicy first;
  LimitPolicy second;
  second.max_limit_ratio = 7;
  const PolicyColumns::Lease lease = columns.For(first, cluster, nullptr);
  EXPECT_EQ(columns.For(first, cluster, nullptr).get(), lease.get());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 500; ++round) {
        const PolicyColumns::Lease mine = columns.For(i % 2 == 0 ? first : second, cluster, nullptr);
        EXPECT_EQ(mine->policy(), i % 2 == 0 ? first : second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lease->policy(), first);
}

// Whoever counts by other profiles gets columns of its own while the former are read.
TEST(PolicyColumnsTest, OthersProfilesDoNotChangeColumnsThatAreRead) {
  ClusterState cluster;
  WorkloadUsage usage;
  usage.cpu_milli.fill(1);
  usage.days = 7;
  usage.newest_s = 1'000;
  cluster.objects().Set({{ObjectKind::kWorkloadUsage, "default", "Deployment/web"}, usage});
  ExpectedUseOptions options;
  options.on = true;
  const auto profiles = std::make_shared<const ExpectedUse>(options, cluster.objects(), 1'000);
  ASSERT_FALSE(profiles->empty());
  PolicyColumns columns(/*max_policies=*/8);
  std::optional<PolicyColumns::Lease> lease = columns.For(LimitPolicy(), cluster, profiles);
  const LimitColumns* const former = lease->get();
  const PolicyColumns::Lease other = columns.For(LimitPolicy(), cluster, nullptr);
  EXPECT_NE(other.get(), former);
  EXPECT_EQ((*lease)->expected(), profiles.get());
  EXPECT_EQ(other->expected(), nullptr);
  EXPECT_EQ(columns.For(LimitPolicy(), cluster, profiles).get(), former);
  EXPECT_EQ(columns.For(LimitPolicy(), cluster, nullptr).get(), other.get());
}

}  // namespace
}  // namespace loadline
