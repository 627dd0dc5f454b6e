#include "test/plugin/score_messages.h"

namespace loadline {

v1::ScorePolicy Preset(v1::ScorePolicy::Preset preset) {
  v1::ScorePolicy policy;
  policy.set_preset(preset);
  return policy;
}

v1::ScoreRequest ScoreOf(const v1::Changes& changes, const k8s::v1::Pod& pod, const v1::ScorePolicy& policy,
                         const std::vector<int32_t>& slots) {
  v1::ScoreRequest request;
  *request.mutable_changes() = changes;
  request.set_pod(pod.SerializeAsString());
  *request.mutable_policy() = policy;
  request.mutable_slots()->Add(slots.begin(), slots.end());
  return request;
}

v1::ExplainRequest ExplainOf(const v1::ScoreRequest& score, const std::vector<int32_t>& explain_slots) {
  v1::ExplainRequest request;
  if (score.has_changes()) *request.mutable_changes() = score.changes();
  request.set_pod(score.pod());
  if (score.has_policy()) *request.mutable_policy() = score.policy();
  *request.mutable_slots() = score.slots();
  request.mutable_explain_slots()->Add(explain_slots.begin(), explain_slots.end());
  return request;
}

}  // namespace loadline
