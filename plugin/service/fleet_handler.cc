#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fleet/look.h"
#include "core/fleet/state_bytes.h"
#include "loadline/v1/fleet.pb.h"
#include "plugin/convert/fleet.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_limits.h"

namespace loadline {

absl::StatusOr<v1::LookAtFleetResponse> AnswerLookAtFleet(const v1::LookAtFleetRequest& request,
                                                          const Deadline& deadline, Views* /*views*/) {
  absl::StatusOr<DecodedLook> look = DecodeLook(request);
  if (!look.ok()) return look.status();
  if (absl::Status status = deadline.Check(); !status.ok()) return status;
  FleetState state;
  std::string problem;
  if (!request.state().empty()) {
    absl::StatusOr<FleetState> kept = DecodeFleetState(request.state());
    if (kept.ok()) {
      state = *std::move(kept);
    } else {  // a loop must go on without it: the times of all machines begin anew
      problem = absl::StrCat("state: ", kept.status().message());
    }
  }
  const FleetView view = LookAtFleet(look->observation.has_value() ? &*look->observation : nullptr,
                                     look->outcomes, look->options, look->now_ms, &state);
  v1::LookAtFleetResponse response = EncodeFleetView(view);
  response.set_state(EncodeFleetState(state));
  response.set_state_problem(problem);
  return Sized(std::move(response), "list fewer machines");
}

}  // namespace loadline
