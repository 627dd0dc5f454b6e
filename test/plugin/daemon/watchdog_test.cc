// Calls that do not end, views that are not let go of, and a log that nobody reads.
#include "plugin/daemon/watchdog.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/daemon/log.h"
#include "plugin/daemon/running_calls.h"
#include "plugin/service/handlers.h"
#include "plugin/service/turn.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kSlow[] = "/loadline.v1.Autoscaler/Slow";

TEST(RunningCallsTest, ACallIsLateByItsTimeoutOrByItsBeginning) {
  RunningCalls calls;
  const RunningCalls::Clock::time_point begin = RunningCalls::Clock::now();
  EXPECT_FALSE(calls.LongestOverdue(seconds(0), begin + std::chrono::hours(1)).has_value());
  const RunningCalls::Call with_timeout(&calls, "with", seconds(1'000));
  EXPECT_FALSE(calls.LongestOverdue(seconds(60), begin + seconds(1'060)).has_value());
  std::optional<RunningCalls::Overdue> late = calls.LongestOverdue(seconds(60), begin + seconds(1'090));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->method, "with");
  {
    const RunningCalls::Call without(&calls, "without", std::nullopt);
    EXPECT_FALSE(calls.LongestOverdue(seconds(60), begin + seconds(60)).has_value());
    late = calls.LongestOverdue(seconds(60), begin + seconds(1'090));
    ASSERT_TRUE(late.has_value());
    EXPECT_EQ(late->method, "without");
    EXPECT_GT(late->age, seconds(1'000));
  }
  EXPECT_EQ(calls.LongestOverdue(seconds(60), begin + seconds(1'090))->method, "with");
}

TEST(RunningCallsTest, ATimeoutBeyondAllTimeIsNone) {
  RunningCalls calls;
  const RunningCalls::Call call(&calls, "long", std::chrono::nanoseconds::max());
  EXPECT_FALSE(calls.LongestOverdue(seconds(0), RunningCalls::Clock::now()).has_value());
}

TEST(WatchdogTest, ReportsACallThatDoesNotEndAndThatItEnded) {
  RunningCalls calls;
  std::mutex mutex;
  std::deque<std::promise<bool>> reports(2);
  size_t next = 0;
  std::optional<RunningCalls::Call> call;
  const Watchdog watchdog(&calls, milliseconds(20), [&](bool serving) {
    const std::lock_guard<std::mutex> lock(mutex);
    ASSERT_LT(next, reports.size()) << "a report too many";
    reports[next++].set_value(serving);
  });
  call.emplace(&calls, kSlow, std::nullopt);
  EXPECT_FALSE(reports[0].get_future().get());
  call.reset();
  EXPECT_TRUE(reports[1].get_future().get());
}

TEST(TurnTest, IsWaitedForNoLongerThanADeadline) {
  Turn turn;
  absl::StatusOr<Turn::Lock> first = turn.Take(Deadline());
  ASSERT_TRUE(first.ok());
  absl::Status late = turn.Take(Deadline::After(1'000'000)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.message(), "the timeout of the call passed before there was an answer");
  late = turn.Take(Deadline(), milliseconds(1)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.message(), "another call still uses it; a longer timeout leaves it more time");
  first->reset();
  EXPECT_TRUE(turn.Take(Deadline::After(1)).ok());
}

// A caller that has a view may have it for ever; the others are answered by their own time.
TEST(TurnTest, AViewThatIsHeldEndsNoCallLate) {
  Views views{EngineLimits()};
  ASSERT_TRUE(
      AnswerSync(ChangesBuilder::FullList(1, 1).Node(0, MakeNode("a", {})).Sync(), Deadline(), &views).ok());
  v1::DescribeRequest one;
  one.set_view("test");
  const Deadline short_deadline = Deadline::After(20'000'000);
  const absl::StatusOr<LockedView> held = views.Lock("test", Deadline());
  ASSERT_TRUE(held.ok());
  const absl::Status errors[] = {
      AnswerDescribe(one, short_deadline, &views).status(),
      AnswerDescribe(v1::DescribeRequest(), short_deadline, &views).status(),
      AnswerSync(ChangesBuilder::Delta(1, 1, 2).Sync(), short_deadline, &views).status(),
      AnswerSync(ChangesBuilder::At(1, 1).Sync(), short_deadline, &views).status(),
  };
  for (const absl::Status& error : errors) {
    EXPECT_EQ(error.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(error.message(), "view \"test\": the timeout of the call passed before there was an answer");
  }
}

// Standard error as a pipe that this test reads, or does not.
class LogPipeTest : public ::testing::Test {
 protected:
  LogPipeTest() : former_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(pipe_), 0);
    dup2(pipe_[1], STDERR_FILENO);
    fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
  }
  ~LogPipeTest() override {
    dup2(former_, STDERR_FILENO);
    for (const int fd : {former_, pipe_[0], pipe_[1]}) close(fd);
  }

  // Fills the pipe, so that nothing more fits.
  void Fill() const {
    fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
    while (write(pipe_[1], "x", 1) == 1) {
    }
    fcntl(pipe_[1], F_SETFL, 0);
  }
  // All that the pipe holds.
  std::string Read() const {
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0; (size = read(pipe_[0], buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }

 private:
  int former_;
  int pipe_[2] = {-1, -1};
};

TEST_F(LogPipeTest, AFullPipeHoldsUpNobody) {
  Fill();
  LogInfo("first");
  LogError("second");
  EXPECT_THAT(Read(), MatchesRegex("x+"));
  LogInfo("third");
  LogInfo("fourth");
  EXPECT_THAT(Read(), MatchesRegex("E[^\n]*\\] 2 lines were dropped: nobody read the log in time\n"
                                   "I[^\n]*\\] third\n"
                                   "I[^\n]*\\] fourth\n"));
}

TEST_F(LogPipeTest, ALineStaysALineHoweverLongItsTextIs) {
  LogInfo(std::string(size_t{1} << 20, '\n'));
  const std::string line = Read();
  EXPECT_LE(line.size(), 4096U);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(line, HasSubstr("\\u000a\\u000a"));
}

}  // namespace
}  // namespace loadline
