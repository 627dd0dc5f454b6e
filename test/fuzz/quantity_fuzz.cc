// Any bytes as a quantity: an answer within bounds that is consistent with itself, or a readable error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/base/quantity.h"
#include "test/fuzz/answers.h"

namespace loadline {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

bool Same(const ParsedQuantity& a, const ParsedQuantity& b) {
  return a.value == b.value && a.clamped == b.clamped;
}

void CheckError(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument);
  Require(status.message().size() < 500);
  for (const char c : status.message()) Require(absl::ascii_isprint(static_cast<unsigned char>(c)));
}

void CheckValue(const ParsedQuantity& parsed) {
  const Quantity value = parsed.value;
  const Quantity bound = Quantity::FromUnits(kMaxAmount);
  const Quantity lower_bound = Quantity::FromUnits(-kMaxAmount);
  Require(value <= bound && value >= lower_bound);
  Require(!parsed.clamped || value == bound || value == lower_bound);

  // Read-outs are the next whole number away from zero: less than one step from the value.
  const int64_t units = Units(value);
  const int64_t milli = Milli(value);
  Require(units >= -kMaxAmount && units <= kMaxAmount && milli >= -kMaxAmount && milli <= kMaxAmount);
  Require((units > 0) == value.IsPositive() && (milli < 0) == value.IsNegative());
  const absl::int128 rounding = absl::int128(units) * Quantity::kNanoPerUnit - value.nano();
  Require(rounding < Quantity::kNanoPerUnit && rounding > -Quantity::kNanoPerUnit);
  Require(value.IsNegative() ? rounding <= 0 : rounding >= 0);
}

// The value written in nano units, and the same text written in other ways, read as the same value.
void CheckOtherTexts(const std::string& text, const ParsedQuantity& parsed) {
  const absl::int128 nano = parsed.value.nano();
  const absl::int128 billion = Quantity::kNanoPerUnit;
  const absl::int128 magnitude = nano < 0 ? -nano : nano;
  const std::string in_nano =
      absl::StrCat(nano < 0 ? "-" : "", static_cast<int64_t>(magnitude / billion), ".",
                   absl::Dec(static_cast<int64_t>(magnitude % billion), absl::kZeroPad9));
  const absl::StatusOr<ParsedQuantity> again = ParseQuantity(in_nano);
  Require(again.ok() && again->value == parsed.value && !again->clamped);

  const bool has_sign = text[0] == '+' || text[0] == '-';
  const std::string number = has_sign ? text.substr(1) : text;
  if (number.empty()) return;  // a sign alone
  const absl::StatusOr<ParsedQuantity> positive = ParseQuantity("+0" + number);
  const absl::StatusOr<ParsedQuantity> negative = ParseQuantity("-0" + number);
  Require(positive.ok() && negative.ok());
  Require(Same(text[0] == '-' ? *negative : *positive, parsed));
  Require(positive->value.nano() == -negative->value.nano());
}

}  // namespace
}  // namespace loadline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<loadline::ParsedQuantity> parsed = loadline::ParseQuantity(text);
  loadline::NoteAnswer(parsed.ok());
  if (!parsed.ok()) {
    loadline::CheckError(parsed.status());
    return 0;
  }
  const absl::StatusOr<loadline::ParsedQuantity> same = loadline::ParseQuantity(text);
  loadline::Require(same.ok() && loadline::Same(*same, *parsed));
  loadline::CheckValue(*parsed);
  loadline::CheckOtherTexts(text, *parsed);
  return 0;
}
