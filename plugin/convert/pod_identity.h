// The properties by which pending pods differ.
#ifndef LOADLINE_PLUGIN_CONVERT_POD_IDENTITY_H_
#define LOADLINE_PLUGIN_CONVERT_POD_IDENTITY_H_

#include "core/cluster/shapes.h"
#include "core/expand/equivalence.h"
#include "plugin/convert/pod.h"

namespace loadline {

// Returns the identity of the pod that `decoder` decoded last, to `shape`. It compares the part of its spec
// that decisions read, and all volumes that are not projected ones.
PodIdentity IdentityOf(const PodDecoder& decoder, const PodShape& shape);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_POD_IDENTITY_H_
