// Pods by what their containers and their status state, for tests of what they amount to.
#ifndef LOADLINE_TEST_TESTING_STATED_POD_H_
#define LOADLINE_TEST_TESTING_STATED_POD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/cluster/pod_resources.h"

namespace loadline::stated {

inline ResourceNames& Names() {
  static auto& names = *new ResourceNames();
  return names;
}

using Stated = std::vector<std::pair<std::string, std::string>>;  // resource name, quantity

inline ResourceList List(const Stated& stated) {
  ResourceList list;
  for (const auto& [name, text] : stated) {
    const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    list[Names().Intern(name)] = parsed->value;
  }
  return list;
}

// "cpu=1700000u+0n memory=0u+0n": exact, and absent differs from zero.
inline std::string Show(const ResourceList& list) {
  return absl::StrJoin(list, " ", [](std::string* out, const ResourceList::Entry& entry) {
    const absl::int128 thousandth = entry.value.nano() / 1000;
    absl::StrAppend(out, Names().name(entry.id), "=", static_cast<int64_t>(thousandth), "u+",
                    static_cast<int64_t>(entry.value.nano() - thousandth * 1000), "n");
  });
}

struct Spec {
  Stated limits = {};
  Stated requests = {};
};
struct Status {
  Stated limits = {};
  Stated requests = {};
  Stated allocated = {};
};

// Containers are called c0, c1, ... and init containers, sidecars among them, i0, i1, ...
class Pod {
 public:
  Pod& Container(const Spec& spec) {
    const std::string name = absl::StrCat("c", pod_.containers.size());
    pod_.containers.push_back({name, /*sidecar=*/false, List(spec.requests), List(spec.limits)});
    return *this;
  }
  Pod& Init(const Spec& spec) { return AddInit(spec, /*sidecar=*/false); }
  Pod& Sidecar(const Spec& spec) { return AddInit(spec, /*sidecar=*/true); }
  Pod& Overhead(const Stated& overhead) {
    pod_.overhead = List(overhead);
    return *this;
  }
  Pod& PodLevel(const Spec& spec) {
    pod_.pod_level = {.requests = List(spec.requests),
                      .limits = List(spec.limits),
                      .sets_requests = AnySetsPodLevel(spec.requests),
                      .sets_limits = AnySetsPodLevel(spec.limits)};
    return *this;
  }
  Pod& ContainerStatus(const std::string& name, const Status& status) {
    pod_.container_statuses.push_back({name, /*has_resources=*/true, Given(status.requests),
                                       Given(status.limits), Given(status.allocated)});
    return *this;
  }
  Pod& ContainerStatusWithoutResources(const std::string& name, const Stated& allocated) {
    pod_.container_statuses.push_back(
        {name, /*has_resources=*/false, std::nullopt, std::nullopt, Given(allocated)});
    return *this;
  }
  Pod& PodLevelStatus(const Status& status) {
    pod_.pod_level_status = {.requests = Given(status.requests), .limits = Given(status.limits)};
    pod_.pod_level_allocated = Given(status.allocated);
    return *this;
  }
  Pod& ResizeInfeasible() {
    pod_.resize_infeasible = true;
    return *this;
  }

  Pod& By(ResizeRule rule) {
    pod_.resize_rule = rule;
    return *this;
  }

  // Implicit, so that a row is the chain alone.
  operator const PodResources&() const { return pod_; }  // NOLINT(google-explicit-constructor)

 private:
  // On the wire a list without entries is none.
  static std::optional<ResourceList> Given(const Stated& stated) {
    return stated.empty() ? std::nullopt : std::optional(List(stated));
  }
  static bool AnySetsPodLevel(const Stated& stated) {
    return std::any_of(stated.begin(), stated.end(),
                       [](const auto& entry) { return SetsPodLevel(entry.first); });
  }
  Pod& AddInit(const Spec& spec, bool sidecar) {
    const std::string name = absl::StrCat("i", pod_.init_containers.size());
    pod_.init_containers.push_back({name, sidecar, List(spec.requests), List(spec.limits)});
    return *this;
  }

  PodResources pod_;
};

}  // namespace loadline::stated

#endif  // LOADLINE_TEST_TESTING_STATED_POD_H_
