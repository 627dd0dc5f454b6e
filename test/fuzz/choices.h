// The choices of an input, byte by byte: how many of something, which text, which amount.
#ifndef LOADLINE_TEST_FUZZ_CHOICES_H_
#define LOADLINE_TEST_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>

namespace loadline {

// Reads from the front; at the end every choice is the first one, which is the plainest. So a short input
// makes a plain object, and each byte more makes it stranger.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  uint8_t Byte() { return empty() ? uint8_t{0} : *at_++; }
  bool Yes() { return Byte() % 2 == 1; }
  bool OneIn(uint8_t n) { return Byte() % n == 1; }

  // One of an array.
  template <typename Array>
  const auto& Of(const Array& array) {
    return array[Byte() % std::size(array)];
  }

  // How many of something: few as a rule, and now and then as many as an object of 1.5 MiB holds.
  int Count() {
    static constexpr int kCounts[] = {0, 1, 0, 1, 2, 0, 1, 3, 0, 1, 2, 5, 17, 257, 1'025, 4'097, 10'001};
    const int count = Of(kCounts);
    return Take(int64_t{32} * count) ? count : 0;
  }
  // Returns whether so many bytes more may be made: counts within counts would take gigabytes.
  bool Take(int64_t bytes) {
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    return true;
  }

  // From where a program is careful to where it may not be.
  int64_t Number() {
    static constexpr int64_t kNumbers[] = {0,
                                           1,
                                           2,
                                           10,
                                           100,
                                           -1,
                                           1'000'000,
                                           std::numeric_limits<int32_t>::max(),
                                           std::numeric_limits<int32_t>::min(),
                                           std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min()};
    return Of(kNumbers);
  }
  int32_t Number32() { return static_cast<int32_t>(Number() & 0xffffffff); }
  // A count that is small as a rule.
  int32_t Small() { return OneIn(16) ? Number32() : Byte() % 8; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  int64_t bytes_left_ = 8'000'000;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_FUZZ_CHOICES_H_
