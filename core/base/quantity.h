#ifndef LOADLINE_CORE_BASE_QUANTITY_H_
#define LOADLINE_CORE_BASE_QUANTITY_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/amount.h"

namespace loadline {

// The exact value of a Kubernetes quantity, in nano units (1e-9): the finest step that Kubernetes keeps. Its
// magnitude is at most kMaxAmount units; a larger value is cut to that. Sums are exact below that, so a
// pod's containers are added first and rounded once, when an amount is read out.
class Quantity {
 public:
  static constexpr int64_t kNanoPerUnit = 1'000'000'000;

  constexpr Quantity() = default;

  // Returns the value of `nano` nano units, cut to the bounds.
  static Quantity FromNano(absl::int128 nano) {
    if (nano > kMaxNano) return Quantity(kMaxNano);
    if (nano < -kMaxNano) return Quantity(-kMaxNano);
    return Quantity(nano);
  }
  static Quantity FromMilli(int64_t milli) { return FromNano(absl::int128(milli) * (kNanoPerUnit / 1000)); }
  static Quantity FromUnits(int64_t units) { return FromNano(absl::int128(units) * kNanoPerUnit); }

  constexpr absl::int128 nano() const { return nano_; }
  constexpr bool IsZero() const { return nano_ == 0; }
  constexpr bool IsPositive() const { return nano_ > 0; }
  constexpr bool IsNegative() const { return nano_ < 0; }

  // Adds `other`, exactly or up to the bounds. The intermediate sum is below 2^94.
  void Add(Quantity other) { *this = FromNano(nano_ + other.nano_); }

  friend constexpr bool operator==(Quantity a, Quantity b) { return a.nano_ == b.nano_; }
  friend constexpr std::strong_ordering operator<=>(Quantity a, Quantity b) {
    if (a.nano_ < b.nano_) return std::strong_ordering::less;
    return a.nano_ == b.nano_ ? std::strong_ordering::equal : std::strong_ordering::greater;
  }

 private:
  // kMaxAmount * kNanoPerUnit, below 2^92; products of int128 are no constant expressions in abseil.
  static constexpr absl::int128 kMaxNano = absl::MakeInt128(kNanoPerUnit / 4, 0);
  static_assert(kMaxAmount == int64_t{1} << 62 && kNanoPerUnit % 4 == 0);

  constexpr explicit Quantity(absl::int128 nano) : nano_(nano) {}

  absl::int128 nano_ = 0;
};

// The result of ParseQuantity().
struct ParsedQuantity {
  Quantity value;
  // The text states more than kMaxAmount units in magnitude ("8Ei", "1e30"); `value` is that bound.
  bool clamped = false;
};

// Reads a quantity as Kubernetes writes it: "100m", "1.5Gi", "2e3", "-1".
//
// Accepts and refuses what apimachinery does, which is more than its documentation says: "1.", ".5", "+", "."
// and "Ki" are quantities (the last three are 0), " 1", "1e", "1KiB" are not. Any length is accepted.
// Result: exact, rounded up (away from zero) to whole nano units. An exponent is taken modulo 2^32, as the
//         API server and the kubelet take it: "1e4294967296" is 1.
// Errors: kInvalidArgument  not a quantity; the message quotes the text (escaped, at most 64 characters) and
//                           says what is wrong with it
// Cost:   linear in the text, no allocation on success, whatever the exponent. Pure: any thread.
// Source: k8s.io/apimachinery v0.36.3, pkg/api/resource. It caps values with a binary suffix at 2^63 - 1 and
//         lets decimal ones wrap when they are read out; here both saturate at kMaxAmount.
absl::StatusOr<ParsedQuantity> ParseQuantity(absl::string_view text);

// Returns the value in thousandths of a unit (millicores), or in whole units (bytes, devices), rounded up
// (away from zero) as Quantity.MilliValue() and Quantity.Value() do, cut to [-kMaxAmount, kMaxAmount].
int64_t Milli(Quantity quantity);
int64_t Units(Quantity quantity);

// Writes an amount of memory, >= 0, in the largest binary unit of which there is one, with at most two
// decimals, as the tables of the command line do: "1Gi", "1.25Gi", "128Mi", "0".
std::string MemoryText(int64_t bytes);

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_QUANTITY_H_
