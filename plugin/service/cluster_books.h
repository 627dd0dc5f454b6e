// Books about what a view holds of a cluster that a client gave as a whole.
#ifndef LOADLINE_PLUGIN_SERVICE_CLUSTER_BOOKS_H_
#define LOADLINE_PLUGIN_SERVICE_CLUSTER_BOOKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/cluster/objects.h"
#include "core/cluster/view.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/convert/given_cluster.h"

namespace loadline {

// Slots, shapes and the content of each object, so that the next cluster becomes a batch of what differs. Of
// contents two hashes are kept: one is drawn anew in each process, so that nobody can make two contents that
// have both in common. A value: a copy is changed, and takes the place of the original with the batch.
class ClusterBooks {
 public:
  // Returns whether the books are those of a view in this state, and a batch can lead it to the cluster.
  bool CanGoOn(const Revision& revision, const v1::SetClusterRequest& request) const;

  struct Changed {
    int64_t nodes = 0;
    int64_t objects = 0;
    int64_t removed = 0;
    std::vector<int32_t> slots;  // of the nodes of the cluster, in their order
  };

  // Makes them those of this cluster, and adds to `changes` what differs from before. `changes` has its
  // header, and names the state that the view will be in.
  Changed Set(const v1::SetClusterRequest& request, const GivenCluster& cluster, v1::Changes* changes);

 private:
  using Content = std::pair<uint64_t, uint64_t>;  // hashes of it
  struct Node {
    int32_t slot = 0;
    Content content;
    std::vector<int32_t> shapes;  // of its pods
    bool is_there = false;        // in the cluster that is being set
  };
  struct Shape {
    Content content;
    int64_t pods = 0;
  };

  static Content ContentOf(absl::string_view bytes);
  int32_t TakeSlot();
  void Release(const std::vector<int32_t>& shapes);
  // Returns the id of a shape with one more pod; one that is new is added to the batch.
  int32_t Acquire(const std::string& bytes, v1::Changes* changes);
  bool SetNode(const GivenNode& given, const GivenCluster& cluster, v1::Changes* changes, int32_t* slot);
  int64_t RemoveNodes(v1::Changes* changes);
  void SetObjects(const GivenCluster& cluster, v1::Changes* changes, Changed* changed);
  void FreeShapes();

  Revision revision_;
  int32_t kubernetes_minor_ = 0;
  std::set<int> complete_kinds_;
  std::map<std::string, Node> nodes_;
  std::set<int32_t> free_slots_;
  int32_t next_slot_ = 0;
  std::vector<Shape> shapes_;  // by id
  absl::flat_hash_map<Content, int32_t> shape_of_;
  std::vector<int32_t> free_shapes_;
  std::vector<int32_t> left_shapes_;  // that the batch left without pods; their ids are free with the next
  std::map<ObjectKey, Content> objects_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_CLUSTER_BOOKS_H_
