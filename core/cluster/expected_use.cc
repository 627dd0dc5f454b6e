#include "core/cluster/expected_use.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

constexpr int kShareBits = 32;

bool IsKnown(const HourlyAmounts& profile) {
  return std::any_of(profile.begin(), profile.end(), [](int64_t amount) { return amount > 0; });
}

// The most of each hour and its neighbours, times the margin, rounded up. An hour with a neighbour that is
// not known is not known either: it could be the most.
HourlyAmounts WithMargin(const HourlyAmounts& measured, int32_t margin_percent, int32_t neighbor_hours) {
  constexpr int32_t kHours = static_cast<int32_t>(kHoursOfDay);
  HourlyAmounts result = {};
  for (int32_t hour = 0; hour < kHours; ++hour) {
    int64_t most = 0;
    bool known = true;
    for (int32_t by = -neighbor_hours; by <= neighbor_hours; ++by) {
      const int64_t there = measured[static_cast<size_t>((hour + by + kHours) % kHours)];
      known = known && there > 0;
      most = std::max(most, there);
    }
    if (!known) continue;
    const absl::int128 amount = (absl::int128(most) * margin_percent + 99) / 100;
    result[static_cast<size_t>(hour)] = amount > kMaxAmount ? kMaxAmount : static_cast<int64_t>(amount);
  }
  return result;
}

}  // namespace

ExpectedUse::ExpectedUse(const ExpectedUseOptions& options, const ClusterObjects& objects, int64_t now_s)
    : options_(options), version_(objects.usage_version()) {
  KnownWorkloads cpu;
  KnownWorkloads memory;
  for (const auto& [key, object] : objects.of(ObjectKind::kWorkloadUsage)) {
    const WorkloadUsage& usage = std::get<WorkloadUsage>(object.content);
    if (usage.days < options_.min_days) continue;
    const int64_t stale_s = usage.newest_s + options_.max_age_s + 1;
    if (now_s <= 0 || now_s >= stale_s) {
      from_s_ = std::max(from_s_, now_s > 0 ? stale_s : 0);
      continue;
    }
    until_s_ = std::min(until_s_, stale_s);
    Profile& profile = profiles_[key.namespace_name][key.name];
    profile.pod_template = usage.pod_template;
    profile.cpu = WithMargin(usage.cpu_milli, options_.cpu_margin_percent, options_.neighbor_hours);
    profile.memory = WithMargin(usage.memory_bytes, options_.memory_margin_percent, options_.neighbor_hours);
    cpu.Add(usage.cpu_limit_milli, profile.cpu);
    memory.Add(usage.memory_limit_bytes, profile.memory);
  }
  cpu_share_ = cpu.Share();
  memory_share_ = memory.Share();
  if (now_s <= 0) until_s_ = 1;  // a view that knows no time
}

const HourlyAmounts* ExpectedUse::Find(const PodShape& pod, ResourceId resource) const {
  const PodWorkload& workload = TraitsOf(pod).workload;
  if (workload.name.empty() || (resource != kCpu && resource != kMemory)) return nullptr;
  const auto in_namespace = profiles_.find(pod.namespace_name);
  if (in_namespace == profiles_.end()) return nullptr;
  const auto found = in_namespace->second.find(workload.name);
  if (found == in_namespace->second.end()) return nullptr;
  const Profile& profile = found->second;
  if (profile.pod_template != 0 && profile.pod_template != workload.pod_template) return nullptr;
  const HourlyAmounts& hours = resource == kCpu ? profile.cpu : profile.memory;
  return IsKnown(hours) ? &hours : nullptr;
}

void ExpectedUse::KnownWorkloads::Add(int64_t limit, const HourlyAmounts& profile) {
  if (limit == 0 || !IsKnown(profile)) return;
  limits += limit;
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    use[hour] += profile[hour] == 0 ? limit : std::min(limit, profile[hour]);
  }
}

std::optional<int64_t> ExpectedUse::KnownWorkloads::Share() const {
  if (limits == 0) return std::nullopt;
  // Less than 2^31 workloads of at most 2^62, so that the product stays within 125 bits.
  const absl::int128 peak = *std::max_element(use.begin(), use.end());
  return static_cast<int64_t>(((peak << kShareBits) + limits - 1) / limits);
}

int64_t ExpectedUse::AtMostUnknown(ResourceId resource, int64_t limit, int64_t request) const {
  if (resource != kCpu && resource != kMemory) return kMaxAmount;
  const std::optional<int64_t> share = resource == kCpu ? cpu_share_ : memory_share_;
  if (!share.has_value()) return kMaxAmount;
  const absl::int128 used = (absl::int128(limit) * *share) >> kShareBits;
  return AtLeast(static_cast<int64_t>(used), request);
}

bool ExpectedUse::Holds(const ClusterObjects& objects, int64_t now_s) const {
  return version_ == objects.usage_version() && from_s_ <= now_s && now_s < until_s_;
}

std::shared_ptr<const ExpectedUse> ExpectedUseCache::For(const ExpectedUseOptions& options,
                                                         const ClusterObjects& objects, int64_t now_s) {
  if (!options.on) return nullptr;
  const auto same = [&](const auto& kept) { return kept->options() == options; };
  const auto found = std::find_if(kept_.begin(), kept_.end(), same);
  std::shared_ptr<const ExpectedUse> use;
  if (found != kept_.end()) {
    use = std::move(*found);
    kept_.erase(found);
  }
  if (use == nullptr || !use->Holds(objects, now_s)) {
    use = std::make_shared<const ExpectedUse>(options, objects, now_s);
  }
  if (kept_.size() >= kMost) kept_.erase(kept_.begin());
  return kept_.emplace_back(std::move(use));
}

}  // namespace loadline
