#include "core/base/texts.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

TEST(TextsTest, PeriodsNameTheirUnits) {
  EXPECT_EQ(DurationText(0), "0 s");
  EXPECT_EQ(DurationText(20), "20 ms");
  EXPECT_EQ(DurationText(1'500), "1.5 s");
  EXPECT_EQ(DurationText(1'050), "1.05 s");
  EXPECT_EQ(DurationText(40'000), "40 s");
  EXPECT_EQ(DurationText(15 * 60'000), "15 min");
  EXPECT_EQ(DurationText(60'020), "1 min 0.02 s");
  EXPECT_EQ(DurationText(60 * 60'000), "1 h");
  EXPECT_EQ(DurationText(150 * 60'000), "2 h 30 min");
  EXPECT_EQ(DurationText(90 * 60'000 + 1'000), "1 h 30 min 1 s");
  EXPECT_EQ(DurationText(100 * 60 * 60'000), "100 h");
}

TEST(TextsTest, TextsAreCutBeforeACharacter) {
  EXPECT_EQ(CutText("abc", 3), "abc");
  EXPECT_EQ(CutText("abc", 2), "ab");
  EXPECT_EQ(CutText("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(CutText("\x80\x80\x80", 2), "");
}

}  // namespace
}  // namespace loadline
