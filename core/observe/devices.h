// The devices, such as GPUs, that nodes of a group will offer.
#ifndef LOADLINE_CORE_OBSERVE_DEVICES_H_
#define LOADLINE_CORE_OBSERVE_DEVICES_H_

#include <cstdint>
#include <vector>

#include "core/observe/fleet.h"

namespace loadline {

// The most devices that are remembered of a group. Chosen: a node seldom offers more than two kinds.
inline constexpr size_t kMostDevices = 8;

// Returns what new nodes of a group come to offer, in order: what the cloud says, unless no node shows it
// though some have had their time to start, and what more than half of its nodes offer that count. A node
// that lacks a device counts only once it has had its time. While no node of the group has, what was `known`
// stays known.
std::vector<uint64_t> DevicesOfGroup(const std::vector<uint64_t>& known, const FleetGroup& group,
                                     const FleetOptions& options, int64_t now_ms);

// Returns whether a node does not offer all of these devices, or awaits GPUs. The driver of a device
// registers it minutes after its node is ready: until then no pod that needs it can be placed there, and
// another node for that pod would be one too many.
bool LacksDevices(const FleetNode& node, const std::vector<uint64_t>& devices);

// Returns a UNIX time in milliseconds; one that is negative or too large is the nearest that is neither.
int64_t MillisecondsOf(int64_t seconds);

// Returns whether a node that was created then has not had its time to start. 0: nobody knows when it was.
bool IsYoung(int64_t created_ms, int64_t startup_ms, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_DEVICES_H_
