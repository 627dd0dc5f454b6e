#include "core/base/fingerprint.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace loadline {
namespace {

constexpr size_t kWordSize = sizeof(uint64_t);

// Reads at most 8 bytes as a little-endian number, on each machine.
uint64_t LoadWord(const char* bytes, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

}  // namespace

void FingerprintBuilder::Add(absl::string_view text) {
  Step(kTextMark ^ text.size());
  for (; text.size() >= kWordSize; text.remove_prefix(kWordSize)) Step(LoadWord(text.data(), kWordSize));
  if (!text.empty()) Step(LoadWord(text.data(), text.size()));
}

}  // namespace loadline
