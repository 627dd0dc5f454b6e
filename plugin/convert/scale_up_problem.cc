#include "plugin/convert/scale_up_problem.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fingerprint_index.h"
#include "core/cluster/pod_role.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/node.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/pod_identity.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/startup_taints.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

// Returns whether the name of a pod decides anything.
bool NameMatters(const PodShape& shape) {
  return shape.rules != nullptr &&
         std::any_of(shape.rules->volumes.begin(), shape.rules->volumes.end(),
                     [](const PodVolume& volume) { return volume.kind == VolumeKind::kEphemeral; });
}

// Returns what is known of a pod before it is read: its namespace, which says whose turn it is.
std::string NamespaceOf(absl::string_view bytes) {
  k8s::v1::ObjectMeta metadata;
  ReadName(bytes, &metadata);
  return metadata.namespace_();
}

// Tells which of `size` pods are taken if only `most` may be. `bytes_of` returns the pod at a position.
template <typename BytesOf>
std::vector<bool> TakePods(int size, int most, BytesOf bytes_of) {
  if (size <= most) return std::vector<bool>(static_cast<size_t>(size), true);
  std::vector<std::string> names;
  for (int i = 0; i < size; ++i) names.push_back(NamespaceOf(bytes_of(i)));
  return TakeInTurns({names.begin(), names.end()}, static_cast<size_t>(most));
}

// Names a pod that is left out: by itself, or without a name by where it is in the request.
void LeaveOutPod(const k8s::v1::ObjectMeta& metadata, const std::string& field, absl::string_view reason,
                 LeftOutList* left_out) {
  for (const k8s::v1::OwnerReference& owner : metadata.owner_references()) {
    if (!owner.controller() || owner.kind() != "DaemonSet" || !metadata.name().empty()) continue;
    left_out->Add("DaemonSet", metadata.namespace_(), owner.name(), reason);
    return;
  }
  left_out->Add("Pod", metadata.namespace_(), metadata.name().empty() ? field : metadata.name(), reason);
}

void LeaveOutExcess(absl::string_view bytes, const std::string& field, int most, LeftOutList* left_out) {
  k8s::v1::NamedObject object;
  if (!object.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) object.Clear();
  LeaveOutPod(object.metadata(), field, absl::StrCat("is one of more than ", most, " in one question"),
              left_out);
}

// A client that sends equal pods each by itself repeats the same bytes, which are read once.
bool IsTheSamePod(const v1::IncomingPod& a, const v1::IncomingPod& b) {
  return a.pod() == b.pod() && a.default_spread_selector() == b.default_spread_selector();
}

absl::Status DecodePods(const PendingPodsList& pods, const v1::FitOptions& fit, PodGrouping grouping,
                        ResourceReader* resources, DecodedProblem* decoded) {
  PodDecoder decoder(resources);
  const v1::IncomingPod* last = nullptr;  // that a further entry may repeat: it is at the end of `read`
  const std::vector<bool> taken =
      TakePods(pods.size(), kMaxPendingPods, [&](int i) -> absl::string_view { return pods[i].pod().pod(); });
  for (int i = 0; i < pods.size(); ++i) {
    const v1::PendingPods& message = pods[i];
    const auto field = [i] { return absl::StrCat("pods[", i, "]"); };
    if (absl::Status status = CheckNotNegative("count", message.count()); !status.ok()) {
      return Annotate(status, field());
    }
    if (!taken[static_cast<size_t>(i)]) {
      LeaveOutExcess(message.pod().pod(), field(), kMaxPendingPods, &decoded->left_out);
      continue;
    }
    if (last != nullptr && IsTheSamePod(*last, message.pod())) {
      decoded->from.back().push_back({i, message.count()});
      continue;
    }
    last = nullptr;
    const int64_t clamped = resources->clamped_amounts();
    absl::StatusOr<DecodedPod> pod = DecodeIncomingPod(message.pod(), fit, &decoder);
    if (!pod.ok()) {
      LeaveOutPod(decoder.message().metadata(), field(), pod.status().message(), &decoded->left_out);
      continue;
    }
    if (grouping == PodGrouping::kController) {
      decoded->identities.push_back(IdentityOf(decoder, pod->pod.shape));
    }
    // Entries with problems of their own, and pods that are kept apart, are read each by itself.
    const bool alone = grouping == PodGrouping::kController || NameMatters(pod->pod.shape) ||
                       !pod->pod.default_spread.empty() || resources->clamped_amounts() != clamped;
    if (!alone) last = &message.pod();
    decoded->read.push_back(*std::move(pod));
    decoded->from.push_back({{i, message.count()}});
  }
  return absl::OkStatus();
}

// Positions of pods that decisions do not tell apart, in the order of the first of each.
std::vector<std::vector<size_t>> ByShape(const std::vector<DecodedPod>& read) {
  std::vector<std::vector<size_t>> groups;
  FingerprintIndex index;
  for (size_t i = 0; i < read.size(); ++i) {
    const IncomingPod& pod = read[i].pod;
    if (NameMatters(pod.shape)) {
      groups.push_back({i});
      continue;
    }
    const auto known = index.Find(pod.shape.fingerprint, [&](int32_t group) {
      const IncomingPod& other = read[groups[static_cast<size_t>(group)].front()].pod;
      return other.shape == pod.shape && other.default_spread == pod.default_spread;
    });
    if (known.has_value()) {
      groups[static_cast<size_t>(*known)].push_back(i);
    } else {
      index.Add(pod.shape.fingerprint, static_cast<int32_t>(groups.size()));
      groups.push_back({i});
    }
  }
  return groups;
}

absl::Status ReadTemplate(const v1::ScalableGroup& message, const StartupTaints& startup_taints,
                          ResourceReader* resources, NodeGroup* group) {
  NodeDecoder nodes(resources);
  absl::StatusOr<DecodedNode> node = nodes.Decode(message.template_node());
  if (!node.ok()) return Annotate(node.status(), "template_node", " ");
  absl::StatusOr<DecodedTemplate> priced = PricedTemplate(nodes.message(), node->shape, resources);
  if (!priced.ok()) return Annotate(priced.status(), "template_node", " ");
  // A template that was made from a node of the group still has its name.
  const NodeShape shape =
      WithVolumeLimits(WithoutPassingTaints(node->shape, startup_taints), resources->names());
  group->model = NodeModel{WithCsiNodeOf(shape, std::move(node->name))};
  group->priced = std::move(priced->node);
  group->has_gpu = priced->has_gpu;
  return absl::OkStatus();
}

// A group that cannot be taken, or whose template cannot be read, is as one that has none: it does not grow.
// `group` is one without anything, and filled in.
absl::Status DecodeGroup(const v1::ScalableGroup& message, const StartupTaints& startup_taints,
                         ResourceReader* resources, LeftOutList* left_out, NodeGroup* group) {
  if (message.node_group().empty()) return Refused("node_group: is empty");
  StatedGroup stated(message.node_group(), left_out);
  stated.Size("current_nodes", message.current_nodes());
  stated.Size("max_nodes", message.max_nodes());
  group->name = stated.name();
  group->max_nodes = std::max(0, message.max_nodes());
  group->target = std::max(0, message.current_nodes());
  group->blocked_reason = stated.problem();
  if (message.template_node().empty() || !group->blocked_reason.empty()) return absl::OkStatus();
  if (absl::Status read = ReadTemplate(message, startup_taints, resources, group); !read.ok()) {
    stated.Tell(ReasonOf(read));
    return absl::OkStatus();
  }
  ReadStated(message, &group->priced);
  return absl::OkStatus();
}

absl::Status DecodeGroups(const v1::ScaleUpProblem& problem, ResourceReader* resources,
                          DecodedProblem* decoded) {
  std::set<std::string> names;
  for (int i = 0; i < problem.groups_size(); ++i) {
    NodeGroup& group = decoded->groups.emplace_back();
    if (absl::Status status =
            DecodeGroup(problem.groups(i), decoded->startup_taints, resources, &decoded->left_out, &group);
        !status.ok()) {
      return Annotate(status, absl::StrCat("groups[", i, "]"));
    }
    if (!names.insert(group.name).second) {
      return Refused(absl::StrCat("groups[", i, "]: node_group ", Quoted(group.name), " is named twice"));
    }
  }
  return absl::OkStatus();
}

void DecodeDaemons(const v1::ScaleUpProblem& problem, ResourceReader* resources, DecodedProblem* decoded) {
  PodDecoder decoder(resources);
  const std::vector<bool> taken =
      TakePods(problem.daemon_pods_size(), kMaxDaemonPods,
               [&](int i) -> absl::string_view { return problem.daemon_pods(i); });
  for (int i = 0; i < problem.daemon_pods_size(); ++i) {
    const std::string field = absl::StrCat("daemon_pods[", i, "]");
    if (!taken[static_cast<size_t>(i)]) {
      LeaveOutExcess(problem.daemon_pods(i), field, kMaxDaemonPods, &decoded->left_out);
      continue;
    }
    absl::StatusOr<PodShape> shape = decoder.Decode(problem.daemon_pods(i), PodRole::kIncoming);
    if (!shape.ok()) {
      LeaveOutPod(decoder.message().metadata(), field, shape.status().message(), &decoded->left_out);
      continue;
    }
    if (IsExpendable(TraitsOf(*shape))) continue;  // other pods take its room
    IncomingPod& pod = decoded->daemons.emplace_back();
    pod.shape = *std::move(shape);
    pod.name = decoder.name();
    decoded->daemon_labels.push_back(decoder.labels());
  }
}

absl::Status CheckLimits(const v1::ScaleUpProblem& problem) {
  absl::Status status = CheckSize("groups", problem.groups_size(), kMaxScalableGroups);
  if (status.ok()) status = CheckNotNegative("max_new_nodes", problem.max_new_nodes());
  if (status.ok()) status = CheckNotNegative("max_nodes_total", problem.max_nodes_total());
  if (status.ok()) status = CheckNotNegative("max_work", problem.max_work());
  if (status.ok()) status = CheckNotNegative("max_milliseconds", problem.max_milliseconds());
  if (status.ok()) status = CheckNotNegative("now_seconds", problem.now_seconds());
  return status;
}

}  // namespace

absl::StatusOr<DecodedProblem> DecodeProblem(const v1::ScaleUpProblem& problem, const PendingPodsList& pods,
                                             PodGrouping grouping, ResourceNames names,
                                             const ReadOptions& options) {
  if (absl::Status status = CheckLimits(problem); !status.ok()) return status;
  DecodedProblem decoded;
  absl::StatusOr<FitOptions> fit = DecodeFitOptions(problem.fit());
  if (!fit.ok()) return Annotate(fit.status(), "fit");
  decoded.fit = *std::move(fit);
  absl::StatusOr<StartupTaints> startup_taints = DecodeStartupTaints(problem.startup_taints());
  if (!startup_taints.ok()) return startup_taints.status();
  decoded.startup_taints = *std::move(startup_taints);
  if (problem.now_seconds() > 0) decoded.now_s = problem.now_seconds();
  ResourceReader resources(&names, options);
  // The names of what groups offer, and of what is not counted, do not depend on what pods ask for.
  for (const std::string& name : decoded.fit.ignored_resources) names.InternForNode(name, options.names);
  absl::Status status = DecodeGroups(problem, &resources, &decoded);
  if (status.ok()) status = DecodePods(pods, problem.fit(), grouping, &resources, &decoded);
  if (!status.ok()) return status;
  DecodeDaemons(problem, &resources, &decoded);
  decoded.clamped_amounts = resources.clamped_amounts();
  decoded.names = std::move(names);
  return decoded;
}

void SelectLabelKeys(View* view, DecodedProblem* problem) {
  std::vector<SelectorKeys> wishes;
  for (const DecodedPod& entry : problem->read) wishes.push_back(SelectorKeysOf(entry.pod));
  for (const IncomingPod& pod : problem->daemons) wishes.push_back(SelectorKeysOf(pod));
  const std::vector<bool> admitted = view->SelectLabelKeys(wishes);
  const auto leave_out = [&](const IncomingPod& pod) {
    problem->left_out.Add("Pod", pod.shape.namespace_name, pod.name, kTooManyLabelKeys);
  };
  size_t kept = 0;
  for (size_t i = 0; i < problem->read.size(); ++i) {
    if (!admitted[i]) {
      for (size_t entry = 0; entry < problem->from[i].size(); ++entry) leave_out(problem->read[i].pod);
      continue;
    }
    if (kept != i) {
      problem->read[kept] = std::move(problem->read[i]);
      problem->from[kept] = std::move(problem->from[i]);
      if (!problem->identities.empty()) problem->identities[kept] = std::move(problem->identities[i]);
    }
    ++kept;
  }
  const size_t daemons = problem->read.size();
  problem->read.resize(kept);
  problem->from.resize(kept);
  if (!problem->identities.empty()) problem->identities.resize(kept);
  kept = 0;
  for (size_t i = 0; i < problem->daemons.size(); ++i) {
    if (!admitted[daemons + i]) {
      leave_out(problem->daemons[i]);
      continue;
    }
    if (kept != i) {
      problem->daemons[kept] = std::move(problem->daemons[i]);
      problem->daemon_labels[kept] = std::move(problem->daemon_labels[i]);
    }
    ++kept;
  }
  problem->daemons.resize(kept);
  problem->daemon_labels.resize(kept);
}

void Complete(const LabelKeys& keys, DecodedProblem* problem) {
  for (DecodedPod& entry : problem->read) SelectLabels(entry.labels, keys, &entry.pod.shape);
  const bool by_shape = problem->identities.empty();
  for (const std::vector<size_t>& group :
       by_shape ? ByShape(problem->read) : EquivalenceGroups(problem->identities)) {
    const size_t position = problem->pods.size();
    int64_t count = 0;
    for (const size_t i : group) {
      for (const PodEntry& entry : problem->from[i]) {
        problem->entries.Add(position, entry.position, entry.count);
        count += entry.count;
      }
    }
    problem->pods.push_back({std::move(problem->read[group.front()].pod), count});
    problem->pods.back().pod.names = problem->names;
  }
  problem->read.clear();
  for (size_t i = 0; i < problem->daemons.size(); ++i) {
    SelectLabels(problem->daemon_labels[i], keys, &problem->daemons[i].shape);
    problem->daemons[i].names = problem->names;
  }
}

NodeLimit NewNodeLimit(const v1::ScaleUpProblem& problem, int64_t nodes) {
  return SmallerLimit(ReadNodeLimit(problem.max_new_nodes()),
                      ClusterNodeLimit(problem.max_nodes_total(), nodes));
}

}  // namespace loadline
