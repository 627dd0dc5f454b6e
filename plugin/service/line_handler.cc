#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/score/line_check.h"
#include "loadline/v1/load_line.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/load_line.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/policy.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/line_use.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// The number of moves of a Fit.
constexpr int kMaxArrivals = 100'000;

// The counted limits of the pods that are supposed to arrive, by the slot of their node, as in LineRoom.pods.
// Their shapes are not kept: an empty pod has few bytes on the wire, and hundreds as a shape.
using Arrivals = absl::flat_hash_map<Slot, std::vector<int64_t>>;

// A pod that cannot be read in full counts as it would on the node, and spoils no other one.
absl::StatusOr<Arrivals> DecodeArrivals(const v1::CheckLoadLineRequest& request, const LineCheck& check,
                                        const LoadLine& line, const std::vector<Slot>& candidates,
                                        ResourceReader* resources) {
  Arrivals arrivals;
  if (request.arrivals().empty()) return arrivals;
  if (!request.with_rooms()) return Refused("arrivals: require with_rooms");
  if (absl::Status status = CheckEntries(request.arrivals_size(), "arrivals", kMaxArrivals); !status.ok()) {
    return status;
  }
  const absl::flat_hash_set<Slot> known(candidates.begin(), candidates.end());
  PodDecoder decoder(resources);
  for (int i = 0; i < request.arrivals_size(); ++i) {
    const v1::LineArrival& message = request.arrivals(i);
    const Slot slot{message.slot()};
    if (!known.contains(slot)) {
      return Annotate(Refused(absl::StrCat("slot ", message.slot(), " is no candidate")),
                      absl::StrCat("arrivals[", i, "]"));
    }
    const PodShape pod = decoder.DecodeBound(message.pod());
    std::vector<int64_t>& amounts = arrivals[slot];
    for (size_t r = 0; r < line.lines.size(); ++r) amounts.push_back(check.Count(pod, slot, r));
  }
  return arrivals;
}

void TellNode(const LineCheck& check, const LoadLine& line, Slot slot, absl::string_view name,
              v1::LineNode* node) {
  node->set_slot(static_cast<int32_t>(slot));
  node->set_node(Printable(name));
  for (size_t r = 0; r < line.lines.size(); ++r) {
    if (line.sums.resources[r].hour.has_value()) continue;
    const NodeLoad load = check.Load(slot, r);
    v1::LineAmount* const amount = node->add_resources();
    amount->set_resource(std::string(LineResourceName(line.sums.resources[r].id)));
    amount->set_max_limits_over_allocatable(LineText(load.line));
    amount->set_allocatable(load.allocatable);
    amount->set_limits(load.limits);
    amount->set_ceiling(load.ceiling);
  }
}

// The nodes that refuse a pod, those with the same reasons together.
class Refusals {
 public:
  explicit Refusals(v1::CheckLoadLineResponse* response) : response_(*response) {}

  // Returns the bytes that it takes.
  size_t Add(LineVerdict verdict, Slot slot) {
    size_t bytes = kEntryOverhead;
    const auto [at, is_new] =
        known_.try_emplace({std::move(verdict.reasons), verdict.unresolvable}, response_.refusals_size());
    if (is_new) {
      v1::LineRefusal* const refusal = response_.add_refusals();
      for (const std::string& reason : at->first.first) refusal->add_reasons(reason);
      refusal->set_unresolvable(verdict.unresolvable);
      bytes += refusal->ByteSizeLong() + kEntryOverhead;
    }
    response_.mutable_refusals(at->second)->add_slots(static_cast<int32_t>(slot));
    return bytes;
  }

 private:
  v1::CheckLoadLineResponse& response_;
  std::map<std::pair<std::vector<std::string>, bool>, int> known_;
};

// The rooms of nodes, and the reasons that they refer to.
class Rooms {
 public:
  Rooms(const LineCheck* check, const LoadLine* line, const ClusterState* cluster, const Arrivals* arrivals,
        v1::CheckLoadLineResponse* response)
      : check_(*check), line_(*line), cluster_(*cluster), arrivals_(*arrivals), response_(*response) {}

  // Returns the bytes that it takes.
  size_t Add(Slot slot, const LineCheck::Pod& pod, bool with_pods) {
    size_t bytes = kEntryOverhead;
    v1::LineRoom* const room = response_.add_rooms();
    room->set_slot(static_cast<int32_t>(slot));
    for (size_t r = 0; r < line_.lines.size(); ++r) {
      room->add_room(check_.Room(pod, slot, r));
      const std::string reason = check_.Reason(slot, r);
      const auto [at, is_new] = reasons_.try_emplace(reason, response_.reasons_size());
      if (is_new) {
        response_.add_reasons(reason);
        bytes += reason.size() + kEntryOverhead;
      }
      room->add_reasons(at->second);
    }
    if (with_pods) {
      for (const NodePods::Pod& there : cluster_.pods(slot).pods()) {
        const PodShape& shape = cluster_.pod_shapes()[there.shape];
        for (size_t r = 0; r < line_.lines.size(); ++r) room->add_pods(check_.Count(shape, slot, r));
      }
    }
    if (const auto arrivals = arrivals_.find(slot); arrivals != arrivals_.end()) {
      room->mutable_pods()->Add(arrivals->second.begin(), arrivals->second.end());
    }
    return bytes + room->ByteSizeLong();
  }

 private:
  const LineCheck& check_;
  const LoadLine& line_;
  const ClusterState& cluster_;
  const Arrivals& arrivals_;
  v1::CheckLoadLineResponse& response_;
  absl::flat_hash_map<std::string, int32_t> reasons_;
};

absl::Status Answer(const v1::CheckLoadLineRequest& request, const LineCheck& check, const LoadLine& line,
                    const std::optional<LineCheck::Pod>& pod, const std::vector<Slot>& candidates,
                    const Arrivals& arrivals, const ClusterState& cluster, LineUse* use,
                    v1::CheckLoadLineResponse* response) {
  Refusals refusals(response);
  Rooms rooms(&check, &line, &cluster, &arrivals, response);
  int32_t above = 0;
  size_t bytes = 0;
  for (const Slot slot : candidates) {
    above += check.Above(slot) ? 1 : 0;
    if (pod.has_value() && !check.Keeps(*pod, slot)) {
      bytes += refusals.Add(check.Explain(*pod, slot), slot);
    }
    if (request.with_nodes()) {
      v1::LineNode* const node = response->add_nodes();
      TellNode(check, line, slot, cluster.name(slot), node);
      if (request.with_use()) use->Tell(slot, node);
      bytes += node->ByteSizeLong() + kEntryOverhead;
    }
    if (request.with_rooms()) bytes += rooms.Add(slot, *pod, request.with_pods());
    if (bytes > kMaxMessageBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the answer for ", candidates.size(),
                                                       " nodes outgrows ", kMaxMessageBytes,
                                                       " bytes; name fewer slots"));
    }
  }
  response->set_nodes_above(above);
  if (request.with_use()) {
    use->TellHours(response);
    use->TellSafeLines(response);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CheckLoadLineResponse> AnswerCheckLoadLine(const v1::CheckLoadLineRequest& request,
                                                              const Deadline& deadline, Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: required");
  if (request.line().resources().empty())
    return absl::InvalidArgumentError("line: required, with a resource");
  absl::StatusOr<ReadView> view = ReadChanges(request.changes(), deadline, views);
  if (!view.ok()) return view.status();
  const ClusterState& cluster = view->view().cluster();
  absl::StatusOr<DecodedLoadLine> decoded = DecodeLoadLine(request.line());
  if (!decoded.ok()) return Annotate(decoded.status(), "line");
  (*view)->UseProfiles(view->view(), &decoded->line);
  const absl::StatusOr<std::vector<Slot>> candidates = DecodeCandidates(request.slots(), cluster);
  if (!candidates.ok()) return candidates.status();

  const PolicyColumns::Lease columns =
      (*view)->Columns(view->view(), decoded->columns, decoded->line.sums.expected);
  const std::vector<size_t> positions = ColumnsOfLine(decoded->line, decoded->columns);
  const LineCheck check(&decoded->line, columns.get(), positions, &cluster);
  ResourceNames names = cluster.resource_names();
  ResourceReader resources(&names, {.resize_rule = view->view().resize_rule()});
  const absl::StatusOr<Arrivals> arrivals =
      DecodeArrivals(request, check, decoded->line, *candidates, &resources);
  if (!arrivals.ok()) return arrivals.status();
  std::optional<LineCheck::Pod> pod;
  if (!request.pod().empty()) {
    PodDecoder decoder(&resources);
    const absl::StatusOr<PodShape> shape = decoder.DecodeAsked(request.pod());
    if (!shape.ok()) return Annotate(shape.status(), "pod", " ");
    pod = check.MakePod(*shape);
  }
  if (request.with_rooms() && !pod.has_value()) return Refused("pod: required with with_rooms");
  if (request.with_use() && !request.with_nodes()) return Refused("with_use: requires with_nodes");
  v1::CheckLoadLineResponse response;
  LineUse use(&decoded->line, columns.get(), positions, &cluster);
  absl::Status status =
      Answer(request, check, decoded->line, pod, *candidates, *arrivals, cluster, &use, &response);
  if (!status.ok()) return status;
  if (request.with_counting()) {
    *response.mutable_counting() = EncodePolicy(decoded->columns, v1::ScorePolicy::STRICT);
  }
  return response;
}

}  // namespace loadline
