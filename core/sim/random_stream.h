#ifndef LOADLINE_CORE_SIM_RANDOM_STREAM_H_
#define LOADLINE_CORE_SIM_RANDOM_STREAM_H_

#include <cstdint>

namespace loadline {

// The purposes of chance. Each has a stream of its own, so that one more draw for one of them leaves all
// others as they are.
enum class SimPurpose : uint64_t {
  kMachineStart = 1,
  kPodStart,
  kDownscale,
  kBatch,
  kWatch,
  kCloudFaults,
  kSpot,
  kNodeFaults,
  kLeader,
  kApi,
  kCloudList,
  kHand,
  kPodEnd,
  kUnreadGroup,
  kSoftTaintWatch,
  kHandMark,
  kStartupTaint,
  kUse,
};

// Numbers that follow from a seed and a purpose, the same on every machine. Source: SplitMix64.
class RandomStream {
 public:
  RandomStream(uint64_t seed, SimPurpose purpose)
      : state_(Mix(seed + Mix(static_cast<uint64_t>(purpose) * kStep))) {}

  uint64_t Next() {
    state_ += kStep;
    return Mix(state_);
  }
  // In [low, high]; `low` where there is nothing between. The bias is below 2^-32 for ranges of seconds.
  int64_t Between(int64_t low, int64_t high) {
    if (high <= low) return low;
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  // True in `per_million` of a million cases. Nothing is drawn where it cannot happen.
  bool Chance(int64_t per_million) { return per_million > 0 && Between(0, 999'999) < per_million; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_RANDOM_STREAM_H_
