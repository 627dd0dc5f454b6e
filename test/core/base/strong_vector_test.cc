#include "core/base/strong_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;

enum class RowIndex : int32_t {};
enum class ColumnIndex : int32_t {};

template <typename Vector, typename Index>
concept Takes = requires(Vector vector, Index index) {
  vector[index];
};

static_assert(StrongIndex<RowIndex>);
static_assert(StrongIndex<ColumnIndex>);
static_assert(!StrongIndex<int32_t>, "a plain number is no position");
static_assert(!StrongIndex<std::optional<RowIndex>>);

using Rows = StrongVector<RowIndex, int64_t>;
static_assert(Takes<Rows, RowIndex>);
static_assert(!Takes<Rows, ColumnIndex>, "a position of another list");
static_assert(!Takes<Rows, size_t>);
static_assert(!Takes<Rows, int32_t>);
static_assert(!Takes<StrongSpan<RowIndex, const int64_t>, ColumnIndex>);
static_assert(!std::convertible_to<RowIndex, int32_t>);
static_assert(!std::convertible_to<std::vector<int64_t>, Rows>, "which list a plain vector is must be said");
static_assert(sizeof(Rows) == sizeof(std::vector<int64_t>));
static_assert(sizeof(RowIndex) == sizeof(int32_t));
static_assert(std::is_nothrow_move_constructible_v<Rows>);

static_assert(sizeof(OptionalIndex<RowIndex>) == sizeof(RowIndex));
static_assert(!std::convertible_to<ColumnIndex, OptionalIndex<RowIndex>>);
static_assert(!std::convertible_to<int32_t, OptionalIndex<RowIndex>>);

TEST(StrongVectorTest, AnOptionalIndexIsNoneUntilItHasOne) {
  OptionalIndex<RowIndex> row;
  EXPECT_FALSE(row.has_value());
  EXPECT_EQ(row, std::nullopt);
  row = RowIndex{0};
  EXPECT_TRUE(row.has_value());
  EXPECT_EQ(*row, RowIndex{0});
  EXPECT_EQ(row, RowIndex{0});
  EXPECT_NE(row, RowIndex{1});
  EXPECT_NE(row, std::nullopt);
  row = std::nullopt;
  EXPECT_FALSE(row.has_value());
}

TEST(StrongVectorTest, IsReadAndWrittenByItsOwnPositions) {
  Rows rows = {5, 7};
  rows.push_back(9);
  EXPECT_EQ(rows.emplace_back(11), 11);
  rows[RowIndex{1}] = 8;
  const Rows& same = rows;
  EXPECT_EQ(same[RowIndex{0}], 5);
  EXPECT_EQ(same[RowIndex{1}], 8);
  EXPECT_EQ(same.front(), 5);
  EXPECT_EQ(same.back(), 11);
  EXPECT_EQ(same.size(), 4U);
  EXPECT_THAT(same, ElementsAre(5, 8, 9, 11));
  EXPECT_THAT(same.values(), ElementsAre(5, 8, 9, 11));
}

TEST(StrongVectorTest, ItsPositionsAreInOrder) {
  Rows rows(3, 2);
  std::vector<int32_t> numbers;
  for (const RowIndex row : rows.indices()) {
    numbers.push_back(static_cast<int32_t>(row));
    rows[row] += static_cast<int64_t>(row);
  }
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
  EXPECT_THAT(rows, ElementsAre(2, 3, 4));
  EXPECT_EQ(rows.end_index(), RowIndex{3});
  EXPECT_TRUE(rows.Contains(RowIndex{2}));
  EXPECT_FALSE(rows.Contains(rows.end_index()));
  EXPECT_FALSE(rows.Contains(RowIndex{-1}));
  for (const RowIndex row : Rows().indices()) FAIL() << static_cast<int32_t>(row);
  EXPECT_EQ(Rows().end_index(), RowIndex{0});
}

TEST(StrongVectorTest, ChangesItsSizeAsAVectorDoes) {
  Rows rows;
  EXPECT_TRUE(rows.empty());
  rows.assign(2, 4);
  rows.resize(3);
  rows.resize(4, 6);
  EXPECT_THAT(rows, ElementsAre(4, 4, 0, 6));
  rows.pop_back();
  EXPECT_EQ(rows, (Rows{4, 4, 0}));
  EXPECT_NE(rows, (Rows{4, 4, 1}));
  rows.clear();
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(Rows(std::vector<int64_t>{1, 2}), (Rows{1, 2}));
}

TEST(StrongVectorTest, HoldsBitsToo) {
  StrongVector<RowIndex, bool> marks(2, false);
  marks[RowIndex{1}] = true;
  EXPECT_THAT(marks, ElementsAre(false, true));
}

TEST(StrongSpanTest, ViewsAVector) {
  const Rows rows = {5, 7};
  const StrongSpan<RowIndex, const int64_t> view = rows;
  EXPECT_EQ(view[RowIndex{1}], 7);
  EXPECT_EQ(&view[RowIndex{0}], &rows[RowIndex{0}]);
  EXPECT_EQ(view.size(), 2U);
  EXPECT_EQ(view.end_index(), RowIndex{2});
  EXPECT_FALSE(view.Contains(RowIndex{2}));
  EXPECT_THAT(std::vector<int64_t>(view.begin(), view.end()), ElementsAre(5, 7));
  int64_t sum = 0;
  for (const RowIndex row : view.indices()) sum += view[row];
  EXPECT_EQ(sum, 12);
  EXPECT_TRUE((StrongSpan<RowIndex, const int64_t>()).empty());
}

TEST(StrongIndexTest, ConvertsWhereItIsAskedTo) {
  EXPECT_EQ(IndexOf(RowIndex{3}), 3U);
  EXPECT_EQ(IndexAt<ColumnIndex>(3), ColumnIndex{3});
  EXPECT_LT(RowIndex{1}, RowIndex{2});
  EXPECT_LT(std::optional<RowIndex>(), RowIndex{0}) << "none comes first";
}

}  // namespace
}  // namespace loadline
