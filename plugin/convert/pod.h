// Pods of Kubernetes to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_POD_H_
#define LOADLINE_PLUGIN_CONVERT_POD_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/shapes.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Containers, init containers, and statuses of each.
inline constexpr int kMaxContainers = 1024;
// Distinct resources that a pod requests, and that it limits, all containers together.
inline constexpr size_t kMaxPodResources = 256;

// Reads pods one after the other. Keeps the parsed message, which is the dearest part to allocate: a decoder
// lives as long as a batch, so that one huge pod does not hold memory for ever.
class PodDecoder {
 public:
  // Resource names are added to those of `resources`, which outlives the decoder.
  explicit PodDecoder(ResourceReader* resources) : resources_(resources) {}

  // Returns the shape of a serialized k8s.io.api.core.v1.Pod, without labels. The status of an incoming pod
  // is not read. Errors: kInvalidArgument  the text continues the name of the pod and has the path of the
  // field:
  //                           `(namespace "default"): spec.containers[2] "app": resources.limits["memory"]:
  //                           ...`
  absl::StatusOr<PodShape> Decode(absl::string_view bytes, PodRole role);

  // The same of a pod that a question asks about: one without containers is an error, as its client has
  // forgotten to fill it in.
  absl::StatusOr<PodShape> DecodeAsked(absl::string_view bytes);

  // Returns the shape of a pod that is on a node, which nobody can wish away: what could be read of it, and
  // in PodTraits::unreadable what could not.
  PodShape DecodeBound(absl::string_view bytes);

  // All labels, the name and the UID of the pod that was decoded last. They may be empty if it has errors.
  const Labels& labels() const { return labels_; }
  const std::string& name() const { return message_.metadata().name(); }
  const std::string& uid() const { return message_.metadata().uid(); }
  const k8s::v1::Pod& message() const { return message_; }
  // Returns what its containers state.
  const PodResources& resources() const { return pod_; }

 private:
  // Fills `shape` with what could be read, which is nothing if the bytes are no pod. The error is the first.
  absl::Status Read(absl::string_view bytes, PodRole role, PodShape* shape);
  absl::Status ReadSpec(PodResources* pod);
  absl::Status ReadStatus(PodResources* pod);

  ResourceReader* resources_;
  k8s::v1::Pod message_;
  PodResources pod_;
  Labels labels_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_POD_H_
