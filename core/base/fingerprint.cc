#include "core/base/fingerprint.h"

#include <cstddef>

namespace loadline {
namespace {

constexpr size_t kWordSize = sizeof(uint64_t);

// Reads at most 8 bytes as a little-endian number. Shifts, as a plain load depends on the machine.
uint64_t LoadWord(absl::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

void FingerprintBuilder::Add(absl::string_view text) {
  Step(kTextMark ^ text.size());
  while (!text.empty()) {
    const absl::string_view word = text.substr(0, kWordSize);
    Step(LoadWord(word));
    text.remove_prefix(word.size());
  }
}

}  // namespace loadline
