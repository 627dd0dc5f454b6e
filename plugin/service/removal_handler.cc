#include <utility>

#include "core/removal/step_removal.h"
#include "loadline/v1/removal.pb.h"
#include "plugin/convert/removal.h"
#include "plugin/service/handlers.h"
#include "plugin/service/views.h"

namespace loadline {

// Reads no view.
absl::StatusOr<v1::StepRemovalResponse> AnswerStepRemoval(const v1::StepRemovalRequest& request,
                                                          const Deadline& /*deadline*/, Views* /*views*/) {
  absl::StatusOr<RemovalQuestion> question = DecodeRemovalQuestion(request);
  if (!question.ok()) return question.status();
  const RemovalOrders orders =
      StepRemoval(question->rules, question->seen, question->now_ms, &question->removal);
  return EncodeRemovalStep(orders, question->removal);
}

}  // namespace loadline
