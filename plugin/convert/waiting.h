// Decodes the pods without a node, and encodes which of them wait for one.
#ifndef LOADLINE_PLUGIN_CONVERT_WAITING_H_
#define LOADLINE_PLUGIN_CONVERT_WAITING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/grow/waiting.h"
#include "google/protobuf/repeated_field.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/scale_up_problem.h"

namespace loadline {

// nullopt: all pods of the question wait. Also checks what the question says of its pods.
// Errors: kInvalidArgument  names the field, and the entry. kResourceExhausted  there are too many schedulers
absl::StatusOr<std::optional<WaitingRules>> DecodeWaitingRules(const PendingPodsList& pods,
                                                               const v1::WaitingRules* of_question);
template <typename Request>
absl::StatusOr<std::optional<WaitingRules>> DecodeWaitingRules(const Request& request) {
  return DecodeWaitingRules(request.pods(), request.has_waiting() ? &request.waiting() : nullptr);
}

using NotWaitingList = google::protobuf::RepeatedPtrField<v1::NotWaitingPods>;

// Takes the entries of `pods` whose pods do not wait out of `problem`, which was decoded from them by
// kShape and is not Complete() yet. What is left decides as if they had not been asked about. Returns them.
NotWaitingList RemoveNotWaiting(const PendingPodsList& pods, const WaitingRules& rules,
                                DecodedProblem* problem);

// Decodes the pods of a loop that are too young to make groups grow, of those that do not wait. Label keys
// are to be selected, and the problem completed, as of DecodeProblem(). Errors: those of it
absl::StatusOr<DecodedProblem> DecodeYoungPods(const v1::PlanLoopRequest& request,
                                               const NotWaitingList& not_waiting, ResourceNames names,
                                               const ReadOptions& options);

// Decodes the pods of a question about drains or moves, those that wait, of any age. Label keys are to be
// selected, and the problem completed, as of DecodeProblem(). Errors: those of both
absl::StatusOr<DecodedProblem> DecodeWaitingPods(const v1::PlanDrainRequest& request, ResourceNames names,
                                                 const ReadOptions& options);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_WAITING_H_
