#ifndef LOADLINE_CORE_BASE_FINGERPRINT_H_
#define LOADLINE_CORE_BASE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace loadline {

// A 64-bit hash of a sequence of numbers and texts, the same on every machine and in every version that keeps
// this algorithm. It tells whether two sides hold the same content. It is no defence against somebody who
// constructs collisions, so what decides must compare the content as well.
//
//   state = 0x9e3779b97f4a7c15
//   number n:  state = Mix(state ^ n)
//   text t:    state = Mix(~state ^ length of t), then each 8 bytes of t as a little-endian number, the last
//              ones filled up with zero bytes
//   Mix(x):    x ^= x >> 30;  x *= 0xbf58476d1ce4e5b9;  x ^= x >> 27;  x *= 0x94d049bb133111eb;  x ^= x >>
//   31;
//              x + 0x9e3779b97f4a7c15
//
// Mix is one-to-one, so of two sequences of the same form that differ in one number only, the hashes differ.
// Texts carry their length: "ab", "c" and "a", "bc" differ. The complement tells a text from numbers.
// Cost: one Mix for a number, 1 + ceil(length / 8) for a text; no allocation.
// Source: the constants and shifts of Mix are those of SplitMix64.
class FingerprintBuilder {
 public:
  void Add(int64_t number) { Step(static_cast<uint64_t>(number)); }
  void Add(absl::string_view text);
  void Add(const char* text) { Add(absl::string_view(text)); }  // else a literal would be a bool or a number

  // The hash of what was added so far; more may be added.
  uint64_t Finish() const { return state_; }

 private:
  static constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;

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
