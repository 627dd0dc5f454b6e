// Text that came from outside: what a name may be, and how it is quoted in an error.
#ifndef LOADLINE_PLUGIN_CONVERT_TEXT_H_
#define LOADLINE_PLUGIN_CONVERT_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Names of nodes, pods and namespaces, and UIDs.
inline constexpr size_t kMaxNameLength = 253;
// A qualified name: a DNS subdomain, a slash and 63 characters.
inline constexpr size_t kMaxResourceNameLength = 317;

// Returns `text` in quotes, control and non-ASCII bytes escaped and cut after 64 bytes, so that an error text
// is short, printable, and cannot steer a terminal.
std::string Quoted(absl::string_view text);

// Returns the first `most` bytes of `text`, cut at a character, for an answer: valid UTF-8 without control
// characters, each byte that is neither replaced by a question mark.
std::string Printable(absl::string_view text, size_t most = kMaxNameLength);

// Checks what every name in Kubernetes keeps to: printable ASCII without spaces, at most `max_length` bytes.
// An empty text passes. The error continues what it is about: `"a\x00" is not a name: ...`.
absl::Status CheckName(absl::string_view text, size_t max_length = kMaxNameLength);

// Returns the name under which an object is kept whose name is `text`: `text` if it is a valid name. Else a
// printable substitute, not the same for any two texts: its first bytes, escaped, and a hash of all of it.
std::string StoredName(absl::string_view text);

// `status` with `prefix` and a separator put before its text.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix,
                      absl::string_view separator = ": ");

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_TEXT_H_
