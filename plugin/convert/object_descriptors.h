// The descriptors of the files below proto/loadline/k8s/v1, as bytes in the program.
#ifndef LOADLINE_PLUGIN_CONVERT_OBJECT_DESCRIPTORS_H_
#define LOADLINE_PLUGIN_CONVERT_OBJECT_DESCRIPTORS_H_

#include "absl/strings/string_view.h"

namespace loadline {

// A serialized google.protobuf.FileDescriptorSet, without comments. The build writes it: see
// cmake/LoadlineProto.cmake.
absl::string_view ObjectDescriptors();

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_OBJECT_DESCRIPTORS_H_
