// Chooses the pods that have to leave a node before it is deleted.
#ifndef LOADLINE_CORE_REMOVAL_REMOVAL_PODS_H_
#define LOADLINE_CORE_REMOVAL_REMOVAL_PODS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/removal/removal.h"
#include "core/removal/removal_rules.h"

namespace loadline {

// Why the pods of a node are not those that it was planned with; nullopt: they are. A pod that is gone only
// makes the plan easier.
std::optional<std::string> Unexpected(std::span<const RemovalPod> pods, int64_t now_s);

// Why a node must not be deleted with these pods; nullopt: it may. Mirror pods, those of DaemonSets, those
// that have finished and those that should have ended long ago go with it.
std::optional<std::string> WouldBeLost(std::span<const RemovalPod> pods, int64_t now_s);

// Pods that are to go, those that end already and placeholders included, by group; in a group as they come.
std::vector<PodRemoval> PodsToGo(const RemovalRules& rules, bool empty, std::span<const RemovalPod> pods,
                                 int64_t now_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_REMOVAL_PODS_H_
