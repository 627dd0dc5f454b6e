#include "core/base/fingerprint.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace loadline {
namespace {

template <typename... Parts>
uint64_t Fingerprint(const Parts&... parts) {
  FingerprintBuilder builder;
  (builder.Add(parts), ...);
  return builder.Finish();
}

// Worked out from the header's description with another program: a change of any of these is a change of the
// algorithm, after which two versions no longer agree.
TEST(FingerprintTest, IsTheSameEverywhere) {
  EXPECT_EQ(Fingerprint(), 0x9e3779b97f4a7c15);
  EXPECT_EQ(Fingerprint(0), 0x805821f2fa6849c4);
  EXPECT_EQ(Fingerprint(1), 0x8310eb309aafa835);
  EXPECT_EQ(Fingerprint(-1), 0x7c41d0063c1adcd9);
  EXPECT_EQ(Fingerprint(int64_t{1} << 62), 0x9ee1caa40d5a2600);
  EXPECT_EQ(Fingerprint(""), 0x70c67e4ae8084f61);
  EXPECT_EQ(Fingerprint("cpu"), 0xda255743821d7a4f);
  EXPECT_EQ(Fingerprint("12345678"), 0x64f42a78806910c3);
  EXPECT_EQ(Fingerprint("ephemeral-storage"), 0x9dd643a2149dc5c7);
  EXPECT_EQ(Fingerprint(std::string("\xff\0", 2)), 0x00661d3176f66888);
  EXPECT_EQ(Fingerprint(500, "cpu", -1), 0xc706d361be91c7a8);
}

TEST(FingerprintTest, TellsSequencesApart) {
  const std::vector<uint64_t> fingerprints = {
      Fingerprint(),
      Fingerprint(0),
      Fingerprint(0, 0),
      Fingerprint(0, 1),
      Fingerprint(1, 0),
      Fingerprint(""),
      Fingerprint("", ""),
      Fingerprint("", 0),
      Fingerprint(std::string(1, '\0')),
      Fingerprint(std::string(8, '\0')),
      Fingerprint(std::string(9, '\0')),
      Fingerprint("ab", "c"),
      Fingerprint("a", "bc"),
      Fingerprint("abc"),
      Fingerprint("abc", ""),
      Fingerprint("abc", 0),
      Fingerprint(3, 0x636261),  // length and little-endian bytes of "abc"
      Fingerprint("12345678", "9"),
      Fingerprint("123456789"),
  };
  EXPECT_EQ(std::set<uint64_t>(fingerprints.begin(), fingerprints.end()).size(), fingerprints.size());
}

TEST(FingerprintTest, MoreMayBeAddedAfterFinish) {
  FingerprintBuilder builder;
  builder.Add("cpu");
  EXPECT_EQ(builder.Finish(), Fingerprint("cpu"));
  EXPECT_EQ(builder.Finish(), Fingerprint("cpu"));
  builder.Add(500);
  EXPECT_EQ(builder.Finish(), Fingerprint("cpu", 500));
}

// Amounts are small and alike: neighbours must land far apart. Of 64 bits 32 change on average, with a
// standard deviation of 4 for one pair and of 0.08 for the mean of these 2,560.
TEST(FingerprintTest, OneBitChangesHalfOfTheHash) {
  const auto mean_change = [](const std::function<uint64_t(int64_t)>& hash) {
    int changed = 0;
    int count = 0;
    for (int64_t number = 0; number < 64; ++number) {
      for (int bit = 0; bit < 40; ++bit, ++count) {
        changed += std::popcount(hash(number * 250) ^ hash((number * 250) ^ (int64_t{1} << bit)));
      }
    }
    return static_cast<double>(changed) / count;
  };
  EXPECT_NEAR(mean_change([](int64_t number) { return Fingerprint(number); }), 32, 1);
  EXPECT_NEAR(mean_change([](int64_t number) { return Fingerprint(number, "cpu", 0); }), 32, 1);
}

}  // namespace
}  // namespace loadline
