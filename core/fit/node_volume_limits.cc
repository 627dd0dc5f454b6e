// NodeVolumeLimits: per CSI driver that the node's CSINode gives a limit for, the distinct volumes of the
// pods on the node and those that the incoming pod adds are no more than the limit. A volume that a pod on
// the node uses already is not added. Claims that are not bound count as a volume of their own under their
// class's provisioner. In-tree volumes count under the driver that serves them, if the node has a CSINode.
// A driver may ask that its volumes go to no node whose CSINode does not list it: 1.37, and 1.36 with the
// gate VolumeLimitScaling, without which an API server does not store the wish. A planned node has what the
// CSINode of its model has, and the limits of its template for drivers of which that says nothing. It has
// every driver if there is no such model.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

struct Volumes {
  // True if a CSI driver serves in-tree volumes on the node.
  bool migrated = false;
  // By the name of the volume, which contains the driver.
  absl::flat_hash_map<std::string, std::string> drivers;
};

// The number of volumes that a node takes, by driver. A driver without a limit is absent.
using Limits = absl::flat_hash_map<std::string, int64_t>;

bool AnyDriverAsks(const ClusterObjects& objects) {
  const auto& drivers = objects.of(ObjectKind::kCsiDriver);
  return std::any_of(drivers.begin(), drivers.end(), [](const auto& entry) {
    return std::get<CsiDriver>(entry.second.content).must_be_on_node;
  });
}

class NodeVolumeLimits : public NodeFilter {
 public:
  explicit NodeVolumeLimits(const FitContext& context)
      : NodeFilter(FilterName::kNodeVolumeLimits, Scope::kNode),
        snapshot_(*context.snapshot),
        objects_(context.snapshot->objects()),
        pod_(*context.pod),
        rules_(*context.rules),
        options_(*context.options),
        asks_for_drivers_(AnyDriverAsks(objects_) ||
                          (options_.minor >= 37 && !objects_.complete(ObjectKind::kCsiDriver))) {}

  int64_t UnitsPerNode() const override {
    return static_cast<int64_t>(rules_.volumes.size()) + snapshot_.volumes_per_node();
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const NodeShape& shape = snapshot_.node_shape(node);
    const std::string& model = shape.csi_node;
    const std::string& name = model.empty() ? snapshot_.name(node) : model;
    const CsiNode* const csi_node = objects_.FindCsiNode(name);
    const bool known_missing = objects_.KnownMissing(ObjectKind::kCsiNode, "", name);
    // A node that is not there yet has no CSINode in any view, whether or not the view holds all.
    const bool is_new = snapshot_.slot(node) == Slot{-1};
    if (csi_node == nullptr && !known_missing && !is_new) {
      return Doubt(why, NotInView("csinode.storage.k8s.io", name));
    }
    const bool drivers_known = csi_node != nullptr || (model.empty() && known_missing);
    if (!HasLimits(csi_node, shape) && !(drivers_known && asks_for_drivers_)) return true;
    Volumes added{IsMigrated(csi_node, shape), {}};
    if (!Add(pod_.shape.namespace_name, pod_.name, pod_.uid, rules_, true, &added, why)) return false;
    if (added.drivers.empty()) return true;
    if (drivers_known && !HasDrivers(csi_node, added, why)) return false;
    return HasRoom(node, csi_node, std::move(added), why);
  }

 private:
  // Returns whether the node has the drivers of the volumes, as far as these ask for it.
  bool HasDrivers(const CsiNode* csi_node, const Volumes& added, Verdict* why) const {
    std::set<absl::string_view> missing;  // by name: the first one is reported
    for (const auto& [volume, driver] : added.drivers) {
      if (!Lists(csi_node, driver)) missing.insert(driver);
    }
    for (const absl::string_view driver : missing) {
      const CsiDriver* const wish = objects_.FindCsiDriver(driver);
      if (wish != nullptr && wish->must_be_on_node) {
        if (why != nullptr) {
          *why = Refusal(this->name(), StatusClass::kUnschedulable,
                         {absl::StrCat(driver, " CSI driver is not installed on the node")});
        }
        return false;
      }
      // The gate is off in 1.36: a driver that we do not know is one that has no wish.
      if (wish == nullptr && options_.minor >= 37 &&
          !objects_.KnownMissing(ObjectKind::kCsiDriver, "", driver)) {
        return Doubt(why, NotInView("csidriver.storage.k8s.io", driver));
      }
    }
    return true;
  }

  static bool Lists(const CsiNode* csi_node, absl::string_view driver) {
    return csi_node != nullptr && std::any_of(csi_node->drivers.begin(), csi_node->drivers.end(),
                                              [&](const CsiNode::Driver& d) { return d.name == driver; });
  }

  bool HasRoom(NodeIndex node, const CsiNode* csi_node, Volumes added, Verdict* why) const {
    const NodeShape& of_node = snapshot_.node_shape(node);
    if (!HasLimits(csi_node, of_node)) return true;
    Volumes attached{added.migrated, {}};
    for (const SnapshotPod& pod : snapshot_.pods(node)) {
      const PodShape& shape = snapshot_.pod_shape(pod.shape);
      if (shape.rules == nullptr || shape.rules->volumes.empty()) continue;
      if (!Add(shape.namespace_name, pod.name, pod.uid, *shape.rules, false, &attached, why)) return false;
    }
    absl::flat_hash_map<std::string, int64_t> counts;
    for (const auto& [volume, driver] : attached.drivers) {
      ++counts[driver];
      added.drivers.erase(volume);
    }
    absl::flat_hash_map<std::string, int64_t> new_counts;
    for (const auto& [volume, driver] : added.drivers) ++new_counts[driver];
    const Limits limits = LimitsOf(csi_node, of_node);
    for (const auto& [driver, count] : new_counts) {
      const auto limit = limits.find(driver);
      if (limit == limits.end() || counts[driver] + count <= limit->second) continue;
      return Refuse(why, StatusClass::kUnschedulable, "node(s) exceed max volume count");
    }
    return true;
  }

  bool Doubt(Verdict* why, std::string reason, bool final = false) const {
    if (why == nullptr) return false;
    *why = CannotJudge(name(), std::move(reason));
    why->final = final;
    return false;
  }

  static bool HasLimits(const CsiNode* csi_node, const NodeShape& shape) {
    if (!shape.volume_limits.empty()) return true;
    if (csi_node == nullptr) return false;
    for (const CsiNode::Driver& driver : csi_node->drivers) {
      if (driver.count.has_value()) return true;
    }
    return false;
  }

  // Returns the limits of the template for the drivers that the CSINode does not list, and those of the
  // CSINode.
  static Limits LimitsOf(const CsiNode* csi_node, const NodeShape& shape) {
    Limits limits(shape.volume_limits.begin(), shape.volume_limits.end());
    if (csi_node == nullptr) return limits;
    for (const CsiNode::Driver& driver : csi_node->drivers) limits.erase(driver.name);
    // If there are two entries for one driver, the last one holds.
    for (const CsiNode::Driver& driver : csi_node->drivers) {
      if (driver.count.has_value()) limits[driver.name] = *driver.count;
    }
    return limits;
  }

  // A node whose template states limits will have a CSINode.
  static bool IsMigrated(const CsiNode* csi_node, const NodeShape& shape) {
    return csi_node != nullptr || !shape.volume_limits.empty();
  }

  static void AddVolume(absl::string_view driver, absl::string_view handle, Volumes* volumes) {
    if (driver.empty() || handle.empty()) return;
    volumes->drivers[absl::StrCat(driver, "/", handle)] = std::string(driver);
  }

  static void AddMigrated(absl::string_view plugin, absl::string_view handle, Volumes* volumes) {
    if (volumes->migrated) AddVolume(MigratedDriver(plugin), handle, volumes);
  }

  // Adds the volumes of a pod; false when that cannot be judged.
  bool Add(const std::string& namespace_name, absl::string_view pod_name, absl::string_view uid,
           const PodRules& rules, bool incoming, Volumes* volumes, Verdict* why) const {
    for (const PodVolume& volume : rules.volumes) {
      if (const std::optional<std::string> name = ClaimName(volume, pod_name)) {
        const PersistentVolumeClaim* const claim = objects_.FindClaim(namespace_name, *name);
        if (claim == nullptr) {
          // A new pod without its claim was dealt with by VolumeRestrictions or VolumeBinding.
          if (incoming || objects_.KnownMissing(ObjectKind::kPersistentVolumeClaim, namespace_name, *name))
            continue;
          return Doubt(why, NotInView("persistentvolumeclaim", *name));
        }
        if (volume.kind == VolumeKind::kEphemeral && (claim->owner_uid.empty() || claim->owner_uid != uid)) {
          return Doubt(why,
                       absl::StrCat("PVC ", namespace_name, "/", *name, " was not created for pod ",
                                    namespace_name, "/", pod_name, " (pod is not owner)"),
                       true);
        }
        if (!AddClaim(*claim, volumes, why)) return false;
      } else if (volume.kind == VolumeKind::kGcePersistentDisk) {
        AddMigrated(kGcePlugin, GceHandle(volume.name), volumes);
      } else if (volume.kind == VolumeKind::kAwsElasticBlockStore) {
        if (!volumes->migrated) continue;
        const std::optional<std::string> handle = AwsHandle(volume.name);
        if (!handle.has_value()) return Doubt(why, absl::StrCat("invalid AWS volume ", volume.name), true);
        AddMigrated(kAwsPlugin, *handle, volumes);
      } else if (volume.kind == VolumeKind::kOtherMigrated && volumes->migrated) {
        return Doubt(why, "an in-tree volume of a kind that the engine cannot count");
      }
    }
    return true;
  }

  bool AddClaim(const PersistentVolumeClaim& claim, Volumes* volumes, Verdict* why) const {
    if (!claim.volume_name.empty()) {
      const PersistentVolume* const bound = objects_.FindVolume(claim.volume_name);
      if (bound != nullptr) return AddBound(*bound, volumes, why);
      if (!objects_.KnownMissing(ObjectKind::kPersistentVolume, "", claim.volume_name)) {
        return Doubt(why, NotInView("persistentvolume", claim.volume_name));
      }
    }
    if (claim.storage_class.empty()) return true;
    const StorageClass* const storage_class = objects_.FindStorageClass(claim.storage_class);
    if (storage_class == nullptr) {
      if (objects_.KnownMissing(ObjectKind::kStorageClass, "", claim.storage_class)) return true;
      return Doubt(why, NotInView("storageclass.storage.k8s.io", claim.storage_class));
    }
    // A handle that no volume has.
    const std::string handle = absl::StrCat("\n", claim.namespace_name, "/", claim.name);
    const std::string& provisioner = storage_class->provisioner;
    if (!MigratedDriver(provisioner).empty()) {
      AddMigrated(provisioner, handle, volumes);
    } else if (provisioner != "kubernetes.io/azure-file" && provisioner != "kubernetes.io/vsphere-volume") {
      AddVolume(provisioner, handle, volumes);
    }
    return true;
  }

  bool AddBound(const PersistentVolume& volume, Volumes* volumes, Verdict* why) const {
    switch (volume.source) {
      case VolumeSource::kCsi:
        AddVolume(volume.driver, volume.handle, volumes);
        return true;
      case VolumeSource::kGcePersistentDisk:
        AddMigrated(kGcePlugin, GceHandle(volume).value_or(""), volumes);
        return true;
      case VolumeSource::kAwsElasticBlockStore:
        AddMigrated(kAwsPlugin, AwsHandle(volume.handle).value_or(""), volumes);
        return true;
      case VolumeSource::kOther:
        return true;
      case VolumeSource::kOtherMigrated:
        break;
    }
    if (!volumes->migrated) return true;
    return Doubt(why, "an in-tree volume of a kind that the engine cannot count");
  }

  const Snapshot& snapshot_;
  const ClusterObjects& objects_;
  const IncomingPod& pod_;
  const PodRules& rules_;
  const FitOptions& options_;
  const bool asks_for_drivers_;
};

}  // namespace

MadeFilter MakeNodeVolumeLimits(const FitContext& context) {
  for (const PodVolume& volume : context.rules->volumes) {
    if (volume.kind == VolumeKind::kIscsi || volume.kind == VolumeKind::kRbd) continue;
    return {std::make_unique<NodeVolumeLimits>(context), {}, {}};
  }
  return {};
}

}  // namespace loadline
