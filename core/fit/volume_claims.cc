#include "core/fit/volume_claims.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace loadline {
namespace {

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kRegion[] = "topology.kubernetes.io/region";
constexpr char kBetaZone[] = "failure-domain.beta.kubernetes.io/zone";
constexpr char kBetaRegion[] = "failure-domain.beta.kubernetes.io/region";

// "us-central1" of zones like "us-central1-a", if they share one.
std::optional<std::string> GceRegion(const std::vector<std::string>& zones) {
  std::set<std::string> regions;
  for (const std::string& zone : zones) {
    const std::vector<std::string> parts = absl::StrSplit(zone, '-');
    if (parts.size() != 3) return std::nullopt;
    regions.insert(absl::StrCat(parts[0], "-", parts[1]));
  }
  if (regions.size() != 1) return std::nullopt;
  return *regions.begin();
}

bool HasKey(const std::optional<NodeSelector>& selector, absl::string_view key) {
  if (!selector.has_value()) return false;
  for (const NodeSelectorTerm& term : selector->terms) {
    for (const Requirement& requirement : term.labels) {
      if (requirement.key == key) return true;
    }
  }
  return false;
}

// Returns whether a requirement on `key` lists values.
bool HasValues(const std::optional<NodeSelector>& selector, absl::string_view key) {
  if (!selector.has_value()) return false;
  for (const NodeSelectorTerm& term : selector->terms) {
    for (const Requirement& requirement : term.labels) {
      if (requirement.key == key && !requirement.values.empty()) return true;
    }
  }
  return false;
}

void Rename(NodeSelector* selector, absl::string_view from, absl::string_view to) {
  for (NodeSelectorTerm& term : selector->terms) {
    for (Requirement& requirement : term.labels) {
      if (requirement.key == from) requirement.key = std::string(to);
    }
  }
}

// Adds the zones of a label to every term, or makes a term of them.
void AddZones(const std::string& label, absl::string_view key, std::optional<NodeSelector>* selector) {
  Requirement requirement;
  requirement.key = std::string(key);
  for (absl::string_view zone : absl::StrSplit(label, "__")) {
    zone = absl::StripAsciiWhitespace(zone);
    if (!zone.empty()) requirement.values.emplace_back(zone.data(), zone.size());
  }
  if (requirement.values.empty()) return;
  std::sort(requirement.values.begin(), requirement.values.end());
  const bool valid = std::all_of(requirement.values.begin(), requirement.values.end(),
                                 [](const std::string& value) { return IsLabelValue(value); });
  if (!selector->has_value()) selector->emplace();
  if ((*selector)->terms.empty()) (*selector)->terms.emplace_back();
  for (NodeSelectorTerm& term : (*selector)->terms) {
    term.labels.push_back(requirement);
    term.invalid = term.invalid || !valid;
  }
}

absl::string_view DriverTopologyKey(absl::string_view plugin) {
  return plugin == kGcePlugin ? "topology.gke.io/zone" : "topology.ebs.csi.aws.com/zone";
}

}  // namespace

std::optional<std::string> ClaimName(const PodVolume& volume, absl::string_view pod_name) {
  if (volume.kind == VolumeKind::kClaim) return volume.name;
  if (volume.kind == VolumeKind::kEphemeral) return absl::StrCat(pod_name, "-", volume.name);
  return std::nullopt;
}

std::string NotFound(absl::string_view resource, absl::string_view name) {
  return absl::StrCat(resource, " ", GoQuoted(name), " not found");
}

std::string NotInView(absl::string_view resource, absl::string_view name) {
  return absl::StrCat(resource, " ", GoQuoted(name), " is not in the view, which does not hold all of them");
}

std::string GoQuoted(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

absl::string_view MigratedDriver(absl::string_view plugin) {
  static const struct {
    absl::string_view plugin, driver;
  } kDrivers[] = {
      {kGcePlugin, "pd.csi.storage.gke.io"},
      {kAwsPlugin, "ebs.csi.aws.com"},
      {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
      {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
      {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
  };
  for (const auto& entry : kDrivers) {
    if (entry.plugin == plugin) return entry.driver;
  }
  return "";
}

std::string GceHandle(absl::string_view disk) {
  return absl::StrCat("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/", disk);
}

std::optional<std::string> GceHandle(const PersistentVolume& volume) {
  const std::string* label = volume.labels.Find(kBetaZone);
  if (label == nullptr || label->empty()) label = volume.labels.Find(kZone);
  if (label == nullptr || label->empty()) return GceHandle(volume.handle);
  const std::vector<std::string> zones = absl::StrSplit(*label, "__");
  if (zones.size() == 1)
    return absl::StrCat("projects/UNSPECIFIED/zones/", zones[0], "/disks/", volume.handle);
  const std::optional<std::string> region = GceRegion(zones);
  if (!region.has_value()) return std::nullopt;
  return absl::StrCat("projects/UNSPECIFIED/regions/", *region, "/disks/", volume.handle);
}

std::optional<std::string> AwsHandle(absl::string_view disk) {
  if (!absl::StartsWith(disk, "aws://")) return std::string(disk);
  // aws://zone/vol-123: the path, which has to be one part.
  disk.remove_prefix(6);
  const size_t slash = disk.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  disk.remove_prefix(slash);
  while (absl::ConsumePrefix(&disk, "/")) {
  }
  while (absl::ConsumeSuffix(&disk, "/")) {
  }
  if (!absl::StartsWith(disk, "vol-") || absl::StrContains(disk, '/')) return std::nullopt;
  return std::string(disk);
}

std::optional<NodeSelector> MigratedAffinity(const PersistentVolume& volume, absl::string_view plugin) {
  std::optional<NodeSelector> selector = volume.node_affinity;
  // The volume names its zone by the stable labels or by the older ones.
  bool beta = false;
  if (HasKey(selector, kZone)) {
    beta = false;
  } else if (HasKey(selector, kBetaZone)) {
    beta = true;
  } else if (volume.labels.Find(kZone) == nullptr) {
    beta = volume.labels.Find(kBetaZone) != nullptr;
  }
  const char* const zone = beta ? kBetaZone : kZone;
  if (HasValues(selector, zone)) {
    Rename(&*selector, zone, DriverTopologyKey(plugin));
  } else if (const std::string* const label = volume.labels.Find(zone)) {
    AddZones(*label, DriverTopologyKey(plugin), &selector);
  }
  if (beta && HasValues(selector, kBetaRegion)) Rename(&*selector, kBetaRegion, kRegion);
  return selector;
}

}  // namespace loadline
