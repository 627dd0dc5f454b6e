// Names that are made of texts which others write.
#ifndef LOADLINE_CORE_BASE_BOUNDED_NAME_H_
#define LOADLINE_CORE_BASE_BOUNDED_NAME_H_

#include <cstddef>
#include <string>

namespace loadline {

// The longest name that is kept as it is. A label has a key of up to 317 bytes and a value of up to 63.
inline constexpr size_t kMostBoundedNameBytes = 512;

// Returns the name; a longer one ends, after that many bytes or a little earlier between two characters, in
// "... " and the fingerprint of the whole name. Two long names may be equal only if their fingerprints are.
std::string BoundedName(std::string name);

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_BOUNDED_NAME_H_
