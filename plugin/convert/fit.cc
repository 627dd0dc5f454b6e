#include "plugin/convert/fit.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/fit_options.h"
#include "plugin/convert/node.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/pod_rules.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Reasons name claims and other objects of tenants.
constexpr size_t kMaxReasonLength = 512;
constexpr int32_t kMaxSlot = (1 << 18) - 1;

absl::StatusOr<DecodedMove> DecodeMove(const v1::Move& message, PodDecoder* pods, NodeDecoder* nodes) {
  DecodedMove move{&message, {}, {}, {}, {}, {}};
  if (message.move_case() == v1::Move::MOVE_NOT_SET) return Refused("states no move");
  if (message.has_place_pod()) {
    const v1::PlacePod& place = message.place_pod();
    move.name = place.name();
    move.uid = place.uid();
    if (place.content_case() == v1::PlacePod::CONTENT_NOT_SET)
      return Refused("place_pod: has neither pod nor shape");
    if (place.has_pod()) {
      move.pod = pods->DecodeBound(place.pod());
      move.labels = pods->labels();
      move.name = pods->name();
      move.uid = pods->uid();
    }
  }
  if (message.has_add_node()) {
    absl::StatusOr<DecodedNode> node = nodes->Decode(message.add_node().node());
    if (!node.ok()) return Annotate(node.status(), "add_node.node", " ");
    const int32_t slot = message.add_node().slot();
    if (slot < 0 || slot > kMaxSlot) {
      return Refused(absl::StrCat("add_node: slot ", slot, " is not in [0, ", kMaxSlot, "]"));
    }
    move.node = {std::move(node->name), std::move(node->shape), std::move(node->hostname), Slot{slot}};
  }
  return move;
}

absl::StatusOr<NodeIndex> NodeIn(const Snapshot& snapshot, int32_t slot) {
  const std::optional<NodeIndex> node = snapshot.FindSlot(Slot{slot});
  if (!node.has_value()) return Refused(absl::StrCat("slot ", slot, " holds no node"));
  return *node;
}

absl::Status Place(const DecodedMove& move, const View& view, Snapshot* snapshot) {
  const v1::PlacePod& place = move.message->place_pod();
  const absl::StatusOr<NodeIndex> node = NodeIn(*snapshot, place.slot());
  if (!node.ok()) return node.status();
  if (place.has_shape()) {
    const std::optional<int32_t> shape = view.ShapeOf(place.shape());
    if (!shape.has_value()) return Refused(absl::StrCat("pod shape ", place.shape(), " was never sent"));
    if (!view.cluster().pod_shapes()[*shape].finished) {
      snapshot->PlacePod(*node, snapshot->ShapeOf(*shape), move.name, move.uid);
    }
    return absl::OkStatus();
  }
  if (move.pod.finished) return absl::OkStatus();  // holds nothing
  PodShape shape = move.pod;
  SelectLabels(move.labels, view.label_keys(), &shape);
  snapshot->PlacePod(*node, snapshot->InternShape(shape), move.name, move.uid);
  return absl::OkStatus();
}

bool Names(const v1::RemovePod& remove, absl::string_view namespace_name, absl::string_view name,
           absl::string_view uid) {
  if (!remove.uid().empty()) return uid == remove.uid();
  return name == remove.name() && namespace_name == remove.namespace_();
}

// Returns whether the pod is one that is finished: it is on its node, but uses nothing and is not in the
// snapshot.
bool IsFinished(const v1::RemovePod& remove, const std::vector<DecodedMove>& moves,
                const ClusterState& cluster) {
  for (const DecodedMove& move : moves) {
    if (!move.pod.finished || move.message->place_pod().slot() != remove.slot()) continue;
    if (Names(remove, move.pod.namespace_name, move.name, move.uid)) return true;
  }
  const Slot slot{remove.slot()};
  if (!cluster.Occupied(slot)) return false;
  const NodePods& pods = cluster.pods(slot);
  for (size_t i = 0; i < pods.pods().size(); ++i) {
    const PodShape& shape = cluster.pod_shapes()[pods.pods()[i].shape];
    if (shape.finished && Names(remove, shape.namespace_name, pods.name(i), pods.uid(i))) return true;
  }
  return false;
}

absl::Status Remove(const v1::RemovePod& remove, const std::vector<DecodedMove>& moves, Snapshot* snapshot) {
  const absl::StatusOr<NodeIndex> node = NodeIn(*snapshot, remove.slot());
  if (!node.ok()) return node.status();
  const std::span<const SnapshotPod> pods = snapshot->pods(*node);
  const auto found = std::find_if(pods.begin(), pods.end(), [&](const SnapshotPod& pod) {
    return Names(remove, snapshot->pod_shape(pod.shape).namespace_name, pod.name, pod.uid);
  });
  if (found != pods.end()) {
    snapshot->RemovePod(*node, static_cast<size_t>(found - pods.begin()));
    return absl::OkStatus();
  }
  if (IsFinished(remove, moves, snapshot->state())) return absl::OkStatus();
  return Refused(absl::StrCat("node ", Quoted(snapshot->name(*node)), " has no pod ",
                              Quoted(remove.uid().empty() ? remove.name() : remove.uid())));
}

absl::Status ApplyMove(const DecodedMove& move, const std::vector<DecodedMove>& moves, const View& view,
                       Snapshot* snapshot) {
  const v1::Move& message = *move.message;
  switch (message.move_case()) {
    case v1::Move::kPlacePod:
      return Place(move, view, snapshot);
    case v1::Move::kRemovePod:
      return Remove(message.remove_pod(), moves, snapshot);
    case v1::Move::kAddNode:
      if (snapshot->FindSlot(move.node.slot).has_value()) {
        return Refused(absl::StrCat("slot ", message.add_node().slot(), " holds a node"));
      }
      snapshot->AddNode(move.node);
      return absl::OkStatus();
    case v1::Move::kRemoveNode: {
      const absl::StatusOr<NodeIndex> node = NodeIn(*snapshot, message.remove_node().slot());
      if (!node.ok()) return node.status();
      message.remove_node().ghost() ? snapshot->CloseNode(*node) : snapshot->RemoveNode(*node);
      return absl::OkStatus();
    }
    case v1::Move::kFork:
      snapshot->Fork();
      return absl::OkStatus();
    // The lowest level is the question's own.
    case v1::Move::kCommit:
      if (snapshot->depth() > 1 && snapshot->Commit()) return absl::OkStatus();
      return Refused("commit: there is no fork to commit");
    case v1::Move::kRevert:
      if (snapshot->depth() > 1 && snapshot->Revert()) return absl::OkStatus();
      return Refused("revert: there is no fork to revert");
    case v1::Move::MOVE_NOT_SET:
      break;
  }
  return Refused("states no move");
}

}  // namespace

v1::VerdictGroup EncodeVerdict(const Verdict& verdict) {
  v1::VerdictGroup group;
  switch (verdict.judgement) {
    case Judgement::kFits:
      group.set_verdict(v1::VerdictGroup::FITS);
      break;
    case Judgement::kDoesNotFit:
      group.set_verdict(v1::VerdictGroup::DOES_NOT_FIT);
      break;
    case Judgement::kCannotJudge:
      group.set_verdict(v1::VerdictGroup::CANNOT_JUDGE);
      break;
  }
  // The values of both enums are in the order of the filters.
  static_assert(static_cast<int>(FilterName::kLoadLine) == v1::VerdictGroup::LOAD_LINE);
  static_assert(static_cast<int>(StatusClass::kUnschedulableAndUnresolvable) ==
                v1::VerdictGroup::UNSCHEDULABLE_AND_UNRESOLVABLE);
  group.set_filter(static_cast<v1::VerdictGroup::Filter>(verdict.filter));
  group.set_status_class(static_cast<v1::VerdictGroup::StatusClass>(verdict.status_class));
  for (const std::string& reason : verdict.reasons) group.add_reasons(Printable(reason, kMaxReasonLength));
  group.set_before_nodes(verdict.before_nodes);
  return group;
}

absl::StatusOr<DecodedPod> DecodeIncomingPod(const v1::IncomingPod& message, const v1::FitOptions& options,
                                             PodDecoder* decoder) {
  absl::StatusOr<PodShape> shape = decoder->DecodeAsked(message.pod());
  if (!shape.ok()) return Annotate(shape.status(), "pod", " ");
  DecodedPod decoded;
  decoded.pod.shape = *std::move(shape);
  decoded.pod.name = decoder->name();
  decoded.pod.uid = decoder->uid();
  decoded.labels = decoder->labels();
  decoded.scheduler = Printable(decoder->message().spec().scheduler_name());
  absl::Status status = ReadDefaultSpread(message, options, decoder->message().spec().scheduler_name(),
                                          decoded.labels, &decoded.pod);
  if (!status.ok()) return status;
  return decoded;
}

absl::StatusOr<std::vector<DecodedMove>> DecodeMoves(const v1::FitRequest& request,
                                                     ResourceReader* resources) {
  if (absl::Status status = CheckEntries(request.moves_size(), "moves", kMaxMoves); !status.ok())
    return status;
  PodDecoder pods(resources);
  NodeDecoder nodes(resources);
  std::vector<DecodedMove> moves;
  for (int i = 0; i < request.moves_size(); ++i) {
    absl::StatusOr<DecodedMove> move = DecodeMove(request.moves(i), &pods, &nodes);
    if (!move.ok()) return Annotate(move.status(), absl::StrCat("moves[", i, "]"));
    moves.push_back(*std::move(move));
  }
  return moves;
}

SelectorKeys SelectorKeysOf(const IncomingPod& pod) {
  SelectorKeys wish{pod.shape.namespace_name, {}};
  if (pod.shape.rules != nullptr) pod.shape.rules->AddLabelKeys(&wish.keys);
  if (!pod.default_spread.empty()) {
    PodRules defaults;
    defaults.spread = pod.default_spread;
    defaults.AddLabelKeys(&wish.keys);
  }
  return wish;
}

void SelectLabels(View* view, std::vector<DecodedPod>* pods, std::vector<DecodedMove>* moves,
                  LeftOutList* left_out) {
  std::vector<SelectorKeys> wishes;
  for (const DecodedPod& pod : *pods) wishes.push_back(SelectorKeysOf(pod.pod));
  for (const DecodedMove& move : *moves) {
    SelectorKeys& wish = wishes.emplace_back();
    wish.namespace_name = move.pod.namespace_name;
    if (move.pod.rules != nullptr) move.pod.rules->AddLabelKeys(&wish.keys);
  }
  const std::vector<bool> admitted = view->SelectLabelKeys(wishes);
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (admitted[i]) continue;
    const bool asked = i < pods->size();
    const std::string& name = asked ? (*pods)[i].pod.name : (*moves)[i - pods->size()].name;
    left_out->Add("Pod", wishes[i].namespace_name, name, kTooManyLabelKeys);
    if (asked) {
      (*pods)[i].unreadable = kTooManyLabelKeys;
    } else {
      LeaveOutSelectors(kTooManyLabelKeys, &(*moves)[i - pods->size()].pod);
    }
  }
}

absl::Status ApplyMoves(const std::vector<DecodedMove>& moves, const View& view, Snapshot* snapshot) {
  for (size_t i = 0; i < moves.size(); ++i) {
    if (absl::Status status = ApplyMove(moves[i], moves, view, snapshot); !status.ok()) {
      return Annotate(status, absl::StrCat("moves[", i, "]"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NodeIndex>> DecodeFitCandidates(const v1::FitRequest& request,
                                                           const Snapshot& snapshot) {
  std::vector<NodeIndex> candidates;
  if (request.slots().empty()) {
    for (int32_t i = 0; i < snapshot.node_end(); ++i) {
      if (snapshot.Placeable(NodeIndex{i})) candidates.push_back(NodeIndex{i});
    }
    std::sort(candidates.begin(), candidates.end(),
              [&](NodeIndex a, NodeIndex b) { return snapshot.slot(a) < snapshot.slot(b); });
    return candidates;
  }
  std::vector<bool> seen(static_cast<size_t>(snapshot.node_end()), false);
  for (int i = 0; i < request.slots_size(); ++i) {
    const std::optional<NodeIndex> node = snapshot.FindSlot(Slot{request.slots(i)});
    const auto refuse = [&](absl::string_view reason) {
      return Refused(absl::StrCat("slots[", i, "]: slot ", request.slots(i), " ", reason));
    };
    if (!node.has_value()) return refuse("holds no node");
    if (!snapshot.Placeable(*node)) return refuse("holds a node that was removed");
    if (seen[IndexOf(*node)]) return refuse("is named twice");
    seen[IndexOf(*node)] = true;
    candidates.push_back(*node);
  }
  return candidates;
}

void PodFitGroups::Add(const Verdict& verdict, NodeIndex candidate) {
  const auto [group, is_new] = groups_.try_emplace(
      Key{verdict.judgement, verdict.filter, verdict.status_class, verdict.reasons}, message_.groups_size());
  if (is_new) {
    *message_.add_groups() = EncodeVerdict(verdict);
    bytes_ += message_.groups(group->second).ByteSizeLong() + kEntryOverhead;
  }
  message_.mutable_groups(group->second)->add_slots(static_cast<int32_t>(snapshot_.slot(candidate)));
  bytes_ += sizeof(int32_t);
}

}  // namespace loadline
