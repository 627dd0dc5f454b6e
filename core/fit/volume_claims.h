// The claims of a pod, and the CSI drivers that serve in-tree volumes: shared by the volume filters.
#ifndef LOADLINE_CORE_FIT_VOLUME_CLAIMS_H_
#define LOADLINE_CORE_FIT_VOLUME_CLAIMS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/cluster/objects.h"
#include "core/cluster/pod_rules.h"

namespace loadline {

// Returns the name of the claim that a volume of a pod refers to; nullopt for volumes of other kinds.
std::optional<std::string> ClaimName(const PodVolume& volume, absl::string_view pod_name);

// `persistentvolumeclaim "x" not found`, as client-go words it.
std::string NotFound(absl::string_view resource, absl::string_view name);
// A reason for what the view lacks.
std::string NotInView(absl::string_view resource, absl::string_view name);

// Text in quotes, as Go's %q writes names.
std::string GoQuoted(absl::string_view text);

// The CSI driver that serves volumes of an in-tree plugin ("kubernetes.io/gce-pd"), empty if none does; nodes
// count such volumes only if they have a CSINode.
absl::string_view MigratedDriver(absl::string_view plugin);
inline constexpr absl::string_view kGcePlugin("kubernetes.io/gce-pd", 20);
inline constexpr absl::string_view kAwsPlugin("kubernetes.io/aws-ebs", 21);

// Returns what identifies a disk to the CSI driver that serves it: of a volume in a pod, or of a persistent
// volume, whose zone labels play a part; nullopt where upstream cannot tell either.
std::string GceHandle(absl::string_view disk);
std::optional<std::string> GceHandle(const PersistentVolume& volume);
std::optional<std::string> AwsHandle(absl::string_view disk);

// The node affinity of a persistent volume on a node where `plugin` is migrated: its zone label is that of
// the driver.
std::optional<NodeSelector> MigratedAffinity(const PersistentVolume& volume, absl::string_view plugin);

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_VOLUME_CLAIMS_H_
