// The memory of the fleet, as bytes that a client keeps.
#ifndef LOADLINE_CORE_OBSERVE_STATE_BYTES_H_
#define LOADLINE_CORE_OBSERVE_STATE_BYTES_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// The version that is written, and the only one that is read.
inline constexpr int kFleetStateVersion = 1;
// The size that no state exceeds: a ConfigMap has room for so much.
inline constexpr size_t kMostFleetStateBytes = size_t{1} << 20;
// Texts of failures share this many bytes: while more groups back off, each text is shorter.
inline constexpr size_t kMostBackOffTexts = size_t{96} << 10;
// Machines of which more than one bit is remembered: those that have been missing for the longest time, and
// of others those that once had a node. Beyond, they are forgotten.
inline constexpr size_t kMostMachinesUnderWay = 20'000;
inline constexpr size_t kMostMachinesWithNodes = 40'000;

// Returns the bytes of a state: magic "LLFS", the version, a checksum, and
//
//   1 if a look was taken, else 0; three times (grown, deleted, tainting failed)
//   number of groups, and for each by key: key, target, short since, bits (1: request, 2: delays of its own),
//     with a request from, nodes and until, with delays of its own when it last grew and a node of it went,
//     failure (0 or 1 + reason, since, until, duration, length of the text, text), number of devices, devices
//   number of machines under way, and for each by key: key, bits, missing since, given up
//   number of machines of which only is known that they had a node, and their keys
//
// Keys and devices are 8 bytes, little-endian; all else are varints of 7 bits each, with 1 added to what may
// be missing. Equal states give equal bytes. At most kMostFleetStateBytes.
std::string EncodeFleetState(const FleetState& state);

// Returns the state of bytes that EncodeFleetState() wrote.
// Errors: kInvalidArgument  says what is wrong with them: foreign, of another version, damaged or made up.
// The
//                           text continues what it is about.
absl::StatusOr<FleetState> DecodeFleetState(absl::string_view bytes);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_STATE_BYTES_H_
