#include "core/base/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace loadline {
namespace {

using ::testing::UnorderedElementsAreArray;

std::vector<int> Numbers() {
  std::vector<int> numbers(50);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(ShuffleTest, ANewObjectBeginsWithTheSameOrders) {
  Shuffler one, other;
  std::vector<int> first = Numbers(), again = Numbers(), second = Numbers();
  one.Shuffle(&first);
  other.Shuffle(&again);
  one.Shuffle(&second);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
  EXPECT_NE(first, Numbers());
  EXPECT_THAT(first, UnorderedElementsAreArray(Numbers()));
}

TEST(ShuffleTest, ListsWithoutAnOrderStayAsTheyAre) {
  Shuffler shuffler;
  std::vector<int> none, one = {7};
  shuffler.Shuffle(&none);
  shuffler.Shuffle(&one);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(one, std::vector<int>{7});
}

}  // namespace
}  // namespace loadline
