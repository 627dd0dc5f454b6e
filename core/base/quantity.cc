#include "core/base/quantity.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace loadline {
namespace {

// One nano unit more than a Quantity holds: 2^62 * 1e9 + 1. What reaches it is not multiplied further.
constexpr absl::uint128 kTooLarge = absl::MakeUint128(Quantity::kNanoPerUnit / 4, 1);

constexpr int kNanoDigits = 9;

// The parts of a quantity as they stand in the text.
struct QuantityText {
  bool negative = false;
  bool has_digit = false;
  absl::string_view whole;     // digits before the point
  absl::string_view fraction;  // digits behind it
  absl::string_view suffix;
};

// A suffix means * 10^exponent, or with `binary` * 2^exponent.
struct Multiplier {
  bool binary = false;
  int32_t exponent = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSign(char c) { return c == '+' || c == '-'; }
int DigitValue(char c) { return c - '0'; }

// Cuts the longest prefix of digits off `text`.
absl::string_view TakeDigits(absl::string_view& text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const absl::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// Takes any text apart; what is no number is left in the suffix, and the number may have no digit.
QuantityText Split(absl::string_view text) {
  QuantityText parts;
  if (!text.empty() && IsSign(text.front())) {
    parts.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  parts.whole = TakeDigits(text);
  parts.has_digit = !parts.whole.empty();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    parts.fraction = TakeDigits(text);
    parts.has_digit = parts.has_digit || !parts.fraction.empty();
  }
  parts.suffix = text;
  return parts;
}

std::optional<int32_t> DecimalExponent(char letter) {
  switch (letter) {
    case 'n':
      return -9;
    case 'u':
      return -6;
    case 'm':
      return -3;
    case 'k':
      return 3;
    case 'M':
      return 6;
    case 'G':
      return 9;
    case 'T':
      return 12;
    case 'P':
      return 15;
    case 'E':
      return 18;
    default:
      return std::nullopt;
  }
}

std::optional<int32_t> BinaryExponent(char letter) {
  switch (letter) {
    case 'K':
      return 10;
    case 'M':
      return 20;
    case 'G':
      return 30;
    case 'T':
      return 40;
    case 'P':
      return 50;
    case 'E':
      return 60;
    default:
      return std::nullopt;
  }
}

// The number behind "e" or "E": an optional sign and digits, within int64.
std::optional<int32_t> WrittenExponent(absl::string_view text) {
  const absl::string_view digits = text.substr(!text.empty() && IsSign(text.front()) ? 1 : 0);
  int64_t exponent = 0;
  // SimpleAtoi also takes white space around the number.
  if (!std::all_of(digits.begin(), digits.end(), IsDigit) || !absl::SimpleAtoi(text, &exponent)) {
    return std::nullopt;
  }
  return static_cast<int32_t>(exponent);  // modulo 2^32, see the header
}

std::optional<Multiplier> Interpret(absl::string_view suffix) {
  if (suffix.empty()) return Multiplier{};
  const char first = suffix.front();
  std::optional<int32_t> exponent;
  bool binary = false;
  if (suffix.size() == 1) {
    exponent = DecimalExponent(first);
  } else if (suffix.size() == 2 && suffix[1] == 'i') {
    exponent = BinaryExponent(first);
    binary = true;
  } else if (first == 'e' || first == 'E') {
    exponent = WrittenExponent(suffix.substr(1));
  }
  if (!exponent.has_value()) return std::nullopt;
  return Multiplier{.binary = binary, .exponent = *exponent};
}

// Reads digits behind the leading `value`; ends at kTooLarge.
absl::uint128 AppendDigits(absl::uint128 value, absl::string_view digits) {
  for (const char c : digits) {
    value = value * 10 + static_cast<uint64_t>(DigitValue(c));  // below 2^96: value is below 2^92
    if (value >= kTooLarge) return kTooLarge;
  }
  return value;
}

bool AnyNonZero(absl::string_view digits) { return digits.find_first_not_of('0') != absl::string_view::npos; }

// The power of ten of the last digit. Wraps at 32 bits like the arithmetic of apimachinery, which makes
// "1.5e2147483648" large although its exponent alone is taken as -2^31.
int32_t LastDigitScale(const QuantityText& text, int32_t exponent) {
  return static_cast<int32_t>(int64_t{exponent} - static_cast<int64_t>(text.fraction.size()));
}

// The magnitude in nano units, rounded up: the digits with the point moved by exponent + 9 places.
absl::uint128 DecimalNano(const QuantityText& text, int32_t exponent) {
  const auto digits = static_cast<int64_t>(text.whole.size() + text.fraction.size());
  const int64_t kept = digits + LastDigitScale(text, exponent) + kNanoDigits;
  const auto kept_of_whole =
      static_cast<size_t>(std::clamp<int64_t>(kept, 0, static_cast<int64_t>(text.whole.size())));
  const auto kept_of_fraction = static_cast<size_t>(std::clamp<int64_t>(
      kept - static_cast<int64_t>(text.whole.size()), 0, static_cast<int64_t>(text.fraction.size())));

  absl::uint128 nano = AppendDigits(0, text.whole.substr(0, kept_of_whole));
  nano = AppendDigits(nano, text.fraction.substr(0, kept_of_fraction));
  // At most 28 rounds: a value other than 0 is too large after that many.
  for (int64_t i = digits; i < kept && nano != 0 && nano < kTooLarge; ++i) nano *= 10;
  if (AnyNonZero(text.whole.substr(kept_of_whole)) || AnyNonZero(text.fraction.substr(kept_of_fraction))) {
    ++nano;
  }
  return nano;
}

// The same for number * 2^exponent, exponent in [0, 60].
absl::uint128 BinaryNano(const QuantityText& text, int32_t exponent) {
  const absl::uint128 unit = (absl::uint128(1) << exponent) * static_cast<uint64_t>(Quantity::kNanoPerUnit);
  const absl::uint128 whole = AppendDigits(0, text.whole);
  if (whole > kTooLarge / unit) return kTooLarge;  // so the product below is at most kTooLarge

  // 0.d1d2...dn * unit, from the last digit to the first: ((dn * unit / 10) + dn-1 * unit) / 10 ... Each
  // round drops a remainder: that leaves the whole part exact, and tells whether to round up.
  absl::uint128 nano = 0;  // below `unit` (2^90) after each round
  bool inexact = false;
  for (auto digit = text.fraction.rbegin(); digit != text.fraction.rend(); ++digit) {
    nano += unit * static_cast<uint64_t>(DigitValue(*digit));
    inexact = inexact || nano % 10 != 0;
    nano /= 10;
  }
  return whole * unit + nano + (inexact ? 1 : 0);
}

// A number without a digit ("+", ".", "Mi") is 0, unless apimachinery takes its exact path, which wants one.
bool NeedsDigit(const QuantityText& text, Multiplier multiplier) {
  return multiplier.binary ? multiplier.exponent > 40
                           : LastDigitScale(text, multiplier.exponent) < -kNanoDigits;
}

absl::Status NotAQuantity(absl::string_view text, absl::string_view reason) {
  constexpr size_t kMaxQuoted = 64;
  return absl::InvalidArgumentError(absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"",
                                                 text.size() > kMaxQuoted ? "..." : "",
                                                 " is not a quantity: ", reason));
}

// Divides rounding away from zero, and holds the quotient in [-kMaxAmount, kMaxAmount].
int64_t ReadOut(absl::int128 nano, int64_t divisor) {
  absl::int128 quotient = nano / divisor;
  if (quotient * divisor != nano) quotient += nano < 0 ? -1 : 1;
  return static_cast<int64_t>(std::clamp(quotient, absl::int128(-kMaxAmount), absl::int128(kMaxAmount)));
}

}  // namespace

absl::StatusOr<ParsedQuantity> ParseQuantity(absl::string_view text) {
  if (text.empty()) return NotAQuantity(text, "it is empty");
  const QuantityText parts = Split(text);
  const std::optional<Multiplier> multiplier = Interpret(parts.suffix);
  if (!multiplier.has_value()) {
    return NotAQuantity(text,
                        "after the number only n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an "
                        "exponent such as e3 may follow");
  }
  if (!parts.has_digit && NeedsDigit(parts, *multiplier)) return NotAQuantity(text, "it has no digit");

  const absl::uint128 magnitude =
      multiplier->binary ? BinaryNano(parts, multiplier->exponent) : DecimalNano(parts, multiplier->exponent);
  const auto nano = static_cast<absl::int128>(magnitude);  // below 2^96
  return ParsedQuantity{.value = Quantity::FromNano(parts.negative ? -nano : nano),
                        .clamped = magnitude >= kTooLarge};
}

int64_t Milli(Quantity quantity) { return ReadOut(quantity.nano(), Quantity::kNanoPerUnit / 1000); }

int64_t Units(Quantity quantity) { return ReadOut(quantity.nano(), Quantity::kNanoPerUnit); }

std::string MemoryText(int64_t bytes) {
  double amount = static_cast<double>(bytes);
  absl::string_view unit;
  for (const absl::string_view next : {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = next;
  }
  const std::string number = absl::StrFormat("%.2f", amount);
  return absl::StrCat(absl::StripSuffix(number.substr(0, number.find_last_not_of('0') + 1), "."), unit);
}

}  // namespace loadline
