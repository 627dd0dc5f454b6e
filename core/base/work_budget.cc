#include "core/base/work_budget.h"

namespace loadline {

absl::string_view Name(BudgetEnd end) {
  switch (end) {
    case BudgetEnd::kNotEnded:
      return "";
    case BudgetEnd::kOutOfWork:
      return "work";
    case BudgetEnd::kOutOfTime:
      return "time";
    case BudgetEnd::kOutOfMemory:
      return "memory";
  }
  return "invalid end";
}

}  // namespace loadline
