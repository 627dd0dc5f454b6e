// DynamicResources: allocates devices to resource claims. The engine knows no devices: a pod with claims
// cannot be judged unless another filter refuses it.
#include "core/fit/filters.h"

namespace loadline {

MadeFilter MakeDynamicResources(const FitContext& context) {
  if (!context.rules->claims_resources) return {};
  return {nullptr, {}, CannotJudge(FilterName::kDynamicResources, "the pod has resource claims")};
}

}  // namespace loadline
