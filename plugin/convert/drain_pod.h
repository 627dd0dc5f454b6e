// Pods that a question about drains brings along: evicted ones, and those of placeholders.
#ifndef LOADLINE_PLUGIN_CONVERT_DRAIN_POD_H_
#define LOADLINE_PLUGIN_CONVERT_DRAIN_POD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/shapes.h"
#include "core/cluster/view.h"
#include "plugin/convert/resources.h"

namespace loadline {

// A pod of a drain question, as an incoming pod.
struct DrainPod {
  PodShape shape;
  std::string name;
  std::string uid;
  // A resource that neither nodes nor pods of the cluster know; empty: none.
  std::string unknown_resource;
  ResourceNames names;  // of the shape
};

// Reads a pod as an incoming one, whatever the state of the pod that it was. `view` may get label keys.
// Errors: kInvalidArgument  names the part of the pod that cannot be read
absl::StatusOr<DrainPod> ReadDrainPod(absl::string_view bytes, View* view, const ReadOptions& read);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_DRAIN_POD_H_
