#include "core/base/amount.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace loadline {
namespace {

struct SumCase {
  std::string name;
  int64_t a;
  int64_t b;
  int64_t sum;
};
class SaturatingAddTest : public ::testing::TestWithParam<SumCase> {};

TEST_P(SaturatingAddTest, GivesSumEitherWay) {
  const SumCase& c = GetParam();
  EXPECT_EQ(SaturatingAdd(c.a, c.b), c.sum);
  EXPECT_EQ(SaturatingAdd(c.b, c.a), c.sum);
}

INSTANTIATE_TEST_SUITE_P(Cases, SaturatingAddTest,
                         ::testing::ValuesIn(std::vector<SumCase>{
                             {"Zero", 0, 0, 0},
                             {"Small", 1500, 250, 1750},
                             {"MaximumAndZero", kMaxAmount, 0, kMaxAmount},
                             {"ExactlyMaximum", kMaxAmount - 1, 1, kMaxAmount},
                             {"OneShort", kMaxAmount - 2, 1, kMaxAmount - 1},
                             {"OneOver", kMaxAmount, 1, kMaxAmount},
                             {"TwoMaxima", kMaxAmount, kMaxAmount,
                              kMaxAmount},  // 2^63 as a sum: wraps in int64
                             {"TwoHalves", kMaxAmount / 2, kMaxAmount / 2, kMaxAmount}}),
                         [](const auto& test) { return test.param.name; });

TEST(SaturatingAddTest, OrderOfManyDoesNotMatter) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> amount(0, kMaxAmount);
  for (int i = 0; i < 10'000; ++i) {
    const int64_t a = amount(random) >> (i % 60);
    const int64_t b = amount(random) >> (i % 7);
    const int64_t c = amount(random);
    const int64_t sum = SaturatingAdd(SaturatingAdd(a, b), c);
    EXPECT_EQ(sum, SaturatingAdd(a, SaturatingAdd(b, c)));
    EXPECT_GE(sum, c);
    EXPECT_LE(sum, kMaxAmount);
  }
}

}  // namespace
}  // namespace loadline
