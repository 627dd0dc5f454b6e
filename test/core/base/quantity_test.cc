#include "core/base/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

// units * 1e9 + nano, both with the sign of the value.
absl::int128 Nano(int64_t units, int64_t nano) { return absl::int128(units) * 1'000'000'000 + nano; }

Quantity Parsed(const std::string& text) {
  const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status();
  return parsed.ok() ? parsed->value : Quantity();
}

std::string Zeros(size_t count) { return std::string(count, '0'); }

struct ParseCase {
  std::string text;
  int64_t units;
  int64_t nano;
};
std::ostream& operator<<(std::ostream& out, const ParseCase& c) { return out << '"' << c.text << '"'; }
class ParseQuantityTest : public ::testing::TestWithParam<ParseCase> {};

TEST_P(ParseQuantityTest, GivesExactValue) {
  const ParseCase& c = GetParam();
  const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(c.text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->value.nano(), Nano(c.units, c.nano));
  EXPECT_FALSE(parsed->clamped);
}

INSTANTIATE_TEST_SUITE_P(Plain, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{{"0", 0, 0},
                                                                    {"1", 1, 0},
                                                                    {"+1", 1, 0},
                                                                    {"-1", -1, 0},
                                                                    {"-0", 0, 0},
                                                                    {"007", 7, 0},
                                                                    {"1.5", 1, 500'000'000},
                                                                    {"-1.5", -1, -500'000'000},
                                                                    {"1.", 1, 0},
                                                                    {".5", 0, 500'000'000},
                                                                    {"+.5", 0, 500'000'000},
                                                                    {"00.50", 0, 500'000'000}}));

INSTANTIATE_TEST_SUITE_P(DecimalSuffix, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{{"1n", 0, 1},
                                                                    {"1u", 0, 1'000},
                                                                    {"100m", 0, 100'000'000},
                                                                    {"1500m", 1, 500'000'000},
                                                                    {"1k", 1'000, 0},
                                                                    {"1M", 1'000'000, 0},
                                                                    {"1G", 1'000'000'000, 0},
                                                                    {"1.G", 1'000'000'000, 0},
                                                                    {"1T", 1'000'000'000'000, 0},
                                                                    {"1P", 1'000'000'000'000'000, 0},
                                                                    {"1E", 1'000'000'000'000'000'000, 0},
                                                                    {"-2.5k", -2'500, 0}}));

INSTANTIATE_TEST_SUITE_P(BinarySuffix, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{
                             {"1Ki", 1'024, 0},
                             {"1Mi", 1'048'576, 0},
                             {"1Gi", 1'073'741'824, 0},
                             {"1Ti", 1'099'511'627'776, 0},
                             {"1Pi", 1'125'899'906'842'624, 0},
                             {"1Ei", 1'152'921'504'606'846'976, 0},
                             {"1.5Gi", 1'610'612'736, 0},
                             {"-0.5Mi", -524'288, 0},
                             {".5Ki", 512, 0},
                             {".5Pi", 562'949'953'421'312, 0},
                             {"0.001Ki", 1, 24'000'000},
                             // 2^60 / 1e10 = 115292150.4606846976 on top of 2^60
                             {"1.0000000001Ei", 1'152'921'504'722'139'126, 460'684'698}}));

INSTANTIATE_TEST_SUITE_P(Exponent, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{{"1e3", 1'000, 0},
                                                                    {"1E3", 1'000, 0},
                                                                    {"1e+3", 1'000, 0},
                                                                    {"25e-1", 2, 500'000'000},
                                                                    {"1.5e1", 15, 0},
                                                                    {"1e0", 1, 0},
                                                                    {"1e-0", 1, 0},
                                                                    {"12e-9", 0, 12},
                                                                    {"0.000000000000000000001e21", 1, 0},
                                                                    {"0e2147483647", 0, 0},
                                                                    // Modulo 2^32: 0, 1, -1, 0.
                                                                    {"1e4294967296", 1, 0},
                                                                    {"1e-4294967295", 10, 0},
                                                                    {"1e9223372036854775807", 0, 100'000'000},
                                                                    {"1e-9223372036854775808", 1, 0},
                                                                    {"1e" + Zeros(50) + "3", 1'000, 0}}));

INSTANTIATE_TEST_SUITE_P(RoundsUpToNano, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{
                             {"0.000000001", 0, 1},
                             {"0.0000000001", 0, 1},
                             {"0.1n", 0, 1},
                             {"-0.1n", 0, -1},
                             {"1.1n", 0, 2},
                             {"1.0n", 0, 1},
                             {"-1.0000000001", -1, -1},
                             {"1.0000000000", 1, 0},
                             {"0.0000000010000000000000000000001", 0, 2},
                             {"1e-10", 0, 1},
                             {".5e-10", 0, 1},
                             {"1e-2147483647", 0, 1},
                             {"0.000000000000001Ki", 0, 1},         // 0.001024 of a nano unit
                             {"0.0009765625Ki", 1, 0},              // 1/1024 in full
                             {"0.00097656250000000000001Ki", 1, 1}  // and a little more
                         }));

// Kubernetes reads these as 0, and so must we: an API server has let them pass.
INSTANTIATE_TEST_SUITE_P(WithoutDigit, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{{"+", 0, 0},
                                                                    {"-", 0, 0},
                                                                    {".", 0, 0},
                                                                    {"-.", 0, 0},
                                                                    {"m", 0, 0},
                                                                    {"n", 0, 0},
                                                                    {"E", 0, 0},
                                                                    {"Ki", 0, 0},
                                                                    {".Mi", 0, 0},
                                                                    {"Ti", 0, 0},
                                                                    {"0Pi", 0, 0},
                                                                    {"e5", 0, 0},
                                                                    {"e-9", 0, 0}}));

INSTANTIATE_TEST_SUITE_P(Bounds, ParseQuantityTest,
                         ::testing::ValuesIn(std::vector<ParseCase>{
                             {"4Ei", kMaxAmount, 0},
                             {"-4Ei", -kMaxAmount, 0},
                             {"4611686018427387904", kMaxAmount, 0},
                             {"4611686018427387904000m", kMaxAmount, 0},
                             {"4611686018427387903.999999999", kMaxAmount - 1, 999'999'999},
                             {"4611686018427387903.9999999991", kMaxAmount, 0},
                             {"3.9999999999999999999Ei", kMaxAmount - 1,
                              884'707'850}  // 2^60 / 1e19 less than 4Ei
                         }));

class ClampedQuantityTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ClampedQuantityTest, IsHeldAtMaximumAndSaysSo) {
  for (const bool negative : {false, true}) {
    const absl::StatusOr<ParsedQuantity> parsed =
        ParseQuantity(absl::StrCat(negative ? "-" : "", GetParam()));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(parsed->clamped);
    EXPECT_EQ(parsed->value.nano(), Nano(negative ? -kMaxAmount : kMaxAmount, 0));
    EXPECT_EQ(Units(parsed->value), negative ? -kMaxAmount : kMaxAmount);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ClampedQuantityTest,
                         ::testing::Values("4611686018427387905", "4611686018427387904.000000001",
                                           "4611686018427387904.0000000000000000001",
                                           "4611686018427387904001m", "4.0000000000000000001Ei", "8Ei",
                                           "16Ei", "10E", "1e30", "1e100", "1e2147483647", "1.5e2147483648",
                                           "5e18",
                                           "99999999999999999999999999999999999999999999999999999999999n",
                                           "340282366920938463463374607431768211456"));  // 2^128

struct RefusedCase {
  std::string text;
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const RefusedCase& c) { return out << '"' << c.text << '"'; }
class RefusedQuantityTest : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedQuantityTest, NamesTextAndReason) {
  const RefusedCase& c = GetParam();
  const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(c.text);
  ASSERT_FALSE(parsed.ok()) << parsed->value.nano();
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(c.message));
}

INSTANTIATE_TEST_SUITE_P(Cases, RefusedQuantityTest,
                         ::testing::ValuesIn(std::vector<RefusedCase>{
                             {"", "\"\" is not a quantity: it is empty"},
                             {" 1", "\" 1\" is not a quantity: after the number only"},
                             {"1 ", "after the number only"},
                             {"\t1", "\"\\t1\""},
                             {"one", "after the number only"},
                             {"1x", "after the number only"},
                             {"1KiB", "after the number only"},
                             {"1ki", "after the number only"},
                             {"1K", "after the number only"},
                             {"1i", "after the number only"},
                             {"1e", "after the number only"},
                             {"1e+", "after the number only"},
                             {"1e+-3", "after the number only"},
                             {"1e 3", "after the number only"},
                             {"1e3 ", "after the number only"},
                             {"1e3.5", "after the number only"},
                             {"1e0x3", "after the number only"},
                             {"1ee3", "after the number only"},
                             {"1Ke3", "after the number only"},
                             {"1e9223372036854775808", "after the number only"},
                             {"1e-9223372036854775809", "after the number only"},
                             {"1e99999999999999999999", "after the number only"},
                             {"5-", "after the number only"},
                             {"5+3", "after the number only"},
                             {"--5", "after the number only"},
                             {"+-5", "after the number only"},
                             {"..", "after the number only"},
                             {"1.2.3", "after the number only"},
                             {"1,5", "after the number only"},
                             {"1_000", "after the number only"},
                             {"0x10", "after the number only"},
                             {"inf", "after the number only"},
                             {"nan", "after the number only"},
                             {"\xC2\xB5", "\"\\xc2\\xb5\""},
                             {std::string("1\0", 2), "\"1\\x00\""},
                             {"\x1b[2J1", "\"\\x1b[2J1\""},
                             {"Pi", "\"Pi\" is not a quantity: it has no digit"},
                             {"-Ei", "it has no digit"},
                             {".Pi", "it has no digit"},
                             {"e-10", "it has no digit"},
                             {std::string(1'000'000, 'x'),
                              absl::StrCat("\"", std::string(64, 'x'), "\"... is not a quantity")}}));

TEST(ParseQuantityTest, LongTextsAreExact) {
  constexpr size_t kMany = 1'000'000;
  EXPECT_EQ(Parsed(Zeros(kMany) + "7").nano(), Nano(7, 0));
  EXPECT_EQ(Parsed("7." + Zeros(kMany)).nano(), Nano(7, 0));
  EXPECT_EQ(Parsed("7." + Zeros(kMany) + "1").nano(), Nano(7, 1));
  EXPECT_EQ(Parsed("7." + Zeros(kMany) + "1Ki").nano(), Nano(7'168, 1));
  EXPECT_EQ(Parsed("7" + Zeros(kMany) + "e-1000000").nano(), Nano(7, 0));
  EXPECT_EQ(Parsed("0." + Zeros(kMany) + "7e1000001").nano(), Nano(7, 0));
  EXPECT_EQ(Parsed("7e" + Zeros(kMany) + "1").nano(), Nano(70, 0));
}

TEST(ParseQuantityTest, SuffixesAgreeWithExponents) {
  const std::vector<std::pair<std::string, int>> suffixes = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},
                                                             {"k", 3},  {"M", 6},  {"G", 9},  {"T", 12},
                                                             {"P", 15}, {"E", 18}};
  std::mt19937_64 random(2);
  for (int i = 0; i < 2'000; ++i) {
    const std::string number = absl::StrCat(random() >> (random() % 64), ".", random() >> (random() % 64));
    for (const auto& [suffix, exponent] : suffixes) {
      const absl::StatusOr<ParsedQuantity> by_suffix = ParseQuantity(number + suffix);
      const absl::StatusOr<ParsedQuantity> by_exponent = ParseQuantity(absl::StrCat(number, "e", exponent));
      ASSERT_TRUE(by_suffix.ok() && by_exponent.ok()) << number << suffix;
      EXPECT_EQ(by_suffix->value, by_exponent->value) << number << suffix;
      EXPECT_EQ(by_suffix->clamped, by_exponent->clamped) << number << suffix;
    }
  }
}

// A binary suffix against 128-bit arithmetic in one step: few enough digits that the product fits.
TEST(ParseQuantityTest, BinaryFractionsAreRoundedUpOnce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t digits = random() % 1'000'000'000;  // behind the point, 9 of them
    const std::string text = absl::StrCat(1'000'000'000 + digits).replace(0, 1, "0.");
    const int shift = static_cast<int>(10 * (1 + random() % 6));
    const char suffix = "KMGTPE"[shift / 10 - 1];
    // digits / 1e9 * 2^shift units are digits * 2^shift nano units: exact, nothing to round.
    EXPECT_EQ(Parsed(absl::StrCat(text, std::string(1, suffix), "i")).nano(),
              static_cast<absl::int128>(absl::uint128(digits) << shift))
        << text << suffix;
    // One more digit d is d * 2^shift / 10 nano units, rounded up.
    const uint64_t last = random() % 10;
    const absl::uint128 tenths = absl::uint128(digits * 10 + last) << shift;
    EXPECT_EQ(Parsed(absl::StrCat(text, last, std::string(1, suffix), "i")).nano(),
              static_cast<absl::int128>((tenths + 9) / 10))
        << text << last << suffix;
  }
}

struct ReadOutCase {
  std::string text;
  int64_t milli;
  int64_t units;
};
std::ostream& operator<<(std::ostream& out, const ReadOutCase& c) { return out << '"' << c.text << '"'; }
class ReadOutTest : public ::testing::TestWithParam<ReadOutCase> {};

TEST_P(ReadOutTest, RoundsAwayFromZero) {
  const ReadOutCase& c = GetParam();
  EXPECT_EQ(Milli(Parsed(c.text)), c.milli);
  EXPECT_EQ(Units(Parsed(c.text)), c.units);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReadOutTest,
                         ::testing::ValuesIn(std::vector<ReadOutCase>{
                             {"0", 0, 0},
                             {"1n", 1, 1},
                             {"-1n", -1, -1},
                             {"0.1m", 1, 1},
                             {"1m", 1, 1},
                             {"1.000001m", 2, 1},
                             {"250m", 250, 1},
                             {"1", 1'000, 1},
                             {"1.0001", 1'001, 2},
                             {"-1.0001", -1'001, -2},
                             {"2.5", 2'500, 3},
                             {"-2.5", -2'500, -3},
                             {"1Gi", 1'073'741'824'000, 1'073'741'824},
                             {"4611686018427387.904", kMaxAmount, 4'611'686'018'427'388},
                             {"4611686018427387.903", kMaxAmount - 1, 4'611'686'018'427'388},
                             {"4611686018427387.905", kMaxAmount, 4'611'686'018'427'388},
                             {"-5P", -kMaxAmount, -5'000'000'000'000'000},
                             {"4Ei", kMaxAmount, kMaxAmount},
                             {"10E", kMaxAmount, kMaxAmount},
                             {"-10E", -kMaxAmount, -kMaxAmount},
                             {"4611686018427387903.000000001", kMaxAmount, kMaxAmount},
                             {"4611686018427387902.000000001", kMaxAmount, kMaxAmount - 1}}));

TEST(QuantityTest, IsZeroAtFirst) {
  EXPECT_TRUE(Quantity().IsZero());
  EXPECT_FALSE(Quantity().IsPositive());
  EXPECT_FALSE(Quantity().IsNegative());
  EXPECT_EQ(Quantity(), Quantity::FromNano(0));
}

TEST(QuantityTest, IsMadeOfUnitsMilliAndNano) {
  EXPECT_EQ(Quantity::FromUnits(3), Quantity::FromMilli(3'000));
  EXPECT_EQ(Quantity::FromMilli(-3), Quantity::FromNano(-3'000'000));
  EXPECT_EQ(Quantity::FromUnits(INT64_MAX), Quantity::FromUnits(kMaxAmount));
  EXPECT_EQ(Quantity::FromUnits(INT64_MIN), Quantity::FromUnits(-kMaxAmount));
  EXPECT_EQ(Quantity::FromMilli(INT64_MAX).nano(), Nano(9'223'372'036'854'775, 807'000'000));
  EXPECT_EQ(Quantity::FromNano(absl::Int128Max()), Quantity::FromUnits(kMaxAmount));
  EXPECT_EQ(Quantity::FromNano(absl::Int128Min()), Quantity::FromUnits(-kMaxAmount));
}

TEST(QuantityTest, IsOrderedByValue) {
  const std::vector<std::string> ascending = {"-4Ei", "-1", "-1n", "0",    "1n", "1m",
                                              "999m", "1",  "1Ki", "1025", "4Ei"};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(Parsed(ascending[i]) <=> Parsed(ascending[j]), i <=> j)
          << ascending[i] << " " << ascending[j];
    }
  }
}

TEST(QuantityTest, SumsAreExactBelowTheBounds) {
  Quantity sum;
  for (int i = 0; i < 3; ++i) sum.Add(Parsed("0.4m"));
  EXPECT_EQ(sum.nano(), Nano(0, 1'200'000));
  EXPECT_EQ(Milli(sum), 2);  // 3, if each were rounded by itself
  sum.Add(Parsed("-1200u"));
  EXPECT_TRUE(sum.IsZero());
}

TEST(QuantityTest, SumsSaturate) {
  Quantity sum = Parsed("4611686018427387903.999999999");
  sum.Add(Parsed("1n"));
  EXPECT_EQ(sum.nano(), Nano(kMaxAmount, 0));
  sum.Add(Parsed("1n"));
  EXPECT_EQ(sum.nano(), Nano(kMaxAmount, 0));
  sum.Add(Parsed("8Ei"));
  EXPECT_EQ(sum.nano(), Nano(kMaxAmount, 0));
  sum.Add(Parsed("-8Ei"));
  EXPECT_TRUE(sum.IsZero());
  sum.Add(Parsed("-8Ei"));
  sum.Add(Parsed("-8Ei"));
  EXPECT_EQ(sum.nano(), Nano(-kMaxAmount, 0));
}

TEST(QuantityTest, OrderOfSumsOfOneSignDoesNotMatter) {
  std::mt19937_64 random(4);
  const auto draw = [&random] {
    const absl::uint128 nano = absl::MakeUint128(random() >> 36, random());  // below 2^92
    return Quantity::FromNano(static_cast<absl::int128>(nano >> static_cast<int>(random() % 90)));
  };
  for (int i = 0; i < 10'000; ++i) {
    const Quantity a = draw();
    const Quantity b = draw();
    const Quantity c = draw();
    Quantity left = a;
    left.Add(b);
    left.Add(c);
    Quantity right = c;
    right.Add(b);
    right.Add(a);
    EXPECT_EQ(left, right);
    EXPECT_GE(left, a);
    EXPECT_LE(Units(left), kMaxAmount);
  }
}

TEST(QuantityTest, MemoryIsWrittenInTheLargestUnit) {
  const std::pair<int64_t, const char*> cases[] = {{0, "0"},
                                                   {1023, "1023"},
                                                   {1024, "1Ki"},
                                                   {int64_t{128} << 20, "128Mi"},
                                                   {int64_t{1000} << 20, "1000Mi"},
                                                   {int64_t{1} << 30, "1Gi"},
                                                   {int64_t{1280} << 20, "1.25Gi"},
                                                   {int64_t{4} << 40, "4Ti"},
                                                   {kMaxAmount, "4Ei"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(MemoryText(bytes), text);
}

}  // namespace
}  // namespace loadline
