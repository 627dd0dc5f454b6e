#include "core/sim/bill_bound.h"

#include <algorithm>

namespace loadline {
namespace {

// Rounding of sums of products of doubles: what exceeds a price by less than this part of it does not.
constexpr double kSlightly = 1e-9;
constexpr double kMsOfHour = 3'600'000;

double CpuOf(const SimGroup& group) { return static_cast<double>(group.allocatable.cpu); }
double MemoryOf(const SimGroup& group) { return static_cast<double>(group.allocatable.memory); }

}  // namespace

BillBound::BillBound(const std::vector<SimGroup>& groups) {
  const auto add = [&](double u, double v) {
    if (!(u >= 0 && v >= 0)) return;
    for (const SimGroup& group : groups) {
      if (u * CpuOf(group) + v * MemoryOf(group) > group.usd_per_hour * (1 + kSlightly)) return;
    }
    // Rounding must not lift it above the bound.
    corners_.push_back({u * (1 - kSlightly), v * (1 - kSlightly)});
  };
  for (const SimGroup& a : groups) {
    add(a.usd_per_hour / CpuOf(a), 0);
    add(0, a.usd_per_hour / MemoryOf(a));
    for (const SimGroup& b : groups) {
      const double determinant = CpuOf(a) * MemoryOf(b) - CpuOf(b) * MemoryOf(a);
      if (determinant == 0) continue;
      add((a.usd_per_hour * MemoryOf(b) - b.usd_per_hour * MemoryOf(a)) / determinant,
          (CpuOf(a) * b.usd_per_hour - CpuOf(b) * a.usd_per_hour) / determinant);
    }
  }
}

double BillBound::UsdPerHour(const CpuMemory& requested) const {
  double usd = 0;
  for (const Corner& corner : corners_) {
    usd = std::max(usd, corner.usd_per_cpu * static_cast<double>(requested.cpu) +
                            corner.usd_per_memory * static_cast<double>(requested.memory));
  }
  return usd;
}

BillBoundWatch::BillBoundWatch(const World* world)
    : world_(*world), bound_(world->scenario().groups.values()) {}

void BillBoundWatch::PodChanged(SimPodIndex pod) {
  if (!on_node_.Contains(pod)) on_node_.resize(IndexOf(pod) + 1);
  const bool on = world_.pod(pod).place.has_value();
  if (on == on_node_[pod]) return;
  usd_ = Usd();
  since_ms_ = world_.now_ms();
  on_node_[pod] = on;
  const CpuMemory& request = world_.workload(world_.pod(pod).workload).request;
  requested_ = on ? Plus(requested_, request) : Minus(requested_, request);
  usd_per_hour_ = bound_.UsdPerHour(requested_);
}

double BillBoundWatch::Usd() const {
  return usd_ + usd_per_hour_ * static_cast<double>(world_.now_ms() - since_ms_) / kMsOfHour;
}

}  // namespace loadline
