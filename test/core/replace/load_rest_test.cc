// For how long the load has stood still. Steps are counted by hand: 1.5 hours that double, up to a week.
#include "core/replace/load_rest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kHourMs = 60 * kMinuteMs;
constexpr double kPaybackHours = 1.5;  // a change passes within nine minutes
constexpr CpuMemory kLoad = {1'000, 10'000};

RestingLoad Resting() { return {kLoad, kStartMs, std::nullopt}; }

double LastsAfter(int64_t rest_ms, double payback_hours = kPaybackHours) {
  return SavingLastsHours(payback_hours, Resting(), kStartMs + rest_ms);
}

TEST(LoadRestTest, ASavingLastsInStepsThatDouble) {
  EXPECT_EQ(LastsAfter(0), 1.5);
  EXPECT_EQ(LastsAfter(3 * kHourMs - 1), 1.5);
  EXPECT_EQ(LastsAfter(3 * kHourMs), 3);
  EXPECT_EQ(LastsAfter(24 * kHourMs), 24);
  EXPECT_EQ(LastsAfter(168 * kHourMs - 1), 96);
  EXPECT_EQ(LastsAfter(168 * kHourMs), 168);
  EXPECT_EQ(LastsAfter(1'000 * kHourMs), 168);
}

TEST(LoadRestTest, ItLastsAsLongAsThePaybackAtLeast) {
  EXPECT_EQ(LastsAfter(1'000 * kHourMs, 500), 500);
  EXPECT_EQ(SavingLastsHours(kPaybackHours, std::nullopt, kStartMs), 1.5);
  EXPECT_EQ(LastsAfter(-kHourMs), 1.5);  // a clock was set back
}

TEST(LoadRestTest, FivePercentAreTheSameLoad) {
  for (const CpuMemory load : {CpuMemory{1'050, 10'500}, CpuMemory{950, 9'500}}) {
    EXPECT_EQ(FollowLoad(Resting(), load, kPaybackHours, kStartMs + kHourMs), Resting());
  }
  for (const CpuMemory load : {CpuMemory{1'051, 10'000}, CpuMemory{1'000, 9'499}, CpuMemory{0, 0}}) {
    RestingLoad away = Resting();
    away.away_since_ms = kStartMs + kHourMs;
    EXPECT_EQ(FollowLoad(Resting(), load, kPaybackHours, kStartMs + kHourMs), away);
  }
}

TEST(LoadRestTest, AChangeThatPassesIsNone) {
  RestingLoad away = Resting();
  away.away_since_ms = kStartMs + kHourMs;
  EXPECT_EQ(FollowLoad(away, kLoad, kPaybackHours, kStartMs + kHourMs + 8 * kMinuteMs), Resting());
  const CpuMemory other = {2'000, 10'000};
  EXPECT_EQ(FollowLoad(away, other, kPaybackHours, kStartMs + kHourMs + 9 * kMinuteMs - 1), away);
  // The new load has stood still since the change.
  const RestingLoad anew = {other, kStartMs + kHourMs, std::nullopt};
  EXPECT_EQ(FollowLoad(away, other, kPaybackHours, kStartMs + kHourMs + 9 * kMinuteMs), anew);
}

TEST(LoadRestTest, AgesTellNothingOnceTheLoadIsKnownToStandStill) {
  ConsolidationOptions options;
  options.payback_hours = kPaybackHours;
  UseSavingLasts(kPaybackHours, &options);
  EXPECT_EQ(options.load_rests_hours, 0);
  UseSavingLasts(6, &options);
  EXPECT_EQ(options.load_rests_hours, 6);
  EXPECT_EQ(options.payback_hours, 6);
}

TEST(LoadRestTest, NotesWhenAnAnswerChanges) {
  std::vector<int64_t> times;
  const auto note = [&](int64_t at_ms) { times.push_back(at_ms); };
  RestingLoad load = Resting();
  NoteTimesOfLoad(kPaybackHours, load, kStartMs + 4 * kHourMs, note);
  EXPECT_THAT(times, ElementsAre(kStartMs + 6 * kHourMs));
  times.clear();
  load.away_since_ms = kStartMs + kHourMs;
  NoteTimesOfLoad(kPaybackHours, load, kStartMs + 200 * kHourMs, note);
  EXPECT_THAT(times, ElementsAre(kStartMs + kHourMs + 9 * kMinuteMs));
  times.clear();
  NoteTimesOfLoad(kPaybackHours, Resting(), kStartMs + 200 * kHourMs, note);
  EXPECT_THAT(times, IsEmpty());
}

}  // namespace
}  // namespace loadline
