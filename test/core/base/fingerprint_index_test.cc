// Numbers of equal values, also where different ones have the same fingerprint.
#include "core/base/fingerprint_index.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace loadline {
namespace {

TEST(FingerprintIndexTest, FindsTheEqualOneAmongThoseOfOneFingerprint) {
  const std::vector<std::string> values = {"a", "b", "c"};
  FingerprintIndex index;
  const auto find = [&](uint64_t fingerprint, const std::string& value) {
    return index.Find(fingerprint, [&](int32_t i) { return values[static_cast<size_t>(i)] == value; });
  };
  EXPECT_EQ(find(7, "a"), std::nullopt);
  for (int32_t i = 0; i < 3; ++i) index.Add(7, i);
  EXPECT_EQ(find(7, "a"), 0);
  EXPECT_EQ(find(7, "c"), 2);
  EXPECT_EQ(find(7, "d"), std::nullopt);
  EXPECT_EQ(find(8, "a"), std::nullopt) << "of another fingerprint";
  EXPECT_EQ(index.size(), 3U);
  index.Remove(7, 1);
  EXPECT_EQ(find(7, "b"), std::nullopt);
  EXPECT_EQ(find(7, "c"), 2);
  index.Remove(7, 0);
  index.Remove(7, 2);
  EXPECT_EQ(find(7, "c"), std::nullopt);
  index.Add(7, 1);
  EXPECT_EQ(find(7, "b"), 1) << "a number may come back";
}

}  // namespace
}  // namespace loadline
