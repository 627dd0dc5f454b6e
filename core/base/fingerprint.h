#ifndef LOADLINE_CORE_BASE_FINGERPRINT_H_
#define LOADLINE_CORE_BASE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace loadline {

// A 64-bit hash of a sequence of numbers and texts, the same on every machine. It tells whether two sides
// hold the same content. It is no defence against somebody who constructs collisions, so what decides must
// compare the content as well.
//
//   state = 0x9e3779b97f4a7c15
//   number n:  state = Mix(state ^ n)
//   text t:    state = Mix(state ^ 0xd1b54a32d192ed03 ^ length of t), then as numbers the bytes of t, each
//              8 of them little-endian, the last ones filled up with zero bytes
//
//   Mix(x):    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9
//              x = (x ^ x >> 27) * 0x94d049bb133111eb
//              (x ^ x >> 31) + 0x9e3779b97f4a7c15
//
// Mix is one-to-one, so of two sequences of the same form that differ in one number only, the hashes differ.
// Texts carry their length: "ab", "c" and "a", "bc" differ. The constant of a text has its top bit set, so
// that no text begins like a number from 0 to 2^63 - 1.
//
// Cost:   one Mix for a number, 1 + ceil(length / 8) for a text; no allocation.
// Source: constants and shifts of Mix are those of SplitMix64.
class FingerprintBuilder {
 public:
  void Add(int64_t number) { Step(static_cast<uint64_t>(number)); }
  void Add(absl::string_view text);

  // The hash of what was added so far; more may be added.
  uint64_t Finish() const { return state_; }

 private:
  // Odd numbers whose bits are well mixed: 2^64 divided by the golden ratio, as in SplitMix64, and by the
  // positive root of x^4 = x + 1.
  static constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;
  static constexpr uint64_t kTextMark = 0xd1b54a32d192ed03;

  void Step(uint64_t number);

  uint64_t state_ = kIncrement;
};

inline void FingerprintBuilder::Step(uint64_t number) {
  uint64_t x = state_ ^ number;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  state_ = (x ^ (x >> 31)) + kIncrement;  // without the sum a 0 added to a state of 0 would change nothing
}

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_FINGERPRINT_H_
