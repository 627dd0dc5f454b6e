#include "core/observe/settle_requests.h"

#include "absl/strings/str_cat.h"
#include "core/base/texts.h"
#include "core/observe/outcomes.h"

namespace loadline {

void SettleRequest(const FleetGroup& group, const FleetGroupView& counted, const FleetOptions& options,
                   int64_t now_ms, GroupMemory* memory, FleetView* view) {
  if (!group.readable) return;  // what it shows is old
  const bool backs_off = BacksOff(memory->back_off, now_ms);
  const bool late = !counted.late.empty() || counted.not_begun > 0;
  const int64_t upcoming = counted.starting + counted.coming;
  if (late ? backs_off : !memory->request.has_value()) return;
  const auto fail = [&](BackOffReason reason, absl::string_view text) {
    memory->request.reset();
    FailGroup(group.name, reason, text, options.back_off, now_ms, memory, view);
  };
  if (late || (upcoming > 0 && now_ms >= memory->request->until_ms)) {
    const int64_t provision_ms = group.provision_ms.value_or(options.provision_ms);
    fail(BackOffReason::kTimeout, absl::StrCat("nodes did not register in ", DurationText(provision_ms)));
    return;
  }
  if (upcoming > 0) return;
  const bool fell = group.target <= memory->request->from;
  if (fell && group.shrinks) return;
  if (fell && counted.failed.empty()) {
    fail(BackOffReason::kCreationFailed,
         absl::StrCat("the cloud has taken its target size back to ", group.target));
    return;
  }
  memory->request.reset();
  if (!backs_off) memory->back_off.reset();  // what came is no success of what failed beside it
}

}  // namespace loadline
