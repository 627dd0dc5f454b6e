// VolumeBinding. Before nodes are looked at: every claim of the pod is there, neither lost nor being deleted,
// an ephemeral volume's claim belongs to the pod, and a claim that is not bound waits for its first consumer.
// Then, per node:
//
// * bound claims: the volume is there and its node affinity matches the node's labels;
// * waiting claims: a claim that has chosen a node is bound there only; for the others, smallest first, an
//   available volume of the class whose node affinity, size, modes and labels suit, each volume once; failing
//   that, the class has a provisioner and its allowedTopologies admit the node.
//
// Capacity that CSI drivers publish is not known to a view and not checked.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"
#include "core/fit/matching_volume.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

constexpr FilterName kBinding = FilterName::kVolumeBinding;

struct PodClaims {
  std::vector<const PersistentVolumeClaim*> bound;
  std::vector<const PersistentVolumeClaim*> waiting;  // smallest first
};

class VolumeBinding : public NodeFilter {
 public:
  VolumeBinding(const FitContext& context, PodClaims claims)
      : NodeFilter(kBinding, Scope::kNode),
        snapshot_(*context.snapshot),
        objects_(context.snapshot->objects()),
        claims_(std::move(claims)) {
    for (const PersistentVolumeClaim* claim : claims_.waiting) {
      const auto [volumes, is_new] = of_class_.try_emplace(claim->storage_class);
      if (is_new) volumes->second = AvailableVolumes(objects_, claim->storage_class);
      volumes_per_node_ += static_cast<int64_t>(volumes->second.size());
    }
  }

  int64_t UnitsPerNode() const override {
    constexpr int64_t kVolumesPerUnit = 8;
    return static_cast<int64_t>(claims_.bound.size() + claims_.waiting.size()) +
           volumes_per_node_ / kVolumesPerUnit;
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    Outcome outcome;
    CheckBound(node, &outcome);
    if (!outcome.error.empty()) return Error(why, outcome);
    CheckWaiting(node, &outcome);
    if (!outcome.error.empty()) return Error(why, outcome);
    if (outcome.reasons.empty() && outcome.doubt.empty()) return true;
    if (why == nullptr) return false;
    if (outcome.reasons.empty()) {
      *why = CannotJudge(kBinding, std::move(outcome.doubt));
    } else {
      std::sort(outcome.reasons.begin(), outcome.reasons.end());
      *why = Refusal(kBinding, StatusClass::kUnschedulableAndUnresolvable, std::move(outcome.reasons));
    }
    return false;
  }

 private:
  struct Outcome {
    std::vector<std::string> reasons;
    std::string doubt;  // empty: none
    std::string error;  // where the scheduler itself would fail
  };

  static bool Error(Verdict* why, const Outcome& outcome) {
    if (why != nullptr) {
      *why = CannotJudge(kBinding, outcome.error);
      why->final = true;
    }
    return false;
  }

  void CheckBound(NodeIndex node, Outcome* outcome) const {
    for (const PersistentVolumeClaim* claim : claims_.bound) {
      const PersistentVolume* const volume = objects_.FindVolume(claim->volume_name);
      if (volume == nullptr) {
        if (objects_.KnownMissing(ObjectKind::kPersistentVolume, "", claim->volume_name)) {
          outcome->reasons.push_back(
              "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
        } else {
          outcome->doubt = NotInView("persistentvolume", claim->volume_name);
        }
        return;
      }
      if (AffinityMatches(*volume, node, outcome)) continue;
      if (outcome->error.empty() && outcome->doubt.empty()) {
        outcome->reasons.push_back("node(s) didn't match PersistentVolume's node affinity");
      }
      return;
    }
  }

  // Node affinity of a bound volume, with the zone label of the CSI driver where that serves the volume.
  bool AffinityMatches(const PersistentVolume& volume, NodeIndex node, Outcome* outcome) const {
    NodeLabels labels = snapshot_.labels(node);
    labels.name = "";
    absl::string_view plugin;
    if (volume.source == VolumeSource::kGcePersistentDisk) plugin = kGcePlugin;
    if (volume.source == VolumeSource::kAwsElasticBlockStore) plugin = kAwsPlugin;
    const bool other = volume.source == VolumeSource::kOtherMigrated;
    if (plugin.empty() && !other)
      return !volume.node_affinity.has_value() || volume.node_affinity->Matches(labels);
    const CsiNode* const csi_node = objects_.FindCsiNode(snapshot_.name(node));
    if (csi_node == nullptr && !objects_.KnownMissing(ObjectKind::kCsiNode, "", snapshot_.name(node))) {
      outcome->doubt = NotInView("csinode.storage.k8s.io", snapshot_.name(node));
      return false;
    }
    if (csi_node != nullptr && other && !csi_node->migrated_plugins.empty()) {
      outcome->doubt = "an in-tree volume of a kind that the engine does not translate";
      return false;
    }
    const bool migrated = csi_node != nullptr && !plugin.empty() &&
                          std::find(csi_node->migrated_plugins.begin(), csi_node->migrated_plugins.end(),
                                    plugin) != csi_node->migrated_plugins.end();
    if (!migrated) return !volume.node_affinity.has_value() || volume.node_affinity->Matches(labels);
    const bool translatable = volume.source == VolumeSource::kGcePersistentDisk
                                  ? GceHandle(volume).has_value()
                                  : AwsHandle(volume.handle).has_value();
    if (!translatable) {
      outcome->error = absl::StrCat("could not translate pv ", GoQuoted(volume.name));
      return false;
    }
    const std::optional<NodeSelector> affinity = MigratedAffinity(volume, plugin);
    return !affinity.has_value() || affinity->Matches(labels);
  }

  void CheckWaiting(NodeIndex node, Outcome* outcome) const {
    constexpr char kNoVolume[] = "node(s) didn't find available persistent volumes to bind";
    NodeLabels labels = snapshot_.labels(node);
    labels.name = "";
    std::vector<const PersistentVolumeClaim*> to_provision;
    std::vector<const PersistentVolumeClaim*> to_match;
    for (const PersistentVolumeClaim* claim : claims_.waiting) {
      if (!claim->selected_node.has_value()) {
        to_match.push_back(claim);
      } else if (*claim->selected_node == snapshot_.name(node)) {
        to_provision.push_back(claim);
      } else {
        outcome->reasons.push_back(kNoVolume);
        return;
      }
    }
    absl::flat_hash_set<const PersistentVolume*> chosen;
    for (const PersistentVolumeClaim* claim : to_match) {
      if (!claim->selector_error.empty()) {
        outcome->error = claim->selector_error;
        return;
      }
      const PersistentVolume* const volume =
          MatchingVolume(*claim, of_class_.at(claim->storage_class), labels, chosen);
      if (volume != nullptr) {
        chosen.insert(volume);
      } else {
        to_provision.push_back(claim);
      }
    }
    for (const PersistentVolumeClaim* claim : to_provision) {
      if (Provisions(*claim, labels)) continue;
      if (claim->selected_node.has_value() || objects_.complete(ObjectKind::kPersistentVolume)) {
        outcome->reasons.push_back(kNoVolume);
      } else {
        outcome->doubt = "the view does not hold all persistent volumes, of which one may suit a claim";
      }
      return;
    }
  }

  bool Provisions(const PersistentVolumeClaim& claim, const NodeLabels& labels) const {
    const StorageClass* const storage_class = objects_.FindStorageClass(claim.storage_class);
    const std::string& provisioner = storage_class->provisioner;
    if (provisioner.empty() || provisioner == "kubernetes.io/no-provisioner") return false;
    const auto& terms = storage_class->allowed_topologies;
    return terms.empty() ||
           std::any_of(terms.begin(), terms.end(), [&](const StorageClass::TopologyTerm& term) {
             return !term.invalid && !term.requirements.empty() &&
                    std::all_of(term.requirements.begin(), term.requirements.end(),
                                [&](const Requirement& requirement) {
                                  return requirement.Matches(labels.Find(requirement.key));
                                });
           });
  }

  const Snapshot& snapshot_;
  const ClusterObjects& objects_;
  const PodClaims claims_;
  // The volumes of the classes of waiting claims, and how many all claims together are matched with.
  absl::flat_hash_map<std::string, std::vector<const PersistentVolume*>> of_class_;
  int64_t volumes_per_node_ = 0;
};

// Sorts one claim into `claims`. Returns why the scheduler would fail, and sets `immediate` for a claim that
// should have been bound before.
std::string Sort(const PersistentVolumeClaim* claim, const ClusterObjects& objects, PodClaims* claims,
                 bool* immediate, std::string* doubt) {
  if (!claim->volume_name.empty() && claim->bind_completed) {
    claims->bound.push_back(claim);
    return "";
  }
  const StorageClass* const storage_class =
      claim->storage_class.empty() ? nullptr : objects.FindStorageClass(claim->storage_class);
  if (storage_class == nullptr && !claim->storage_class.empty() && claim->volume_name.empty() &&
      !objects.KnownMissing(ObjectKind::kStorageClass, "", claim->storage_class)) {
    *doubt = NotInView("storageclass.storage.k8s.io", claim->storage_class);
    return "";
  }
  if (storage_class != nullptr && storage_class->binding == StorageClass::Binding::kUnset) {
    return absl::StrCat("VolumeBindingMode not set for StorageClass ", GoQuoted(claim->storage_class));
  }
  const bool waits =
      storage_class != nullptr && storage_class->binding == StorageClass::Binding::kWaitForFirstConsumer;
  if (waits && claim->volume_name.empty()) {
    claims->waiting.push_back(claim);
  } else {
    *immediate = true;
  }
  return "";
}

// Returns the reason for which a claim cannot be used at all; empty: it can.
std::string Problem(const PersistentVolumeClaim& claim, const PodVolume& volume, const IncomingPod& pod) {
  if (claim.lost) {
    return absl::StrCat("persistentvolumeclaim ", GoQuoted(claim.name),
                        " bound to non-existent persistentvolume ", GoQuoted(claim.volume_name));
  }
  if (claim.deleting)
    return absl::StrCat("persistentvolumeclaim ", GoQuoted(claim.name), " is being deleted");
  const bool owned = !claim.owner_uid.empty() && claim.owner_uid == pod.uid;
  if (volume.kind != VolumeKind::kEphemeral || owned) return "";
  const std::string& namespace_name = pod.shape.namespace_name;
  return absl::StrCat("PVC ", namespace_name, "/", claim.name, " was not created for pod ", namespace_name,
                      "/", pod.name, " (pod is not owner)");
}

}  // namespace

MadeFilter MakeVolumeBinding(const FitContext& context) {
  const ClusterObjects& objects = context.snapshot->objects();
  MadeFilter made;
  std::vector<const PersistentVolumeClaim*> used;
  const auto refuse = [&](std::string reason) {
    made.verdict = Refusal(kBinding, StatusClass::kUnschedulableAndUnresolvable, {std::move(reason)});
  };
  for (const PodVolume& volume : context.rules->volumes) {
    const std::optional<std::string> name = ClaimName(volume, context.pod->name);
    if (!name.has_value()) continue;
    const PersistentVolumeClaim* const claim = objects.FindClaim(context.pod->shape.namespace_name, *name);
    if (claim == nullptr &&
        !objects.KnownMissing(ObjectKind::kPersistentVolumeClaim, context.pod->shape.namespace_name, *name)) {
      made.doubt = CannotJudge(kBinding, NotInView("persistentvolumeclaim", *name));
      continue;
    }
    std::string problem =
        claim == nullptr
            ? absl::StrCat("waiting for ephemeral volume controller to create the persistentvolumeclaim ",
                           GoQuoted(*name))
            : Problem(*claim, volume, *context.pod);
    if (!problem.empty()) {
      refuse(std::move(problem));
      return made;
    }
    used.push_back(claim);
  }
  PodClaims claims;
  bool immediate = false;
  for (const PersistentVolumeClaim* claim : used) {
    std::string doubt;
    std::string error = Sort(claim, objects, &claims, &immediate, &doubt);
    if (!error.empty()) {
      made.verdict = CannotJudge(kBinding, std::move(error));
      return made;
    }
    if (!doubt.empty()) made.doubt = CannotJudge(kBinding, std::move(doubt));
  }
  if (immediate) {
    refuse("pod has unbound immediate PersistentVolumeClaims");
    return made;
  }
  std::stable_sort(claims.waiting.begin(), claims.waiting.end(),
                   [](const PersistentVolumeClaim* a, const PersistentVolumeClaim* b) {
                     return a->request.value_or(Quantity()) < b->request.value_or(Quantity());
                   });
  if (!used.empty()) made.filter = std::make_unique<VolumeBinding>(context, std::move(claims));
  return made;
}

}  // namespace loadline
