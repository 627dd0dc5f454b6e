#include "plugin/convert/drain_state.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/drain/drain_progress.h"
#include "core/drain/node_reason.h"
#include "plugin/convert/drain_pod.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

template <typename Hints>
std::vector<DestinationHint> DecodeHints(const Hints& messages) {
  std::vector<DestinationHint> hints;
  for (const v1::DestinationHint& hint : messages) hints.push_back({hint.pod(), hint.node()});
  return hints;
}

template <typename Message>
void EncodeHints(const std::vector<DestinationHint>& hints, Message* message) {
  for (const DestinationHint& hint : hints) {
    v1::DestinationHint* const entry = message->add_hints();
    entry->set_pod(hint.pod);
    entry->set_node(hint.node);
  }
}

// Adds an eviction to a state. One that asks for what the cluster does not have could not be placed anyway.
void AddEviction(const v1::EvictedPod& message, const std::string& field, const ReadOptions& read, View* view,
                 DecodedDrainState* state) {
  absl::StatusOr<DrainPod> pod = ReadDrainPod(message.pod(), view, read);
  if (!pod.ok()) {
    k8s::v1::ObjectMeta metadata;
    ReadName(message.pod(), &metadata);
    state->left_out.Add("Pod", metadata.namespace_(), metadata.name().empty() ? field : metadata.name(),
                        pod.status().message());
    return;
  }
  if (!pod->unknown_resource.empty()) return;
  state->state.recent_evictions.push_back(
      {std::move(pod->shape), pod->name, pod->uid, message.node(), message.at_s(), pod->names});
  state->evicted.push_back(message);
}

// Returns what distinguishes an eviction from others: a pod with a UID is evicted once.
std::string KeyOf(const RecentEviction& eviction) {
  if (!eviction.uid.empty()) return absl::StrCat("uid/", eviction.uid);
  return absl::StrCat("name/", eviction.shape.namespace_name, "/", eviction.name, "/", eviction.node, "/",
                      eviction.at_s);
}

// Removes those of `state` from position `first` on that it has before: progress that is reported twice
// counts once.
void RemoveRepeats(size_t first, DecodedDrainState* state) {
  absl::flat_hash_set<std::string> known;
  size_t kept = 0;
  std::vector<RecentEviction>& evictions = state->state.recent_evictions;
  for (size_t i = 0; i < evictions.size(); ++i) {
    if (!known.insert(KeyOf(evictions[i])).second && i >= first) continue;
    if (kept != i) {
      evictions[kept] = std::move(evictions[i]);
      state->evicted[kept] = std::move(state->evicted[i]);
    }
    ++kept;
  }
  evictions.resize(kept);
  state->evicted.resize(kept);
}

absl::Status CheckTimes(const v1::DrainState& message) {
  Fields fields;
  const auto check = [&](absl::string_view field, const auto& entries) {
    fields.Keep(CheckSize(field, entries.size(), kMaxDrainStateNodes));
    for (int i = 0; i < entries.size(); ++i) {
      fields.Range(absl::StrCat(field, "[", i, "].since_s"), entries[i].since_s(), 0, kMaxDrainTime);
    }
  };
  check("unneeded", message.unneeded());
  check("deleting", message.deleting());
  check("failed", message.failed());
  fields.Keep(CheckSize("recent_evictions", message.recent_evictions_size(), kMaxEvictedPods));
  for (int i = 0; i < message.recent_evictions_size(); ++i) {
    fields.Range(absl::StrCat("recent_evictions[", i, "].at_s"), message.recent_evictions(i).at_s(), 0,
                 kMaxDrainTime);
  }
  fields.Range("at_s", message.at_s(), 0, kMaxDrainTime);
  fields.Range("nodes", message.nodes(), 0, INT32_MAX);
  fields.Keep(CheckSize("pods", message.pods_size(), kMaxDrainStateOwners));
  for (int i = 0; i < message.pods_size(); ++i) {
    const v1::OwnerPods& pods = message.pods(i);
    fields.Range(absl::StrCat("pods[", i, "].pods"), pods.pods(), 0, INT32_MAX);
    fields.Range(absl::StrCat("pods[", i, "].finished"), pods.finished(), 0, INT32_MAX);
    if (i > 0 && message.pods(i - 1).owner() >= pods.owner()) {
      fields.Refuse(absl::StrCat("pods[", i, "].owner is not above that of the entry before"));
    }
    if (pods.kind() == v1::OBJECT_KIND_UNSPECIFIED) continue;
    if (const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(pods.kind()); !kind.ok()) {
      fields.Keep(Annotate(kind.status(), absl::StrCat("pods[", i, "].kind")));
    }
  }
  return fields.status();
}

}  // namespace

absl::StatusOr<DecodedDrainState> DecodeDrainState(const v1::DrainState& message, const ReadOptions& read,
                                                   View* view) {
  if (absl::Status status = CheckTimes(message); !status.ok()) return status;
  DecodedDrainState decoded;
  DrainState& state = decoded.state;
  for (const v1::UnneededNode& node : message.unneeded()) {
    state.unneeded.push_back(
        {node.node(), node.uid(), node.since_s(), DecodeHints(node.hints()), node.risky(), node.start()});
  }
  for (const v1::DeletingNode& node : message.deleting()) {
    state.deleting.push_back({node.node(), node.uid(), node.since_s(), node.drain(),
                              DecodeHints(node.hints()), node.risky(), node.left_out()});
  }
  for (const v1::FailedNode& node : message.failed()) {
    state.failed.push_back({node.node(), node.uid(),
                            NodeReasonNamed(node.reason()).value_or(NodeReason::kNone), node.pod(),
                            node.since_s()});
  }
  for (int i = 0; i < message.recent_evictions_size(); ++i) {
    AddEviction(message.recent_evictions(i), absl::StrCat("recent_evictions[", i, "]"), read, view, &decoded);
  }
  state.resume_at = message.resume_at();
  if (message.has_at_s()) state.at_s = message.at_s();
  if (message.has_nodes()) state.nodes = message.nodes();
  for (const v1::OwnerPods& pods : message.pods()) {
    OwnerPods& count = state.pods.emplace_back();
    count.owner = pods.owner();
    if (pods.kind() != v1::OBJECT_KIND_UNSPECIFIED) count.kind = *DecodeObjectKind(pods.kind());
    count.pods = pods.pods();
    count.finished = pods.finished();
  }
  return decoded;
}

v1::DrainState EncodeDrainState(const DrainState& state, const std::vector<v1::EvictedPod>& evicted) {
  v1::DrainState message;
  for (const UnneededNode& node : state.unneeded) {
    v1::UnneededNode* const entry = message.add_unneeded();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_since_s(node.since_s);
    entry->set_risky(node.risky);
    entry->set_start(node.start);
    EncodeHints(node.hints, entry);
  }
  for (const DeletingNode& node : state.deleting) {
    v1::DeletingNode* const entry = message.add_deleting();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_since_s(node.since_s);
    entry->set_drain(node.drain);
    entry->set_risky(node.risky);
    entry->set_left_out(node.left_out);
    EncodeHints(node.hints, entry);
  }
  for (const FailedNode& node : state.failed) {
    v1::FailedNode* const entry = message.add_failed();
    entry->set_node(node.node);
    entry->set_uid(node.uid);
    entry->set_reason(std::string(Name(node.reason)));
    entry->set_pod(node.pod);
    entry->set_since_s(node.since_s);
  }
  message.mutable_recent_evictions()->Add(evicted.begin(), evicted.end());
  message.set_resume_at(state.resume_at);
  if (state.at_s >= 0) message.set_at_s(state.at_s);
  if (state.nodes >= 0) message.set_nodes(state.nodes);
  for (const OwnerPods& count : state.pods) {
    v1::OwnerPods* const pods = message.add_pods();
    pods->set_owner(count.owner);
    if (count.kind.has_value()) pods->set_kind(EncodeObjectKind(*count.kind));
    pods->set_pods(count.pods);
    pods->set_finished(count.finished);
  }
  return message;
}

bool TellsMore(const v1::DrainProgress& message, const ClusterState& cluster, const DrainState& state) {
  const auto is_deleting = [&](const std::string& name) { return IsDeleting(state, name); };
  return message.evicted_size() > 0 || absl::c_any_of(message.failed(), is_deleting) ||
         absl::c_any_of(message.started(), [&](const std::string& name) {
           return cluster.Find(name).has_value() && !is_deleting(name);
         });
}

absl::Status ApplyDrainProgress(const v1::DrainProgress& message, int64_t now_s, const ReadOptions& read,
                                View* view, DecodedDrainState* state) {
  if (absl::Status status = CheckSize("evicted", message.evicted_size(), kMaxEvictedPods); !status.ok()) {
    return status;
  }
  for (const std::string& name : message.started()) NoteStarted(name, now_s, view->cluster(), &state->state);
  for (const std::string& name : message.failed()) NoteFailed(name, &state->state);
  const size_t known = state->evicted.size();
  for (int i = 0; i < message.evicted_size(); ++i) {
    const std::string field = absl::StrCat("evicted[", i, "]");
    if (absl::Status status = CheckBounded("at_s", message.evicted(i).at_s(), kMaxDrainTime); !status.ok()) {
      return Annotate(status, field);
    }
    AddEviction(message.evicted(i), field, read, view, state);
  }
  RemoveRepeats(known, state);
  return absl::OkStatus();
}

void ReadEvictionsAgain(const ReadOptions& read, View* view, DecodedDrainState* state) {
  DecodedDrainState again;
  for (const v1::EvictedPod& evicted : state->evicted) {
    AddEviction(evicted, "recent_evictions", read, view, &again);
  }
  state->state.recent_evictions = std::move(again.state.recent_evictions);
  state->evicted = std::move(again.evicted);
}

void ForgetEvictions(int64_t now_s, int64_t kept_s, std::vector<v1::EvictedPod>* evicted) {
  // The clock may have been set back since: an eviction of the future would be kept until then.
  for (v1::EvictedPod& pod : *evicted) pod.set_at_s(std::min(pod.at_s(), now_s));
  std::erase_if(*evicted, [&](const v1::EvictedPod& pod) { return now_s - pod.at_s() >= kept_s; });
}

}  // namespace loadline
