// One client's cluster: the model, and the protocol that keeps it equal to what the client sees.
#ifndef LOADLINE_CORE_CLUSTER_VIEW_H_
#define LOADLINE_CORE_CLUSTER_VIEW_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/shapes.h"

namespace loadline {

// What a view may hold. Beyond it a batch is refused with kResourceExhausted.
struct ViewLimits {
  int32_t nodes = 131072;          // slots, [1, 2^18]
  int32_t pods = 2'000'000;        // [1, 2^31)
  int32_t pod_shapes = 2'000'000;  // ids, [1, 2^21]
  int32_t resources = 256;         // distinct names
};

// A state of a view. Epochs start with the client; revisions count within one. {0, 0}: nothing yet.
struct Revision {
  int64_t epoch = 0;
  int64_t revision = 0;
  friend auto operator<=>(const Revision&, const Revision&) = default;
};

// One pod of a node record. Text is a view into memory that outlives the batch.
struct PodRecord {
  int32_t shape;  // the client's id
  absl::string_view name;
  absl::string_view uid;
};

struct NodeRecord {
  Slot slot;
  absl::string_view name;  // not empty
  NodeShape shape;
  std::vector<PodRecord> pods;
};

struct PodShapeRecord {
  int32_t id;  // the client's id
  PodShape shape;
};

// One chunk of a full list.
struct FullListChunk {
  int32_t index;  // from 0
  bool last;
};

// What changed in a cluster since `base_revision`; see message Changes for the rules.
struct Batch {
  int64_t epoch = 0;          // [1, 2^62]
  int64_t base_revision = 0;  // [0, revision]; 0 in a full list
  int64_t revision = 0;       // [1, 2^62]
  std::optional<FullListChunk> full_list;
  std::vector<Slot> removed_slots;
  std::vector<PodShapeRecord> pod_shapes;
  std::vector<NodeRecord> nodes;
  // Names that the ids in this batch refer to: View::names_for() of this batch, with names added.
  ResourceNames resource_names;
  // Amounts that were clamped when the batch was made.
  int64_t clamped_amounts = 0;
};

// Applies batches, all of a batch or nothing. Not thread-safe; const members may run together.
class View {
 public:
  explicit View(const ViewLimits& limits) : limits_(limits) {}

  // The names that a batch of this kind adds to: those of the state it will be applied to.
  const ResourceNames& names_for(const std::optional<FullListChunk>& full_list) const;

  // Applies `batch`, or stages it when it is a chunk of a full list that is not complete yet.
  // Errors: kInvalidArgument     wrong in any state: a slot twice or out of range, a node name twice, a pod
  //                              shape unknown or redefined while pods refer to it; names slot and node
  //         kFailedPrecondition  does not build on the state of the view; tells that state
  //         kResourceExhausted   names the limit and its value
  // Cost:   O(batch + pods that were on the replaced nodes).
  absl::Status Apply(const Batch& batch);

  // Whether a question that comes with `batch` after Apply() is asked in exactly its state.
  bool IsAt(const Batch& batch) const { return revision_ == Revision{batch.epoch, batch.revision}; }

  const Revision& revision() const { return revision_; }
  const ClusterState& cluster() const { return *content_.cluster; }
  int64_t clamped_amounts() const { return clamped_amounts_; }

 private:
  // What the client numbers by id: the canonical shape, and how many pods refer to it by this id.
  struct ClientShape {
    int32_t shape = -1;  // in ClusterState::pod_shapes(); -1: not sent
    int32_t pods = 0;
  };
  struct Content {
    std::unique_ptr<ClusterState> cluster = std::make_unique<ClusterState>();
    std::vector<ClientShape> shapes;
  };
  struct Staging {
    Revision revision;
    int32_t next_chunk = 0;
    int64_t clamped_amounts = 0;
    Content content;
  };

  absl::Status ApplyChunk(const Batch& batch);
  absl::Status Refused(const Batch& batch, absl::string_view reason) const;
  absl::Status CheckContent(const Batch& batch, const Content& content) const;
  absl::Status CheckShapes(const Batch& batch, const Content& content) const;
  absl::Status CheckNodes(const Batch& batch, const Content& content) const;
  static void ApplyContent(const Batch& batch, Content* content);
  static void ReleasePods(Slot slot, Content* content);

  ViewLimits limits_;
  Revision revision_;
  Content content_;
  std::unique_ptr<Staging> staging_;
  int64_t clamped_amounts_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_VIEW_H_
