#include "core/sim/fleet_count.h"

#include <algorithm>
#include <utility>

namespace loadline {
namespace {

constexpr int64_t kFirstPauseMs = 300'000;
constexpr int64_t kLongestPauseMs = 1'800'000;
constexpr int64_t kForgetPauseMs = 3 * 3'600'000;

}  // namespace

FleetCount::FleetCount(const Scenario& scenario)
    : provision_ms_(scenario.settings.max_node_provision_s * 1000), groups_(scenario.groups.size()) {}

void FleetCount::NoteTime(int64_t at_ms) { next_ms_ = std::min(next_ms_.value_or(at_ms), at_ms); }

GroupFleet FleetCount::Count(int32_t group, const World& world, const Cloud& cloud,
                             const ObservedCluster& seen) {
  GroupFleet fleet;
  had_node_.resize(static_cast<size_t>(world.machine_end()));
  for (const int32_t machine : cloud.machines(group)) {
    const SimMachine& of = world.machine(machine);
    const size_t number = static_cast<size_t>(machine);
    if (seen.SlotOf(of.node).has_value()) {
      had_node_[number] = true;
      ++fleet.registered;
      continue;
    }
    if (of.state == SimMachine::State::kDeleting) continue;
    if (seen.Registered(of.node)) {
      had_node_[number] = true;
      ++fleet.on_the_way;
      continue;
    }
    if (had_node_[number]) {
      ++fleet.lost;
      continue;
    }
    const int64_t late_ms = of.ordered_ms + provision_ms_;
    if (world.now_ms() >= late_ms) {
      fleet.late.push_back(machine);
    } else {
      ++fleet.on_the_way;
      NoteTime(late_ms);
    }
  }
  const int64_t until_ms = groups_[static_cast<size_t>(group)].until_ms;
  if (world.now_ms() < until_ms) NoteTime(until_ms);
  return fleet;
}

std::optional<int64_t> FleetCount::TakeNextTime() { return std::exchange(next_ms_, std::nullopt); }

void FleetCount::BackOff(int32_t group, int64_t now_ms) {
  Group& of = groups_[static_cast<size_t>(group)];
  const bool anew = of.pause_ms == 0 || now_ms - of.failed_ms > kForgetPauseMs;
  of.pause_ms = anew ? kFirstPauseMs : std::min(2 * of.pause_ms, kLongestPauseMs);
  of.failed_ms = now_ms;
  of.until_ms = now_ms + of.pause_ms;
}

}  // namespace loadline
