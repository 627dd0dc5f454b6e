// The pods of a node that is drained: which are evicted now, which have ended, and when to look again.
#ifndef LOADLINE_CORE_REMOVAL_DRAIN_PODS_H_
#define LOADLINE_CORE_REMOVAL_DRAIN_PODS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/removal/removal.h"
#include "core/removal/removal_rules.h"

namespace loadline {

// One step of a drain. Pods go group by group; the next group begins when the pods of the one before are
// gone. A pod whose eviction is refused is tried again until its time is up. All outlive it.
class PodsDrain {
 public:
  PodsDrain(const RemovalRules& rules, const RemovalFacts& seen, int64_t now_ms, Removal* removal);

  // Takes note of the answers to evictions, forgets pods that have ended, and returns how each answer is
  // counted.
  std::vector<absl::string_view> Settle();
  // Finds out what is to be done about the pods that are left. They were looked at in this step.
  void Advance();

  // Returns the reason for which the node stays; empty: it does not stay for now.
  const std::string& failure() const { return failure_; }
  std::vector<EvictionOrder> TakeEvictions() { return std::move(evictions_); }
  int64_t due_ms() const { return due_ms_; }
  bool look_at_node() const { return look_at_node_; }

 private:
  // Pods that are left, by UID.
  absl::flat_hash_map<absl::string_view, PodRemoval*> Left();
  void Refused(const EvictionAnswer& answer, bool again, bool by_budget, PodRemoval* pod);
  void GiveUp(const EvictionAnswer& answer, absl::string_view why, bool by_budget, PodRemoval* pod);
  void ForgetGone();
  // The pods of the first group that is left.
  std::span<PodRemoval> Group();
  void Evict(std::span<PodRemoval> group);
  void AwaitEnd(std::span<PodRemoval> group);

  const RemovalRules& rules_;
  const RemovalFacts& seen_;
  const int64_t now_ms_;
  Removal& removal_;
  int64_t retry_ms_ = 0;  // for all that are refused in this step
  std::string failure_;
  std::vector<EvictionOrder> evictions_;
  int64_t due_ms_ = 0;
  bool look_at_node_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_DRAIN_PODS_H_
