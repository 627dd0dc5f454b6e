// The expected use of the pods of a workload at each hour of the day.
#ifndef LOADLINE_CORE_CLUSTER_EXPECTED_USE_H_
#define LOADLINE_CORE_CLUSTER_EXPECTED_USE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "core/base/amount.h"
#include "core/base/resource_names.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"

namespace loadline {

// How profiles count. See message ExpectedUse.
struct ExpectedUseOptions {
  bool on = false;
  // A pod counts at least as its request.
  bool request_floor = false;
  int32_t cpu_margin_percent = 100;  // [100, 1000]
  int32_t memory_margin_percent = 100;
  int32_t neighbor_hours = 0;            // [0, 11]
  int32_t min_days = 3;                  // [1, 365]
  int64_t max_age_s = 2 * 24 * 60 * 60;  // [60, 2^32]
  friend bool operator==(const ExpectedUseOptions&, const ExpectedUseOptions&) = default;
};

// The profiles of a cluster that count at one time, with their margins. Immutable: any thread.
class ExpectedUse {
 public:
  // `now_s`: seconds since 1970. Cost: O(profiles).
  ExpectedUse(const ExpectedUseOptions& options, const ClusterObjects& objects, int64_t now_s);

  const ExpectedUseOptions& options() const { return options_; }
  bool empty() const { return profiles_.empty(); }

  // Returns what a pod of this shape is expected to use of cpu or memory, [0, 2^62]; an hour of 0 is not
  // known. nullptr: nothing is known. Cost: two look-ups.
  const HourlyAmounts* Find(const PodShape& pod, ResourceId resource) const;

  // Returns the most that a pod counts as in an hour: its profile, or with `request_floor` its request if
  // that is more; kMaxAmount where the hour is not known. `profile` is what Find() returned.
  int64_t AtMost(const HourlyAmounts* profile, size_t hour, int64_t request) const {
    if (profile == nullptr || (*profile)[hour] == 0) return kMaxAmount;
    return AtLeast((*profile)[hour], request);
  }

  // Returns the most that a pod without a profile counts as in the score, in all hours alike:
  //
  //   limit * max over hours (sum of what known workloads count as) / sum of their limits
  //
  // and with `request_floor` not less than its request. A workload is known if it has a profile and states
  // its limit; one pod of each counts. kMaxAmount: none is known. `limit`, `request`: of the pod, [0, 2^62].
  int64_t AtMostUnknown(ResourceId resource, int64_t limit, int64_t request) const;

  // Returns true if the same profiles count at this time and are those that `objects` holds.
  bool Holds(const ClusterObjects& objects, int64_t now_s) const;

 private:
  struct Profile {
    uint64_t pod_template = 0;  // 0: any
    HourlyAmounts cpu = {};
    HourlyAmounts memory = {};
  };

  // The sums over known workloads: of their limits, and of what they count as in each hour.
  struct KnownWorkloads {
    absl::int128 limits = 0;
    std::array<absl::int128, kHoursOfDay> use = {};
    void Add(int64_t limit, const HourlyAmounts& profile);
    // The largest sum of an hour over that of the limits, in 2^-kShareBits, rounded up; nullopt: none is
    // known.
    std::optional<int64_t> Share() const;
  };

  int64_t AtLeast(int64_t use, int64_t request) const {
    return options_.request_floor ? std::max(use, request) : use;
  }

  const ExpectedUseOptions options_;
  const int64_t version_;  // ClusterObjects::usage_version()
  int64_t from_s_ = 0;     // from then on, until before `until_s_`
  int64_t until_s_ = INT64_MAX;
  // The share of the limits of known workloads that they use at the peak of the day; see Share().
  std::optional<int64_t> cpu_share_;
  std::optional<int64_t> memory_share_;
  // By namespace, then by "KIND/NAME".
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, Profile>> profiles_;
};

// The profiles by which the questions to one cluster count: one object for each set of options, which stays
// the same for as long as it holds. Not thread-safe.
class ExpectedUseCache {
 public:
  // Returns nullptr where expected use is off.
  std::shared_ptr<const ExpectedUse> For(const ExpectedUseOptions& options, const ClusterObjects& objects,
                                         int64_t now_s);

 private:
  // Chosen: the scheduler, the autoscaler and a command ask with their own options.
  static constexpr size_t kMost = 4;
  std::vector<std::shared_ptr<const ExpectedUse>> kept_;  // most recently used last
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_EXPECTED_USE_H_
