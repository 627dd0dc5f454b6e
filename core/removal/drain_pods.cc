#include "core/removal/drain_pods.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/fingerprint.h"
#include "core/removal/eviction_answer.h"

namespace loadline {
namespace {

// How soon it is looked for the first time whether pods have ended. Most end in no time; for those that do
// not the time doubles up to the interval, and then they are looked at once in each of it.
constexpr int64_t kFirstLookMs = 250;

// When pods are looked at next that were looked at after `looked_ms`; both since their evictions.
int64_t NextLook(int64_t looked_ms, int64_t poll_ms) {
  if (looked_ms == 0) return std::min(kFirstLookMs, poll_ms);
  if (looked_ms < poll_ms) return std::min(2 * looked_ms, poll_ms);
  return looked_ms + poll_ms;
}

// By up to a fifth more or less, so that attempts which began together go apart.
int64_t Jitter(int64_t interval_ms, const PodRemoval& pod) {
  FingerprintBuilder chance;
  chance.Add(pod.uid);
  chance.Add(pod.attempts);
  const double share = static_cast<double>(chance.Finish() >> 11) * 0x1p-53;
  return static_cast<int64_t>(static_cast<double>(interval_ms) * (0.8 + 0.4 * share));
}

}  // namespace

PodsDrain::PodsDrain(const RemovalRules& rules, const RemovalFacts& seen, int64_t now_ms, Removal* removal)
    : rules_(rules), seen_(seen), now_ms_(now_ms), removal_(*removal) {}

absl::flat_hash_map<absl::string_view, PodRemoval*> PodsDrain::Left() {
  absl::flat_hash_map<absl::string_view, PodRemoval*> left;
  for (PodRemoval& pod : removal_.pods) left.emplace(pod.uid, &pod);
  return left;
}

std::vector<absl::string_view> PodsDrain::Settle() {
  std::vector<absl::string_view> counted;
  // Pods that are refused together are tried again together: each attempt takes a look at node and pods.
  if (!removal_.pods.empty()) retry_ms_ = Jitter(rules_.eviction_retry_ms, removal_.pods.front());
  const absl::flat_hash_map<absl::string_view, PodRemoval*> before = Left();
  for (const EvictionAnswer& answer : seen_.evictions) {
    const EvictionResult result = ResultOf(answer);
    counted.push_back(Name(result));
    const auto found = before.find(answer.uid);
    if (found == before.end() || result != EvictionResult::kAccepted) continue;
    found->second->accepted = true;
    if (found->second->despite_budget) counted.back() = "deleted_despite_budget";
  }
  ForgetGone();
  // Whatever the answer was, a pod that is gone by now does not matter.
  const absl::flat_hash_map<absl::string_view, PodRemoval*> left = Left();
  for (const EvictionAnswer& answer : seen_.evictions) {
    const EvictionResult result = ResultOf(answer);
    const auto found = left.find(answer.uid);
    if (found == left.end() || found->second->accepted) continue;
    Refused(answer, MayBeTriedAgain(result),
            result == EvictionResult::kBudget || result == EvictionResult::kSeveralBudgets, found->second);
  }
  std::erase_if(removal_.pods, [](const PodRemoval& pod) { return pod.best_effort && pod.accepted; });
  return counted;
}

void PodsDrain::Refused(const EvictionAnswer& answer, bool again, bool by_budget, PodRemoval* pod) {
  if (pod->despite_budget) {
    failure_ = absl::StrCat("pod ", pod->name,
                            ": its budgets refuse its eviction, and its deletion failed: ", answer.error);
    return;
  }
  if (!again) {
    GiveUp(answer, "not evicted: ", by_budget, pod);
    return;
  }
  pod->next_ms = now_ms_ + std::max(retry_ms_, 1000 * answer.retry_after_s);
  if (pod->next_ms >= pod->until_ms) GiveUp(answer, "not evicted in time: ", by_budget, pod);
}

void PodsDrain::GiveUp(const EvictionAnswer& answer, absl::string_view why, bool by_budget, PodRemoval* pod) {
  if (pod->best_effort) {
    pod->accepted = true;
  } else if (by_budget && rules_.delete_despite_budgets) {
    pod->despite_budget = true;
    pod->next_ms = now_ms_;
  } else if (failure_.empty()) {
    failure_ = absl::StrCat("pod ", pod->name, ": ", why, answer.error);
  }
}

// One of the same name with another UID is another pod.
void PodsDrain::ForgetGone() {
  if (!seen_.pods.has_value() || !seen_.pods->error.empty()) return;
  absl::flat_hash_map<absl::string_view, const RemovalPod*> there;
  for (const RemovalPod& pod : seen_.pods->pods) there.emplace(pod.uid, &pod);
  const int32_t group_before = removal_.pods.empty() ? 0 : removal_.pods.front().group;
  std::erase_if(removal_.pods, [&](const PodRemoval& pod) { return !there.contains(pod.uid); });
  if (!removal_.pods.empty() && removal_.pods.front().group != group_before) removal_.accepted_ms = -1;
  for (PodRemoval& pod : removal_.pods) {
    if (there[pod.uid]->deleted_s.has_value()) pod.accepted = true;
  }
}

std::span<PodRemoval> PodsDrain::Group() {
  const auto end = std::find_if(removal_.pods.begin(), removal_.pods.end(), [&](const PodRemoval& pod) {
    return pod.group != removal_.pods.front().group;
  });
  return {removal_.pods.begin(), end};
}

void PodsDrain::Advance() {
  const std::span<PodRemoval> group = Group();
  if (std::all_of(group.begin(), group.end(), [](const PodRemoval& pod) { return pod.accepted; })) {
    AwaitEnd(group);
  } else {
    Evict(group);
  }
}

// Nobody is evicted before the node was looked at in the same step: it may be another leader's by now.
void PodsDrain::Evict(std::span<PodRemoval> group) {
  due_ms_ = INT64_MAX;
  for (const PodRemoval& pod : group) {
    if (!pod.accepted) due_ms_ = std::min(due_ms_, std::max(pod.next_ms, now_ms_));
  }
  look_at_node_ = true;
  if (due_ms_ > now_ms_ || !seen_.node.has_value()) return;
  look_at_node_ = false;
  for (PodRemoval& pod : group) {
    if (pod.accepted || pod.next_ms > now_ms_) continue;
    const bool first = pod.attempts++ == 0;
    if (first) pod.until_ms = now_ms_ + rules_.max_pod_eviction_ms;
    evictions_.push_back({.uid = pod.uid,
                          .grace_s = pod.grace_s,
                          .first = first,
                          .best_effort = pod.best_effort,
                          .despite_budget = pod.despite_budget});
  }
}

void PodsDrain::AwaitEnd(std::span<PodRemoval> group) {
  if (removal_.accepted_ms < 0) {
    removal_.accepted_ms = now_ms_;
    removal_.looked_ms = 0;
  } else {
    removal_.looked_ms = now_ms_ - removal_.accepted_ms;
  }
  const int64_t grace_s = rules_.priority_groups.empty()
                              ? rules_.max_grace_s
                              : rules_.priority_groups[static_cast<size_t>(group.front().group)].grace_s;
  const int64_t patience_ms = grace_s * 1000 + rules_.termination_headroom_ms;
  if (now_ms_ < removal_.accepted_ms + patience_ms) {
    due_ms_ = removal_.accepted_ms + std::min(NextLook(removal_.looked_ms, rules_.poll_ms), patience_ms);
    return;
  }
  if (!seen_.pods->error.empty()) {
    failure_ = absl::StrCat("cannot see whether pods have ended: ", seen_.pods->error);
  } else {
    failure_ = absl::StrCat("pod ", group.front().name, ": still there ", patience_ms / 1000,
                            " s after its eviction");
  }
}

}  // namespace loadline
