// Pods with workloads, and profiles of them, for tests.
#ifndef LOADLINE_TEST_TESTING_USAGE_H_
#define LOADLINE_TEST_TESTING_USAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/cluster/objects.h"
#include "core/cluster/pod_traits.h"
#include "core/cluster/shapes.h"

namespace loadline {

inline constexpr int64_t kProfileTimeS = 1'000'000;

// The same amount in all hours.
inline HourlyAmounts AllDay(int64_t amount) {
  HourlyAmounts hours;
  hours.fill(amount);
  return hours;
}

// Another amount in one hour.
inline HourlyAmounts AllDayBut(int64_t amount, size_t hour, int64_t other) {
  HourlyAmounts hours = AllDay(amount);
  hours[hour] = other;
  return hours;
}

// A profile that counts at kProfileTimeS with the default options.
inline WorkloadUsage UseOfDay(const HourlyAmounts& cpu_milli, const HourlyAmounts& memory_bytes) {
  WorkloadUsage usage;
  usage.cpu_milli = cpu_milli;
  usage.memory_bytes = memory_bytes;
  usage.days = 7;
  usage.newest_s = kProfileTimeS;
  return usage;
}

inline void SetUsage(const std::string& name, const WorkloadUsage& usage, ClusterObjects* objects) {
  ClusterObject object;
  object.key = {ObjectKind::kWorkloadUsage, "default", name};
  object.content = usage;
  objects->Set(std::move(object));
}

// Has a pod belong to a workload of the namespace "default". Its fingerprint is another one then.
inline PodShape OfWorkload(PodShape shape, const std::string& name, uint64_t pod_template = 0) {
  shape.namespace_name = "default";
  PodTraits traits;
  traits.workload = {name, pod_template};
  shape.traits = std::make_shared<const PodTraits>(std::move(traits));
  shape.fingerprint ^= std::hash<std::string>()(name) + pod_template;
  return shape;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_USAGE_H_
