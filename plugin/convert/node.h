// Nodes of Kubernetes to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_NODE_H_
#define LOADLINE_PLUGIN_CONVERT_NODE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/shapes.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// A node that was read from its bytes.
struct DecodedNode {
  std::string name;  // not empty
  NodeShape shape;
  std::optional<std::string> hostname;  // the label
  NodeTraits traits;
};

// Returns the shape of a template in which amounts such as "attachable-volumes-csi-ebs.csi.aws.com" are
// limits of volumes. Kubelets stated them so before they wrote CSINodes.
NodeShape WithVolumeLimits(NodeShape shape, const ResourceNames& names);

// Reads nodes one after the other; see PodDecoder.
class NodeDecoder {
 public:
  explicit NodeDecoder(ResourceReader* resources) : resources_(resources) {}

  // Returns name and shape of a serialized k8s.io.api.core.v1.Node. A node without status.allocatable offers
  // its capacity: so the API server completes what it stores, but a file written by hand may lack it.
  // Errors: kInvalidArgument  the text continues the name of the node: `("a"): status.allocatable["cpu"]:
  // ...`
  absl::StatusOr<DecodedNode> Decode(absl::string_view bytes);

  // Likewise of a node that is there: it offers what could be read, and NodeTraits::unreadable says what
  // could not. Errors: kInvalidArgument  not even its name could be read
  absl::StatusOr<DecodedNode> DecodeBound(absl::string_view bytes);

  // Returns the node that was read last.
  const k8s::v1::Node& message() const { return message_; }

 private:
  ResourceReader* resources_;
  k8s::v1::Node message_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_NODE_H_
