// The meaning of an answer to an eviction.
#ifndef LOADLINE_CORE_REMOVAL_EVICTION_ANSWER_H_
#define LOADLINE_CORE_REMOVAL_EVICTION_ANSWER_H_

#include "absl/strings/string_view.h"
#include "core/removal/removal.h"

namespace loadline {

// The meaning of the API server's answer to an eviction.
enum class EvictionResult {
  kAccepted,       // also of a pod that is gone
  kBudget,         // 429 with the cause of budgets
  kBusy,           // another 429, of priority and fairness: no budget was looked at
  kNamespaceEnds,  // 403 in a namespace that is being deleted: its pods end anyway
  kConflict,       // 409: another pod has its name by now
  kError,          // 5xx, time-outs, lost connections
  // The same request fails again.
  kSeveralBudgets,  // 500: the API server never evicts a pod that more than one budget selects
  kForbidden,       // another 403
  kInvalid,         // another 4xx
};

// Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go, v1.36.
EvictionResult ResultOf(const EvictionAnswer& answer);

// Returns whether the next attempt may do better.
bool MayBeTriedAgain(EvictionResult result);

// A label of metrics.
absl::string_view Name(EvictionResult result);

}  // namespace loadline

#endif  // LOADLINE_CORE_REMOVAL_EVICTION_ANSWER_H_
