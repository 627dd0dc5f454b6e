#include "core/removal/eviction_answer.h"

#include "absl/strings/match.h"

namespace loadline {

EvictionResult ResultOf(const EvictionAnswer& answer) {
  using Cause = EvictionAnswer::Cause;
  switch (answer.code) {
    case 404:
      return EvictionResult::kAccepted;
    case 429:
      return answer.cause == Cause::kBudget ? EvictionResult::kBudget : EvictionResult::kBusy;
    case 409:
      return EvictionResult::kConflict;
    case 403:
      return answer.cause == Cause::kNamespaceEnds ? EvictionResult::kNamespaceEnds
                                                   : EvictionResult::kForbidden;
    case 408:
      return EvictionResult::kError;
    case 500:
      return absl::StrContains(answer.error, "more than one PodDisruptionBudget")
                 ? EvictionResult::kSeveralBudgets
                 : EvictionResult::kError;
    default:
      break;
  }
  if (answer.code >= 200 && answer.code < 300) return EvictionResult::kAccepted;
  return answer.code >= 400 && answer.code < 500 ? EvictionResult::kInvalid : EvictionResult::kError;
}

bool MayBeTriedAgain(EvictionResult result) { return result < EvictionResult::kSeveralBudgets; }

absl::string_view Name(EvictionResult result) {
  switch (result) {
    case EvictionResult::kAccepted:
      return "accepted";
    case EvictionResult::kBudget:
      return "budget";
    case EvictionResult::kBusy:
      return "busy";
    case EvictionResult::kNamespaceEnds:
      return "namespace_ending";
    case EvictionResult::kConflict:
      return "conflict";
    case EvictionResult::kError:
      return "error";
    case EvictionResult::kSeveralBudgets:
      return "several_budgets";
    case EvictionResult::kForbidden:
      return "forbidden";
    case EvictionResult::kInvalid:
      return "invalid";
  }
  return "no such result";
}

}  // namespace loadline
