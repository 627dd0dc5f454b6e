#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "loadline/v1/simulation.pb.h"
#include "plugin/convert/simulation.h"
#include "plugin/service/handlers.h"
#include "plugin/service/views.h"

namespace loadline {

// Reads no view, so that it keeps no other question waiting for one; and one runs at a time in an engine, so
// that others have threads: who wants more has more engines. A call without a deadline ends before the
// daemon's watchdog takes it for stuck.
absl::StatusOr<v1::SimulateResponse> AnswerSimulate(const v1::SimulateRequest& request,
                                                    const Deadline& deadline, Views* views) {
  constexpr std::chrono::minutes kLongestSimulation(10);
  constexpr std::chrono::seconds kWithoutDeadline(45);
  if (!views->BeginSimulation())
    return absl::ResourceExhaustedError("another simulation runs: try again when it has ended");
  const absl::Cleanup leave = [views] { views->EndSimulation(); };
  const absl::StatusOr<Scenario> scenario = DecodeScenario(request);
  if (!scenario.ok()) return scenario.status();
  const Deadline::Clock::time_point latest =
      std::min(deadline.OrAfter(kWithoutDeadline), Deadline::Clock::now() + kLongestSimulation);
  WorkBudget budget(INT64_MAX / 2, [deadline, latest] {
    return deadline.Check().ok() && Deadline::Clock::now() < latest ? 0.0 : 1.0;
  });
  const SimResult result = Simulate(*scenario, &budget);
  if (result.cut_short_by == "pods") {
    return absl::ResourceExhaustedError(absl::StrCat("scenario: there would be more than ", kMostSimPodsEver,
                                                     " pods in all; take fewer days"));
  }
  if (!result.cut_short_by.empty()) return Deadline::Passed();
  return EncodeSimulation(result);
}

}  // namespace loadline
