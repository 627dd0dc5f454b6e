#include "core/observe/devices.h"

#include <algorithm>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

using DeviceSet = absl::btree_set<uint64_t>;

std::vector<const FleetNode*> NodesOf(const FleetGroup& group) {
  std::vector<const FleetNode*> nodes;
  for (const FleetMachine& machine : group.machines) {
    if (machine.node.has_value()) nodes.push_back(&*machine.node);
  }
  return nodes;
}

}  // namespace

std::vector<uint64_t> DevicesOfGroup(const std::vector<uint64_t>& known, const FleetGroup& group,
                                     const FleetOptions& options, int64_t now_ms) {
  const std::vector<const FleetNode*> nodes = NodesOf(group);
  const int64_t startup_ms = group.startup_ms.value_or(options.startup_ms);
  DeviceSet devices(group.template_devices.begin(), group.template_devices.end());
  int64_t grown_up = 0;                                         // nodes that have had their time
  absl::btree_map<uint64_t, std::pair<int64_t, int64_t>> with;  // all, and those that have had their time
  for (const FleetNode* const node : nodes) {
    const bool young = IsYoung(node->created_ms, startup_ms, now_ms);
    grown_up += young ? 0 : 1;
    for (const uint64_t device : node->devices) {
      auto& [all, old] = with[device];
      ++all;
      old += young ? 0 : 1;
    }
  }
  if (grown_up == 0) devices.insert(known.begin(), known.end());
  for (const uint64_t device : devices) with[device];
  for (const auto& [device, counts] : with) {
    const int64_t without = grown_up - counts.second;
    if (counts.first > without) {
      devices.insert(device);
    } else if (counts.first == 0 && without > 0) {  // whatever the cloud says: its nodes have had the time
      devices.erase(device);
    }
  }
  std::vector<uint64_t> sorted(devices.begin(), devices.end());
  if (sorted.size() > kMostDevices) sorted.resize(kMostDevices);
  return sorted;
}

bool LacksDevices(const FleetNode& node, const std::vector<uint64_t>& devices) {
  return node.awaits_gpus ||
         !std::includes(node.devices.begin(), node.devices.end(), devices.begin(), devices.end());
}

int64_t MillisecondsOf(int64_t seconds) { return std::clamp<int64_t>(seconds, 0, kMaxAmount / 1000) * 1000; }

bool IsYoung(int64_t created_ms, int64_t startup_ms, int64_t now_ms) {
  return created_ms != 0 && now_ms - created_ms < startup_ms;
}

}  // namespace loadline
