#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fit/pod_fit.h"
#include "loadline/v1/fit.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fit.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// Pods times candidates of one question, each about a microsecond.
constexpr size_t kMaxJudgements = 10'000'000;
// The part of the rest of the budget that one pod may take.
constexpr double kPortionOfPod = 0.5;

struct FitQuestion {
  FitOptions options;
  std::vector<DecodedPod> pods;
  std::vector<DecodedMove> moves;
  ResourceNames names;
  LeftOutList left_out;
};

absl::StatusOr<FitQuestion> DecodeFit(const v1::FitRequest& request, ResourceNames names,
                                      const ReadOptions& read) {
  absl::StatusOr<FitOptions> options = DecodeFitOptions(request.options());
  if (!options.ok()) return Annotate(options.status(), "options");
  if (absl::Status status = CheckSize("pods", request.pods_size(), kMaxIncomingPods); !status.ok()) {
    return status;
  }
  ResourceReader resources(&names, read);
  for (const std::string& name : options->ignored_resources) names.InternForNode(name, read.names);
  absl::StatusOr<std::vector<DecodedMove>> moves = DecodeMoves(request, &resources);
  if (!moves.ok()) return moves.status();
  PodDecoder decoder(&resources);
  std::vector<DecodedPod> pods;
  LeftOutList left_out;
  for (int i = 0; i < request.pods_size(); ++i) {
    absl::StatusOr<DecodedPod> pod = DecodeIncomingPod(request.pods(i), request.options(), &decoder);
    if (!pod.ok()) {
      left_out.Add("Pod", decoder.message().metadata().namespace_(),
                   decoder.name().empty() ? absl::StrCat("pods[", i, "]") : decoder.name(),
                   pod.status().message());
      pods.emplace_back().unreadable = ReasonOf(pod.status());
      continue;
    }
    pods.push_back(*std::move(pod));
  }
  return FitQuestion{*std::move(options), std::move(pods), *std::move(moves), std::move(names),
                     std::move(left_out)};
}

absl::Status TooLarge(const FitQuestion& question) {
  return absl::ResourceExhaustedError(absl::StrCat("the answer for ", question.pods.size(), " pods outgrows ",
                                                   kMaxMessageBytes, " bytes; ask for fewer pods or slots"));
}

// A pod for which the budget does not suffice cannot be judged, on nodes that were not looked at.
absl::StatusOr<v1::PodFit> JudgePod(DecodedPod decoded, const FitQuestion& question, const LabelKeys& keys,
                                    const std::vector<NodeIndex>& candidates, WorkBudget* budget,
                                    Snapshot* snapshot) {
  PodFitGroups groups(snapshot);
  if (!decoded.unreadable.empty()) {
    const Verdict verdict = CannotJudge(FilterName::kNone, decoded.unreadable);
    for (const NodeIndex node : candidates) groups.Add(verdict, node);
    return std::move(groups).Take();
  }
  SelectLabels(decoded.labels, keys, &decoded.pod.shape);
  decoded.pod.names = question.names;
  PodFit fit(snapshot, std::move(decoded.pod), &question.options, budget);
  for (const NodeIndex node : candidates) {
    if (!budget->Spend(fit.UnitsPerNode())) {
      if (budget->end() == BudgetEnd::kOutOfTime) return Deadline::Passed();
      groups.Add(CannotJudge(FilterName::kNone, absl::StrCat("the question is out of ", Name(budget->end()))),
                 node);
      continue;
    }
    // Most nodes fit, and to say so takes no text.
    groups.Add(fit.Fits(node) ? Verdict() : fit.Judge(node), node);
    if (groups.bytes() > kMaxMessageBytes) return TooLarge(question);
  }
  return std::move(groups).Take();
}

absl::StatusOr<v1::FitResponse> JudgePods(const v1::FitRequest& request, const FitQuestion& question,
                                          const View& view, WorkBudget* budget, Snapshot* snapshot) {
  if (absl::Status status = ApplyMoves(question.moves, view, snapshot); !status.ok()) return status;
  const absl::StatusOr<std::vector<NodeIndex>> candidates = DecodeFitCandidates(request, *snapshot);
  if (!candidates.ok()) return candidates.status();
  if (candidates->size() * question.pods.size() > kMaxJudgements) {
    return absl::ResourceExhaustedError(absl::StrCat(question.pods.size(), " pods on ", candidates->size(),
                                                     " nodes are more than ", kMaxJudgements,
                                                     " judgements; ask for fewer at a time"));
  }
  v1::FitResponse response;
  size_t bytes = 0;
  for (const DecodedPod& pod : question.pods) {
    const WorkPortion portion(budget, kPortionOfPod);
    absl::StatusOr<v1::PodFit> fit =
        JudgePod(pod, question, view.label_keys(), *candidates, budget, snapshot);
    if (!fit.ok()) return fit.status();
    bytes += fit->ByteSizeLong() + kEntryOverhead;
    *response.add_pods() = *std::move(fit);
    if (bytes > kMaxMessageBytes) return TooLarge(question);
  }
  return response;
}

}  // namespace

absl::StatusOr<v1::FitResponse> AnswerFit(const v1::FitRequest& request, const Deadline& deadline,
                                          Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: required");
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::OfView(request.changes(), deadline, views);
  if (!cluster.ok()) return cluster.status();
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  absl::StatusOr<FitQuestion> question =
      DecodeFit(request, view.cluster().resource_names(), shared.OptionsOfQuestion(view));
  if (!question.ok()) return question.status();
  shared.UseProfiles(view, &question->options);
  // A batch may be decoded at the same time: this changes nothing that it reads of the view.
  SelectLabels(&view, &question->pods, &question->moves, &question->left_out);
  cluster->Lend();
  UndoUnlessKept undo(&shared, &view);
  Snapshot* const snapshot = undo.snapshot();
  snapshot->Fork();
  WorkBudget budget = FixedBudget(kFitWork, deadline, shared.limits.question_bytes);
  absl::StatusOr<v1::FitResponse> response = JudgePods(request, *question, view, &budget, snapshot);
  if (response.ok()) {
    LeftOutList left_out = question->left_out;
    left_out.Add(shared.LeftOut(view));
    TellLeftOut(left_out, &*response);
  }
  undo.Keep();  // also if the answer is an error: the moves are taken back, and the snapshot is whole
  return response;
}

}  // namespace loadline
