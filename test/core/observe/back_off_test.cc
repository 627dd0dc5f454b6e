#include "core/observe/back_off.h"

#include <gtest/gtest.h>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

TEST(BackOffTest, DoublesUpToItsMaximumAndBeginsAnewAfterAReset) {
  const BackOffOptions options = DefaultFleetOptions().back_off;
  std::optional<BackOff> back_off;
  struct Step {
    int64_t at, until;  // minutes
  };
  for (const Step& step : std::vector<Step>{{0, 5},         // the first one
                                            {2, 7},         // while it backs off: not longer
                                            {7, 17},        // right behind: twice
                                            {17, 37},       // four times
                                            {40, 70},       // eight times is beyond the most
                                            {300, 305},     // more than three hours later
                                            {480, 490}}) {  // less than three hours later
    NoteFailure(BackOffReason::kTimeout, "late", FleetWorld::At(step.at), options, &back_off);
    EXPECT_EQ(back_off->until_ms, FleetWorld::At(step.until)) << step.at;
    EXPECT_EQ(back_off->text, "late");
    EXPECT_TRUE(BacksOff(back_off, FleetWorld::At(step.until) - 1)) << step.at;
    EXPECT_FALSE(BacksOff(back_off, FleetWorld::At(step.until))) << step.at;
  }
  EXPECT_FALSE(IsForgotten(*back_off, FleetWorld::At(480 + 180), options));
  EXPECT_TRUE(IsForgotten(*back_off, FleetWorld::At(480 + 180) + 1, options));
}

TEST(BackOffTest, ExactlyAtTheResetTheFailureStillCounts) {
  const BackOffOptions options = DefaultFleetOptions().back_off;
  std::optional<BackOff> back_off;
  NoteFailure(BackOffReason::kTimeout, "", FleetWorld::At(0), options, &back_off);
  NoteFailure(BackOffReason::kTimeout, "", FleetWorld::At(180), options, &back_off);
  EXPECT_EQ(back_off->duration_ms, 10 * kFleetMinute);
  NoteFailure(BackOffReason::kTimeout, "", FleetWorld::At(360) + 1, options, &back_off);
  EXPECT_EQ(back_off->duration_ms, 5 * kFleetMinute);
}

TEST(BackOffTest, ALongTextIsCutBeforeACharacter) {
  std::optional<BackOff> back_off;
  NoteFailure(BackOffReason::kApiError, std::string(511, 'a') + "\xc3\xa4", 1, DefaultFleetOptions().back_off,
              &back_off);
  EXPECT_EQ(back_off->text, std::string(511, 'a'));
}

}  // namespace
}  // namespace loadline
