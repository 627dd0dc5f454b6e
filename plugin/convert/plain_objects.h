// Objects that make no pods: namespaces, volumes, claims, storage classes, CSI nodes and
// drivers, device classes, budgets.
#ifndef LOADLINE_PLUGIN_CONVERT_PLAIN_OBJECTS_H_
#define LOADLINE_PLUGIN_CONVERT_PLAIN_OBJECTS_H_

#include "absl/status/statusor.h"
#include "core/cluster/objects.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"

namespace loadline {

// Errors: kInvalidArgument  names the field
absl::StatusOr<Namespace> ReadObject(const k8s::v1::Namespace& message);
absl::StatusOr<PersistentVolume> ReadObject(const k8s::v1::PersistentVolume& message);
absl::StatusOr<PersistentVolumeClaim> ReadObject(const k8s::v1::PersistentVolumeClaim& message);
absl::StatusOr<StorageClass> ReadObject(const k8s::v1::StorageClass& message);
absl::StatusOr<CsiNode> ReadObject(const k8s::v1::CSINode& message);
absl::StatusOr<CsiDriver> ReadObject(const k8s::v1::CSIDriver& message);
absl::StatusOr<DeviceClass> ReadObject(const k8s::v1::DeviceClass& message);
absl::StatusOr<DisruptionBudget> ReadObject(const k8s::v1::PodDisruptionBudget& message);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_PLAIN_OBJECTS_H_
