// VolumeZone: for each zone or region label of the persistent volumes that the pod's claims are bound to, the
// node carries the label (or its stable form) with one of the values, which are separated by "__". Nodes
// without any zone or region label pass, and so do claims that wait for their first consumer.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/fit/filters.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

struct TopologyLabel {
  const char* key;
  const char* stable;
};
constexpr TopologyLabel kLabels[] = {
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
    {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"topology.kubernetes.io/region", "topology.kubernetes.io/region"},
};

struct Place {
  const TopologyLabel* label;
  std::vector<std::string> values;
};

// A label with an empty part is ignored.
std::optional<std::vector<std::string>> Values(const std::string& text) {
  std::vector<std::string> values;
  for (absl::string_view part : absl::StrSplit(text, "__")) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) return std::nullopt;
    values.emplace_back(part.data(), part.size());
  }
  return values;
}

class VolumeZone : public NodeFilter {
 public:
  VolumeZone(const FitContext& context, std::vector<Place> places)
      : NodeFilter(FilterName::kVolumeZone, Scope::kNodeShape),
        snapshot_(*context.snapshot),
        places_(std::move(places)) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    const Labels& labels = snapshot_.node_shape(node).labels;
    if (std::none_of(std::begin(kLabels), std::end(kLabels),
                     [&](const TopologyLabel& label) { return labels.Find(label.key) != nullptr; })) {
      return true;
    }
    if (std::all_of(places_.begin(), places_.end(),
                    [&](const Place& place) { return Matches(place, labels); })) {
      return true;
    }
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable, "node(s) had no available volume zone");
  }

 private:
  static bool Matches(const Place& place, const Labels& labels) {
    const std::string* value = labels.Find(place.label->key);
    if (value == nullptr) value = labels.Find(place.label->stable);
    return value != nullptr &&
           std::find(place.values.begin(), place.values.end(), *value) != place.values.end();
  }

  const Snapshot& snapshot_;
  const std::vector<Place> places_;
};

// Returns the reason for which an unbound claim ends the search before it begins; empty: it does not.
std::string UnboundProblem(const PersistentVolumeClaim& claim, const ClusterObjects& objects) {
  if (claim.storage_class.empty()) return "PersistentVolumeClaim had no pv name and storageClass name";
  const StorageClass* const storage_class = objects.FindStorageClass(claim.storage_class);
  if (storage_class == nullptr) return NotFound("storageclass.storage.k8s.io", claim.storage_class);
  switch (storage_class->binding) {
    case StorageClass::Binding::kUnset:
      return absl::StrCat("VolumeBindingMode not set for StorageClass ", GoQuoted(claim.storage_class));
    case StorageClass::Binding::kWaitForFirstConsumer:
      return "";
    case StorageClass::Binding::kImmediate:
      break;
  }
  return "PersistentVolume had no name";
}

}  // namespace

MadeFilter MakeVolumeZone(const FitContext& context) {
  constexpr FilterName kName = FilterName::kVolumeZone;
  const ClusterObjects& objects = context.snapshot->objects();
  MadeFilter made;
  std::vector<Place> places;
  const auto refuse = [&](std::string reason) {
    made.verdict = Refusal(kName, StatusClass::kUnschedulableAndUnresolvable, {std::move(reason)});
  };
  for (const PodVolume& volume : context.rules->volumes) {
    if (volume.kind != VolumeKind::kClaim) continue;
    // Missing claims were dealt with by VolumeRestrictions.
    const PersistentVolumeClaim* const claim =
        objects.FindClaim(context.pod->shape.namespace_name, volume.name);
    if (claim == nullptr) continue;
    if (claim->volume_name.empty()) {
      // Without the class VolumeBinding has its doubts as well.
      if (!claim->storage_class.empty() && objects.FindStorageClass(claim->storage_class) == nullptr &&
          !objects.KnownMissing(ObjectKind::kStorageClass, "", claim->storage_class)) {
        continue;
      }
      std::string problem = UnboundProblem(*claim, objects);
      if (problem.empty()) continue;
      refuse(std::move(problem));
      return made;
    }
    const PersistentVolume* const bound = objects.FindVolume(claim->volume_name);
    if (bound == nullptr && objects.KnownMissing(ObjectKind::kPersistentVolume, "", claim->volume_name)) {
      refuse(NotFound("persistentvolume", claim->volume_name));
      return made;
    }
    if (bound == nullptr) {
      made.doubt = CannotJudge(kName, NotInView("persistentvolume", claim->volume_name));
      continue;
    }
    for (const TopologyLabel& label : kLabels) {
      const std::string* const text = bound->labels.Find(label.key);
      if (text == nullptr) continue;
      if (std::optional<std::vector<std::string>> values = Values(*text))
        places.push_back({&label, *std::move(values)});
    }
  }
  if (!places.empty()) made.filter = std::make_unique<VolumeZone>(context, std::move(places));
  return made;
}

}  // namespace loadline
