#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/score/line_check.h"
#include "loadline/v1/load_line.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fit.h"
#include "plugin/convert/load_line.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

absl::Status MakeMoves(const v1::CheckLoadLineRequest& request, const ClusterState& cluster,
                       ResourceReader* resources, LineCheck* check) {
  if (absl::Status status = CheckEntries(request.moves_size(), "moves", kMaxMoves); !status.ok())
    return status;
  PodDecoder decoder(resources);
  for (int i = 0; i < request.moves_size(); ++i) {
    const v1::LineMove& message = request.moves(i);
    const auto refuse = [&](const absl::Status& status) {
      return Annotate(status, absl::StrCat("moves[", i, "]"));
    };
    const Slot slot{message.slot()};
    if (message.slot() < 0 || message.slot() >= cluster.slot_end() || !cluster.Occupied(slot)) {
      return refuse(Refused(absl::StrCat("slot ", message.slot(), " holds no node")));
    }
    absl::StatusOr<PodShape> pod =
        decoder.Decode(message.pod(), message.removed() ? PodRole::kExisting : PodRole::kIncoming);
    if (!pod.ok()) return refuse(Annotate(pod.status(), "pod", " "));
    if (!check->Move({slot, *std::move(pod), message.removed()})) {
      return refuse(Refused(absl::StrCat("more would leave slot ", message.slot(), " than is there")));
    }
  }
  return absl::OkStatus();
}

void TellNode(const LineCheck& check, const LoadLine& line, Slot slot, absl::string_view name,
              v1::LineNode* node) {
  node->set_slot(static_cast<int32_t>(slot));
  node->set_node(Printable(name));
  for (size_t r = 0; r < line.lines.size(); ++r) {
    const NodeLoad load = check.Load(slot, r);
    v1::LineAmount* const amount = node->add_resources();
    amount->set_resource(std::string(LineResourceName(line.sums.resources[r].id)));
    amount->set_max_limits_over_allocatable(LineText(load.line));
    amount->set_allocatable(load.allocatable);
    amount->set_limits(load.limits);
    amount->set_ceiling(load.ceiling);
  }
}

// Those with the same reasons together.
class Refusals {
 public:
  explicit Refusals(v1::CheckLoadLineResponse* response) : response_(*response) {}

  void Add(LineVerdict verdict, Slot slot) {
    const auto [at, is_new] =
        known_.try_emplace({std::move(verdict.reasons), verdict.unresolvable}, response_.refusals_size());
    if (is_new) {
      v1::LineRefusal* const refusal = response_.add_refusals();
      for (const std::string& reason : at->first.first) refusal->add_reasons(reason);
      refusal->set_unresolvable(verdict.unresolvable);
    }
    response_.mutable_refusals(at->second)->add_slots(static_cast<int32_t>(slot));
  }

 private:
  v1::CheckLoadLineResponse& response_;
  std::map<std::pair<std::vector<std::string>, bool>, int> known_;
};

absl::Status Answer(const LineCheck& check, const LoadLine& line, const std::optional<LineCheck::Pod>& pod,
                    const std::vector<Slot>& candidates, const ClusterState& cluster, bool with_nodes,
                    v1::CheckLoadLineResponse* response) {
  Refusals refusals(response);
  int32_t above = 0;
  size_t bytes = 0;
  for (const Slot slot : candidates) {
    above += check.Above(slot) ? 1 : 0;
    if (pod.has_value() && !check.Keeps(*pod, slot)) {
      refusals.Add(check.Explain(*pod, slot), slot);
      bytes += kEntryOverhead;
    }
    if (with_nodes) {
      v1::LineNode* const node = response->add_nodes();
      TellNode(check, line, slot, cluster.name(slot), node);
      bytes += node->ByteSizeLong() + kEntryOverhead;
    }
    if (bytes > kMaxMessageBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the answer for ", candidates.size(),
                                                       " nodes outgrows ", kMaxMessageBytes,
                                                       " bytes; name fewer slots"));
    }
  }
  response->set_nodes_above(above);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CheckLoadLineResponse> AnswerCheckLoadLine(const v1::CheckLoadLineRequest& request,
                                                              const Deadline& deadline, Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: required");
  if (request.line().resources().empty())
    return absl::InvalidArgumentError("line: required, with a resource");
  absl::StatusOr<LockedView> view = ApplyChanges(request.changes(), deadline, views);
  if (!view.ok()) return view.status();
  const ClusterState& cluster = (*view)->view.cluster();
  const absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(request.line());
  if (!decoded.ok()) return Annotate(decoded.status(), "line");
  const absl::StatusOr<std::vector<Slot>> candidates = DecodeCandidates(request.slots(), cluster);
  if (!candidates.ok()) return candidates.status();

  LineCheck check(&decoded->line, &(*view)->columns.For(decoded->columns, cluster),
                  ColumnsOfLine(decoded->line, decoded->columns), &cluster);
  ResourceNames names = cluster.resource_names();
  ResourceReader resources(&names, {.resize_rule = (*view)->view.resize_rule()});
  if (absl::Status status = MakeMoves(request, cluster, &resources, &check); !status.ok()) return status;
  std::optional<LineCheck::Pod> pod;
  if (!request.pod().empty()) {
    PodDecoder decoder(&resources);
    const absl::StatusOr<PodShape> shape = decoder.Decode(request.pod(), PodRole::kIncoming);
    if (!shape.ok()) return Annotate(shape.status(), "pod", " ");
    pod = check.MakePod(*shape);
  }
  v1::CheckLoadLineResponse response;
  absl::Status status =
      Answer(check, decoded->line, pod, *candidates, cluster, request.with_nodes(), &response);
  if (!status.ok()) return status;
  return response;
}

}  // namespace loadline
