// Numbers and texts as the bytes of a state.
#ifndef LOADLINE_CORE_OBSERVE_STATE_CODER_H_
#define LOADLINE_CORE_OBSERVE_STATE_CODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

// Writes numbers, texts and keys as bytes; StateReader reads them.
class StateWriter {
 public:
  void Key(uint64_t key);        // 8 bytes, little-endian
  void Number(uint64_t number);  // a varint
  void Signed(int64_t number);
  void Optional(const std::optional<int64_t>& number);  // not negative
  void Text(absl::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a StateWriter wrote. After the first mistake all that is read is 0 or empty.
class StateReader {
 public:
  explicit StateReader(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Key();
  uint64_t Below(uint64_t end);  // a number in [0, end)
  int64_t Time();                // a number in [0, 2^52)
  int64_t Signed();              // a number in (-2^51, 2^51)
  std::optional<int64_t> Optional();
  std::string Text(size_t most);

  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_STATE_CODER_H_
