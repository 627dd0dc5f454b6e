// Requests for scores in a line each.
#ifndef LOADLINE_TEST_PLUGIN_SCORE_MESSAGES_H_
#define LOADLINE_TEST_PLUGIN_SCORE_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/score.pb.h"

namespace loadline {

v1::ScorePolicy Preset(v1::ScorePolicy::Preset preset);
v1::ScoreRequest ScoreOf(const v1::Changes& changes, const k8s::v1::Pod& pod, const v1::ScorePolicy& policy,
                         const std::vector<int32_t>& slots = {});
v1::ExplainRequest ExplainOf(const v1::ScoreRequest& score, const std::vector<int32_t>& explain_slots = {});

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_SCORE_MESSAGES_H_
