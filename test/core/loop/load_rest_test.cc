// For how long the load has stood still. Steps are counted by hand: 1.5 hours that double, up to a week.
#include "core/loop/load_rest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
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

// A load of so much CPU and as much memory, and of `other` in the last hours of each day.
constexpr int64_t kDayMs = 24 * kHourMs;
constexpr int64_t kMidnightMs = kStartMs / kDayMs * kDayMs;

CpuMemory Amount(int64_t cpu) { return {cpu, cpu << 20}; }

struct DailyLoad {
  int64_t usual = 1'000;
  int64_t other = 1'000;
  int64_t other_hours = 6;
  // Returns what the loops remember that run each ten minutes, from midnight on.
  RestingLoad After(int64_t for_ms) const {
    std::optional<RestingLoad> load;
    for (int64_t at_ms = kMidnightMs; at_ms <= kMidnightMs + for_ms; at_ms += 10 * kMinuteMs) {
      const int64_t hour = at_ms % kDayMs / kHourMs;
      const CpuMemory now = Amount(hour >= 24 - other_hours ? other : usual);
      load = FollowLoad(load, now, kPaybackHours, at_ms);
      FollowHours(now, at_ms, &*load);
    }
    return *load;
  }
  double LastsAfter(int64_t for_ms) const {
    return SavingLastsHours(kPaybackHours, After(for_ms), kMidnightMs + for_ms);
  }
};

// At five in the afternoon of the third day, 65 hours after the start, and at eleven at night.
constexpr int64_t kByDayMs = 65 * kHourMs;
constexpr int64_t kByNightMs = 71 * kHourMs;

// Nine tenths of the peak are like the peak, which has lasted for 65 hours then, or 71; less is not, and
// was left five hours ago. Below the peak, the load has been as it is since the peak ended 17 hours ago.
TEST(LoadRestTest, SavingsAtThePeakOfADayLastForDays) {
  EXPECT_EQ((DailyLoad{.other = 900}.LastsAfter(kByDayMs)), 48);
  EXPECT_EQ((DailyLoad{.other = 899}.LastsAfter(kByDayMs)), 12);
  EXPECT_EQ((DailyLoad{.usual = 900, .other = 1'000}.LastsAfter(kByNightMs)), 48);
  EXPECT_EQ((DailyLoad{.usual = 899, .other = 1'000}.LastsAfter(kByNightMs)), 3);
  EXPECT_EQ((DailyLoad{.other = 900}.LastsAfter(kByNightMs)), 3);
  EXPECT_EQ((DailyLoad{.usual = 900, .other = 1'000}.LastsAfter(kByDayMs)), 12);
  EXPECT_EQ((DailyLoad{.other = 900}.LastsAfter(10 * kDayMs - 7 * kHourMs)), 168);
}

// Pods that are missing for ten minutes are no other load for an hour, nor is a peak of ten minutes.
TEST(LoadRestTest, AnHourIsItsMean) {
  RestingLoad load = DailyLoad().After(kByDayMs);
  FollowHours(Amount(0), kMidnightMs + kByDayMs + 10 * kMinuteMs, &load);
  FollowHours(Amount(1'900), kMidnightMs + kByDayMs + 20 * kMinuteMs, &load);
  FollowHours(Amount(1'000), kMidnightMs + kByDayMs + 30 * kMinuteMs, &load);
  FollowHours(Amount(1'000), kMidnightMs + kByDayMs + 2 * kHourMs, &load);
  load.since_ms = load.last_ms;
  ASSERT_EQ(load.hours.size(), 67U);
  EXPECT_EQ(load.hours[65].sum.cpu / kHourMs, 983);  // (1,000 + 0 + 1,900 + 3 * 1,000) / 6
  EXPECT_EQ(SavingLastsHours(kPaybackHours, load, load.last_ms), 48);
}

TEST(LoadRestTest, OnlyAWeekIsKept) {
  EXPECT_EQ(DailyLoad().After(20 * kDayMs).hours.size(), 168U);
  RestingLoad load = DailyLoad().After(0);
  FollowHours(Amount(1), kMidnightMs + 100 * kDayMs + kHourMs / 2, &load);  // nobody looked for long
  EXPECT_EQ(load.hours.size(), 169U);
  EXPECT_EQ(load.hours.back().known_ms, kHourMs / 2);
  EXPECT_EQ(load.hours.back().sum.cpu, 1'000 * (kHourMs / 2));
}

TEST(LoadRestTest, TheLargestLoadsDoNotOverflow) {
  const CpuMemory most = {kMaxAmount, kMaxAmount};
  RestingLoad load = FollowLoad(std::nullopt, most, kPaybackHours, kMidnightMs);
  FollowHours(most, kMidnightMs + kDayMs, &load);
  EXPECT_EQ(load.hours[0].sum.cpu, (int64_t{1} << 40) * kHourMs);
  EXPECT_EQ(SavingLastsHours(kPaybackHours, load, load.last_ms), 24);
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
  // The hour is over in half an hour; two days are over after 65.5 hours by 30.5 hours.
  load = DailyLoad{.other = 900}.After(kByDayMs + kHourMs / 2);
  load.since_ms = load.last_ms;
  NoteTimesOfLoad(kPaybackHours, load, load.last_ms, note);
  EXPECT_THAT(times, ElementsAre(load.last_ms + kHourMs / 2, kMidnightMs + 96 * kHourMs));
}

}  // namespace
}  // namespace loadline
