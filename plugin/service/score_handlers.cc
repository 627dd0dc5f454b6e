#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/v1/score.pb.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/explain.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/policy.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// The question that both methods share.
struct ScoreQuestion {
  ReadView view;  // first: all else refers to it
  PolicyColumns::Lease columns;
  ResourceNames names;  // those of the view, and of the pod
  PodShape pod;
  PodResources resources;  // of the pod; filled to explain
  std::vector<Slot> candidates;
};

// `Request` is a ScoreRequest or an ExplainRequest.
template <typename Request>
absl::StatusOr<ScoreQuestion> PrepareScore(const Request& request, const Deadline& deadline, Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: required");
  absl::StatusOr<ReadView> view = ReadChanges(request.changes(), deadline, views);
  if (!view.ok()) return view.status();
  const ClusterState& cluster = view->view().cluster();

  if (!request.has_policy()) return absl::InvalidArgumentError("policy: required");
  if (request.pod().empty()) return absl::InvalidArgumentError("pod: required");
  const absl::StatusOr<LimitPolicy> policy = DecodePolicy(request.policy());
  if (!policy.ok()) return Annotate(policy.status(), "policy");
  ResourceNames names = cluster.resource_names();
  ResourceReader resources(&names);
  PodDecoder decoder(&resources);
  absl::StatusOr<PodShape> pod = decoder.DecodeAsked(request.pod());
  if (!pod.ok()) return Annotate(pod.status(), "pod", " ");
  absl::StatusOr<std::vector<Slot>> candidates = DecodeCandidates(request.slots(), cluster);
  if (!candidates.ok()) return candidates.status();

  if (policy->blockers_together > 0) {  // budgets select pods by labels
    SelectLabels(decoder.labels(), view->view().label_keys(), &*pod);
  }
  std::shared_ptr<const ExpectedUse> profiles = (*view)->Expected(view->view(), policy->expected_use);
  PolicyColumns::Lease columns = (*view)->Columns(view->view(), *policy, std::move(profiles));
  ScoreQuestion question{*std::move(view), std::move(columns), std::move(names),
                         *std::move(pod),  PodResources(),     *std::move(candidates)};
  if constexpr (std::is_same_v<Request, v1::ExplainRequest>) question.resources = decoder.resources();
  return question;
}

// The raw scores of the candidates, and what makes scores of them.
void PutRawScores(const ScoreQuestion& question, v1::ScoreResponse* response) {
  const LimitPolicy& policy = question.columns->policy();
  RawScores raw = ScoreRaw(*question.columns, question.view.view().cluster(), question.pod,
                           question.candidates, &question.names);
  v1::RawScale& scale = *response->mutable_scale();
  switch (policy.normalization) {
    case Normalization::kAbsolute: {
      std::vector<int32_t> scores;
      Normalize(policy, raw, &scores);
      raw.values.assign(scores.begin(), scores.end());
      scale.set_kind(v1::RawScale::SCORES);
      break;
    }
    case Normalization::kMinMax:
      scale.set_kind(policy.arithmetic == Arithmetic::kFixedPoint ? v1::RawScale::MIN_MAX_FIXED_POINT
                                                                  : v1::RawScale::MIN_MAX_TRUNCATING);
      scale.set_equal_below(EqualBelow(policy, raw));
      break;
  }
  response->mutable_raw_scores()->Add(raw.values.begin(), raw.values.end());
}

// Nodes explained at a time: an answer that would be too large is given up early.
constexpr size_t kNodesAtOnce = 4096;

absl::Status ExplainCandidates(const ScoreQuestion& question, std::span<const size_t> explained,
                               v1::ExplainResponse* response) {
  const ClusterState& cluster = question.view.view().cluster();
  size_t bytes = response->ByteSizeLong();
  for (size_t begin = 0; begin < explained.size(); begin += kNodesAtOnce) {
    const std::span<const size_t> part =
        explained.subspan(begin, std::min(kNodesAtOnce, explained.size() - begin));
    for (const NodeExplanation& node :
         ExplainNodes(*question.columns, cluster, question.pod, question.candidates, part, &question.names)) {
      v1::NodeExplanation* const message = response->add_nodes();
      *message = EncodeExplanation(node, cluster.name(node.slot), question.columns->policy());
      bytes += message->ByteSizeLong() + kEntryOverhead;
      if (bytes > kMaxMessageBytes) {
        return absl::ResourceExhaustedError(absl::StrCat("the answer for ", explained.size(),
                                                         " nodes outgrows ", kMaxMessageBytes,
                                                         " bytes; name fewer explain_slots"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ScoreResponse> AnswerScore(const v1::ScoreRequest& request, const Deadline& deadline,
                                              Views* views) {
  const absl::StatusOr<ScoreQuestion> question = PrepareScore(request, deadline, views);
  if (!question.ok()) return question.status();
  v1::ScoreResponse response;
  if (request.raw()) {
    PutRawScores(*question, &response);
  } else {
    std::vector<int32_t> scores;
    ScoreNodes(*question->columns, question->view.view().cluster(), question->pod, question->candidates,
               &scores, &question->names);
    response.mutable_scores()->Add(scores.begin(), scores.end());
  }
  if (request.slots().empty()) {
    response.mutable_slots()->Reserve(static_cast<int>(question->candidates.size()));
    for (const Slot slot : question->candidates) response.add_slots(static_cast<int32_t>(slot));
  }
  return response;
}

absl::StatusOr<v1::ExplainResponse> AnswerExplain(const v1::ExplainRequest& request, const Deadline& deadline,
                                                  Views* views) {
  const absl::StatusOr<ScoreQuestion> question = PrepareScore(request, deadline, views);
  if (!question.ok()) return question.status();
  const ClusterState& cluster = question->view.view().cluster();
  const absl::StatusOr<std::vector<size_t>> explained =
      DecodeExplained(request.explain_slots(), question->candidates, cluster);
  if (!explained.ok()) return explained.status();
  v1::ExplainResponse response;
  *response.mutable_policy() = EncodePolicy(question->columns->policy(), request.policy().preset());
  *response.mutable_pod_requests() = EncodeAmounts(question->pod.requests, question->names);
  *response.mutable_pod_limits() = EncodeAmounts(question->pod.limits, question->names);
  response.set_best_effort(question->pod.best_effort);
  const DrainBlockers* const blockers = question->columns->blockers();
  response.set_pod_blocks_drains(blockers != nullptr && blockers->Blocks(question->pod));
  *response.mutable_unlimited_containers() =
      EncodeUnlimitedContainers(question->resources, question->names, question->columns->policy());
  if (absl::Status status = ExplainCandidates(*question, *explained, &response); !status.ok()) return status;
  return response;
}

}  // namespace loadline
