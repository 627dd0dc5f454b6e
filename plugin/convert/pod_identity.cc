#include "plugin/convert/pod_identity.h"

#include "core/base/fingerprint.h"

namespace loadline {

PodIdentity IdentityOf(const PodDecoder& decoder, const PodShape& shape) {
  const k8s::v1::Pod& pod = decoder.message();
  PodIdentity identity;
  for (const k8s::v1::OwnerReference& owner : pod.metadata().owner_references()) {
    if (!owner.controller()) continue;
    identity.controller_uid = owner.uid();
    identity.of_daemon_set = owner.kind() == "DaemonSet";
    break;
  }
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(shape.base_fingerprint));
  decoder.labels().AddTo(&builder);
  for (const k8s::v1::Volume& volume : pod.spec().volumes()) {
    if (volume.volume_source().has_projected()) continue;
    // With the fields that are not known here.
    builder.Add(absl::string_view(volume.SerializeAsString()));
  }
  identity.content = builder.Finish();
  return identity;
}

}  // namespace loadline
