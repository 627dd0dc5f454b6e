#include "plugin/service/size_handler.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/size.h"
#include "plugin/service/scheduler_extender_handlers.h"

namespace loadline {

absl::StatusOr<v1::MeasureUtilizationResponse> MeasureUtilization(
    const v1::MeasureUtilizationRequest& request, const Deadline& deadline, Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: missing");
  absl::StatusOr<LockedView> locked = ApplyChanges(request.changes(), deadline, views);
  if (!locked.ok()) return locked.status();
  SharedView& shared = *locked->operator->();
  const ClusterState& cluster = shared.view.cluster();
  const absl::StatusOr<DecodedSizing> decoded =
      DecodeSizing(request, shared.size_state, cluster.resource_names());
  if (!decoded.ok()) return decoded.status();
  const absl::StatusOr<std::vector<GatheredGroup>> gathered =
      GatherFacts(cluster, decoded->groups, decoded->waiting, decoded->now_ms);
  if (!gathered.ok()) return gathered.status();

  v1::MeasureUtilizationResponse response;
  response.set_clamped_amounts(decoded->clamped_amounts);
  size_t bytes = 0;
  for (size_t i = 0; i < decoded->groups.size(); ++i) {
    const SizedGroup& group = decoded->groups[i];
    const SizeDecision decision =
        SizeGroup(group.options, (*gathered)[i].facts, decoded->states[i], decoded->now_ms);
    v1::GroupSize* const answer = response.add_groups();
    *answer = EncodeSize(decoded->groups, i, (*gathered)[i], decision);
    *response.mutable_state()->add_groups() = EncodeState(group, decision.next);
    bytes += answer->ByteSizeLong();
    if (bytes > kMaxMessageBytes) break;
  }
  if (response.ByteSizeLong() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer outgrows ", kMaxMessageBytes, " bytes; ask about fewer groups"));
  }
  shared.size_state = response.state();
  return response;
}

}  // namespace loadline
