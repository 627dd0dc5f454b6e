#include "core/observe/state_coder.h"

namespace loadline {
namespace {

constexpr uint64_t kEndOfTimes = uint64_t{1} << 52;
constexpr size_t kKeyBytes = 8;

}  // namespace

void StateWriter::Key(uint64_t key) {
  for (size_t i = 0; i < kKeyBytes; ++i) bytes_.push_back(static_cast<char>((key >> (8 * i)) & 0xff));
}

void StateWriter::Number(uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>((number & 0x7f) | 0x80));
  bytes_.push_back(static_cast<char>(number));
}

void StateWriter::Signed(int64_t number) {
  const uint64_t twice = static_cast<uint64_t>(number) << 1;
  Number(number < 0 ? ~twice : twice);
}

void StateWriter::Optional(const std::optional<int64_t>& number) {
  Number(number.has_value() ? static_cast<uint64_t>(*number) + 1 : 0);
}

void StateWriter::Text(absl::string_view text) {
  Number(text.size());
  bytes_.append(text.data(), text.size());
}

uint64_t StateReader::Key() {
  if (rest_.size() < kKeyBytes) ok_ = false;
  if (!ok_) return 0;
  uint64_t key = 0;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    key |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(kKeyBytes);
  return key;
}

uint64_t StateReader::Below(uint64_t end) {
  uint64_t number = 0;
  for (int shift = 0; ok_; shift += 7) {
    // Shifts up to 56 keep each group of 7 bits within 64.
    if (rest_.empty() || shift > 56) {
      ok_ = false;
      break;
    }
    const uint64_t byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (number >= end) ok_ = false;
  return ok_ ? number : 0;
}

int64_t StateReader::Time() { return static_cast<int64_t>(Below(kEndOfTimes)); }

int64_t StateReader::Signed() {
  const uint64_t twice = Below(kEndOfTimes);
  const uint64_t number = twice >> 1;
  return static_cast<int64_t>((twice & 1) != 0 ? ~number : number);
}

std::optional<int64_t> StateReader::Optional() {
  const uint64_t number = Below(kEndOfTimes + 1);
  if (number == 0) return std::nullopt;
  return static_cast<int64_t>(number - 1);
}

std::string StateReader::Text(size_t most) {
  const size_t size = static_cast<size_t>(Below(most + 1));
  if (size > rest_.size()) ok_ = false;
  if (!ok_) return "";
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

}  // namespace loadline
