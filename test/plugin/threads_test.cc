// Many threads, one engine: what the thread sanitizer and the invariants have to say.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/daemon/executor.h"
#include "test/plugin/messages.h"
#include "test/plugin/moving_cluster.h"
#include "test/plugin/random_cluster.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

void RunThreads(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadsTest, EachViewAnswersAsIfItWereAlone) {
  TypedEngine engine;
  RunThreads(6, [&](size_t thread) {
    const std::string view = "view/" + std::to_string(thread);
    ASSERT_TRUE(engine.Sync(FirstState().View(view)).ok());
    for (int64_t revision = 2; revision < kRounds; ++revision) {
      v1::Changes changes = StateOf(revision).View(view).changes();
      const absl::StatusOr<v1::ScoreResponse> response =
          engine.Score(ScoreOf(changes, MakePod({}), CpuPolicy(static_cast<int32_t>(1 + revision % 11))));
      ASSERT_TRUE(response.ok()) << response.status();
      ExpectScoresOf(revision, *response);
    }
    EXPECT_TRUE(engine.Drop(view).ok());
  });
  EXPECT_EQ(engine.Describe(v1::DescribeRequest())->views_size(), 0);
}

// One thread moves a view on; the others ask at the revision that they last heard of, and get that state or
// none.
TEST(ThreadsTest, AnswersAreOfTheRevisionAskedFor) {
  TypedEngine engine;
  ASSERT_TRUE(engine.Sync(FirstState()).ok());
  std::atomic<int64_t> current = 1;
  std::atomic<int64_t> answered = 0;
  RunThreads(5, [&](size_t thread) {
    if (thread == 0) {
      while (current < kRounds || answered < 20) {
        const int64_t next = current + 1;
        const bool synced = engine.Sync(StateOf(next)).ok();
        EXPECT_TRUE(synced);
        if (!synced) break;
        current = next;
      }
      current = -1;
      return;
    }
    for (int64_t revision = current; revision > 0; revision = current) {
      const v1::ScoreRequest request = ScoreOf(ChangesBuilder::At(1, revision).changes(), MakePod({}),
                                               CpuPolicy(static_cast<int32_t>(thread)));
      if (thread % 2 == 0) {
        const absl::StatusOr<v1::ExplainResponse> response = engine.Explain(ExplainOf(request));
        if (response.ok()) {
          EXPECT_EQ(response->nodes(0).resources(0).node_limits(), revision % 9 * 1000);
        }
        EXPECT_TRUE(response.ok() || absl::IsFailedPrecondition(response.status())) << response.status();
        continue;
      }
      const absl::StatusOr<v1::ScoreResponse> response = engine.Score(request);
      EXPECT_TRUE(response.ok() || absl::IsFailedPrecondition(response.status())) << response.status();
      if (!response.ok()) continue;
      ExpectScoresOf(revision, *response);
      ++answered;
    }
  });
}

// Whatever meets: views come and go, full lists are staged, all is asked. No answer but those that are
// documented.
TEST(ThreadsTest, AllMethodsTogether) {
  EngineLimits limits;
  limits.views = 3;
  limits.policies = 2;
  TypedEngine engine(limits);
  RunThreads(6, [&](size_t thread) {
    Random random(thread);
    for (int round = 0; round < kRounds; ++round) {
      const std::string view = "view/" + std::to_string(Below(random, 4));
      absl::Status status;
      switch (Below(random, 7)) {
        case 0:
          status = engine.Sync(FirstState().View(view)).status();
          break;
        case 1: {
          const int64_t epoch = static_cast<int64_t>(2 + Below(random, 3));
          status = engine
                       .Sync(ChangesBuilder::Chunk(epoch, 1, static_cast<int32_t>(Below(random, 3)),
                                                   OneIn(random, 2))
                                 .View(view)
                                 .Shape(static_cast<int32_t>(round),
                                        MakePod({{"a.com/" + std::to_string(round), "1"}})))
                       .status();
          break;
        }
        case 2:
          status = engine.Sync(StateOf(static_cast<int64_t>(2 + Below(random, 4))).View(view)).status();
          break;
        case 3:
          status = engine.Drop(view).status();
          break;
        case 4: {
          v1::DescribeRequest request;
          if (OneIn(random, 2)) request.set_view(view);
          request.set_include_pods(true);
          status = engine.Describe(request).status();
          break;
        }
        default: {
          v1::Changes at =
              ChangesBuilder::At(1, static_cast<int64_t>(1 + Below(random, 4))).View(view).changes();
          const v1::ScoreRequest request =
              ScoreOf(at, MakePod({{"cpu", "1"}}), CpuPolicy(static_cast<int32_t>(1 + Below(random, 4))));
          status =
              OneIn(random, 2) ? engine.Score(request).status() : engine.Explain(ExplainOf(request)).status();
        }
      }
      EXPECT_TRUE(status.ok() || absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
                  absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status))
          << status;
    }
  });
}

TEST(ExecutorTest, RunsAllTasksBeforeItEnds) {
  std::atomic<int> run = 0;
  {
    Executor executor(3, {.tasks = 1000, .bytes = 0});
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(executor.Run(0, [&] { ++run; }));
  }
  EXPECT_EQ(run, 500);
}

// Runs `test` while the one thread of an executor is busy, then lets it run what waits.
void WhileBusy(const ExecutorLimits& limits, const std::function<void(Executor*)>& test) {
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false;
  bool released = false;
  Executor executor(1, limits);
  ASSERT_TRUE(executor.Run(0, [&] {
    std::unique_lock<std::mutex> lock(mutex);
    started = true;
    changed.notify_all();
    changed.wait(lock, [&] { return released; });
  }));
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return started; });
  test(&executor);
  released = true;
  changed.notify_all();
}

TEST(ExecutorTest, RefusesWhatWouldWaitTooLong) {
  int run = 0;
  WhileBusy({.tasks = 2, .bytes = 0}, [&](Executor* executor) {
    EXPECT_TRUE(executor->Run(0, [&] { ++run; }));
    EXPECT_TRUE(executor->Run(0, [&] { ++run; }));
    EXPECT_FALSE(executor->Run(0, [&] { run += 100; }));
  });
  EXPECT_EQ(run, 2);
}

TEST(ExecutorTest, RefusesWhatWouldHoldTooMuch) {
  int run = 0;
  WhileBusy({.tasks = 10, .bytes = 100}, [&](Executor* executor) {
    EXPECT_TRUE(executor->Run(60, [&] { ++run; }));
    EXPECT_FALSE(executor->Run(41, [&] { run += 100; }));
    EXPECT_TRUE(executor->Run(40, [&] { ++run; }));
  });
  WhileBusy({.tasks = 10, .bytes = 100}, [&](Executor* executor) {
    EXPECT_TRUE(executor->Run(1'000, [&] { ++run; })) << "one alone may have more";
    EXPECT_FALSE(executor->Run(0, [&] { run += 100; }));
  });
  EXPECT_EQ(run, 3);
}

}  // namespace
}  // namespace loadline
