// A whole cluster, given as objects of Kubernetes.
#ifndef LOADLINE_PLUGIN_CONVERT_GIVEN_CLUSTER_H_
#define LOADLINE_PLUGIN_CONVERT_GIVEN_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/objects.h"
#include "loadline/v1/set_cluster.pb.h"

namespace loadline {

struct GivenPod {
  size_t shape = 0;  // in GivenCluster::shapes
  std::string name;
  std::string uid;
};

struct GivenNode {
  std::string name;
  std::string bytes;           // protobuf, of what the engine reads
  std::vector<GivenPod> pods;  // by name, UID and shape
};

struct GivenObject {
  ObjectKey key;
  v1::ClusterObject message;
};

struct GivenCluster {
  std::vector<GivenNode> nodes;      // in the order of the request
  std::vector<GivenObject> objects;  // likewise
  std::vector<std::string> shapes;   // of pods: protobuf of what they share that differ in name, UID and node
  int64_t pods_without_node = 0;
  int64_t pods_of_unknown_nodes = 0;
};

// Reads the objects of a cluster.
// Errors: kInvalidArgument  an object that cannot be read, has no name, or has that of another one; names the
//                           field: `nodes[3]: spec.taints: is a text, not a list, in Node "a"`
absl::StatusOr<GivenCluster> ReadGivenCluster(const v1::SetClusterRequest& request);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_GIVEN_CLUSTER_H_
