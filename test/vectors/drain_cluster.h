// A cluster of a drain row, read from Kubernetes messages as a client sends them.
#ifndef LOADLINE_TEST_VECTORS_DRAIN_CLUSTER_H_
#define LOADLINE_TEST_VECTORS_DRAIN_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "test/vectors/row.h"

namespace loadline::vectors {

// When rows happen, in seconds since 1970.
inline constexpr int64_t kRowNow = 1'800'000'000;

class DrainCluster {
 public:
  // Puts a node with its pods into the next slot. What cannot be read ends the program: rows state no such
  // thing.
  void Add(const k8s::v1::Node& node, const std::vector<k8s::v1::Pod>& pods = {});
  void Add(v1::ObjectKind kind, const std::string& bytes);
  void Add(const k8s::v1::PodDisruptionBudget& budget);

  ClusterState& state() { return state_; }

 private:
  ResourceNames names_;
  ClusterState state_;
  int32_t next_slot_ = 0;
};

// States what most rows state in the same way.
void SetEntry(google::protobuf::RepeatedPtrField<k8s::v1::StringEntry>* entries, const std::string& key,
              const std::string& value);
void SetAmount(google::protobuf::RepeatedPtrField<k8s::v1::QuantityEntry>* entries, const std::string& key,
               const std::string& quantity);
// {"kind", "api_version", "name"} as the controller of a pod.
void SetOwner(const std::string& kind, const std::string& api_version, const std::string& name,
              k8s::v1::ObjectMeta* metadata);
// "deleted_s_ago" and "grace_s", each null where it is not set.
void SetDeletion(const Json& in, k8s::v1::Pod* pod);
// A node of that name which offers cpu and memory, null: not stated.
k8s::v1::Node NodeOffering(const std::string& name, const Json& mcpu, const Json& memory);

}  // namespace loadline::vectors

#endif  // LOADLINE_TEST_VECTORS_DRAIN_CLUSTER_H_
