// Objects beside nodes and pods: message to core type.
#ifndef LOADLINE_PLUGIN_CONVERT_OBJECTS_H_
#define LOADLINE_PLUGIN_CONVERT_OBJECTS_H_

#include "absl/status/statusor.h"
#include "core/cluster/objects.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Each: kInvalidArgument names the field.
absl::StatusOr<ObjectKind> DecodeObjectKind(v1::ObjectKind kind);
v1::ObjectKind EncodeObjectKind(ObjectKind kind);
absl::StatusOr<ObjectKey> DecodeObjectKey(const v1::ObjectKey& message);
absl::StatusOr<ClusterObject> DecodeObject(const v1::ClusterObject& message, ResourceReader* resources);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_OBJECTS_H_
