#include "plugin/convert/text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// Bytes of the printable character that `text`, which is not empty, begins with; 0: it begins with none.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return absl::ascii_isprint(byte(0)) ? 1 : 0;
  const size_t bytes = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return 0;
  uint32_t character = byte(0) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = character < (bytes == 2 ? 0x80u : bytes == 3 ? 0x800u : 0x10000u);
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  return overlong || surrogate || character > 0x10ffff || character < 0xa0 ? 0 : bytes;
}

}  // namespace

std::string Printable(absl::string_view text, size_t most) {
  const auto is_print = [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); };
  if (text.size() <= most && std::all_of(text.begin(), text.end(), is_print)) {
    return std::string(text);
  }
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (printable.size() + std::max<size_t>(bytes, 1) > most) break;
    if (bytes == 0) {
      printable += '?';
    } else {
      printable.append(text.data(), bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return printable;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxQuoted = 64;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuoted)), "\"",
                      text.size() > kMaxQuoted ? "..." : "");
}

absl::Status CheckName(absl::string_view text, size_t max_length) {
  if (text.size() > max_length) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not a name: it has ", text.size(),
                                                   " bytes, at most ", max_length, " are allowed"));
  }
  const auto is_graph = [](char c) { return '!' <= c && c <= '~'; };
  if (std::all_of(text.begin(), text.end(), is_graph)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a name: it has characters other than printable ASCII"));
}

std::string StoredName(absl::string_view text) {
  if (CheckName(text).ok()) return std::string(text);
  constexpr size_t kMostEscaped = 32;
  FingerprintBuilder hash;
  hash.Add(text);
  return absl::StrCat(absl::StrReplaceAll(absl::CHexEscape(text.substr(0, kMostEscaped)), {{" ", "\\x20"}}),
                      "~", absl::Hex(hash.Finish(), absl::kZeroPad16));
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix, absl::string_view separator) {
  absl::Status annotated(status.code(), absl::StrCat(prefix, separator, status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

}  // namespace loadline
