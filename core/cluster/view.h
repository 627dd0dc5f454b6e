// One client's cluster: the model, and the protocol that keeps it equal to what the client sees.
#ifndef LOADLINE_CORE_CLUSTER_VIEW_H_
#define LOADLINE_CORE_CLUSTER_VIEW_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/left_out.h"
#include "core/cluster/pod_resources.h"
#include "core/cluster/shapes.h"
#include "core/cluster/view_bytes.h"

namespace loadline {

// The limits of a view. A batch beyond them is refused with kResourceExhausted.
struct ViewLimits {
  int32_t nodes = 131072;          // slots, [1, 2^18]
  int32_t pods = 2'000'000;        // [1, 2^31)
  int32_t pod_shapes = 2'000'000;  // ids, [1, 2^21]
  int32_t resources = 256;         // distinct names
  int32_t objects = 2'000'000;     // beside nodes and pods
  int32_t label_keys = 4096;       // distinct keys that selectors over pods refer to
  // How many of them pods and objects of one namespace may be the first to refer to.
  int32_t label_keys_of_namespace = 256;
  // Memory that nodes, pods and objects may take beside that of ordinary ones; see ViewBytes.
  int64_t bytes = int64_t{256} << 20;
  int64_t amounts = 4 << 20;  // slots up to the largest, times distinct resource names; 24 bytes each
};

// Label keys that the selectors of a pod or object of this namespace refer to.
struct SelectorKeys {
  absl::string_view namespace_name;
  LabelKeys keys;
};
// The reason for which a pod or object with too many keys is left out.
inline constexpr char kTooManyLabelKeys[] = "its selectors refer to more label keys than there is room for";

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

// A node with all of its pods, as a client sends it: it replaces the former content of the slot.
struct NodeRecord {
  Slot slot;
  absl::string_view name;  // not empty
  NodeShape shape;
  std::vector<PodRecord> pods;
  std::optional<std::string> hostname = std::nullopt;  // the label
  NodeTraits traits{};
};

// A shape of pods, as a client sends it; pods refer to it by the id.
struct PodShapeRecord {
  int32_t id;       // the client's id
  PodShape shape;   // without labels
  Labels labels{};  // all labels of the pod
};

// One chunk of a full list.
struct FullListChunk {
  int32_t index;  // from 0
  bool last;
};

// The changes of a cluster since `base_revision`; see message Changes for the rules.
struct Batch {
  int64_t epoch = 0;          // [1, 2^62]
  int64_t base_revision = 0;  // [0, revision]; 0 in a full list
  int64_t revision = 0;       // [1, 2^62]
  std::optional<FullListChunk> full_list;
  // By which the shapes of its pods were made: within an epoch always the same.
  ResizeRule resize_rule = ResizeRule::kPerContainer;
  std::vector<Slot> removed_slots;
  std::vector<PodShapeRecord> pod_shapes;
  std::vector<NodeRecord> nodes;
  std::vector<ObjectKey> removed_objects;
  std::vector<ClusterObject> objects;  // each key once
  std::vector<ObjectKind> complete_kinds;
  // The time of the client, seconds since 1970; 0: not stated. The view keeps the latest.
  int64_t time_s = 0;
  // Names that the ids in this batch refer to: View::names_for() of this batch, with names added.
  ResourceNames resource_names;
  // Amounts that were clamped when the batch was made.
  int64_t clamped_amounts = 0;
};

// Applies batches, all of a batch or nothing. Not thread-safe; const members may run together.
class View {
 public:
  explicit View(const ViewLimits& limits) : limits_(limits) {}
  View& operator=(const View&) = delete;

  // Returns a copy that takes the place of this view, which a question still reads: nothing may be applied to
  // this one any more. Cost: O(nodes + pods + shapes + objects), in memory too.
  std::unique_ptr<View> Fork() const;

  // The names that a batch of this kind adds to: those of the state it will be applied to.
  const ResourceNames& names_for(const std::optional<FullListChunk>& full_list) const;

  // Applies `batch`, or stages it when it is a chunk of a full list that is not complete yet.
  // Errors: kInvalidArgument     wrong in any state: a slot twice or out of range, a node name twice, a pod
  //                              shape unknown or redefined while pods refer to it; names slot and node
  //         kFailedPrecondition  does not build on the state of the view, or has another resize rule; names
  //                              that state
  //         kResourceExhausted   names the limit and its value
  // What refers to more label keys than there is room for is left out alone: the rules of a pod that have
  // selectors, the selector of a budget, the template of a workload. So is what takes more memory: rules and
  // labels of a pod, labels and taints of a node, the content of an object.
  // Cost:   O(batch + pods that were on the replaced nodes); O(pods) when a new selector refers to a
  //         label key which none before it referred to.
  absl::Status Apply(const Batch& batch);
  // Checks a batch without changes, that names the state in which a question is asked.
  // Errors: kFailedPrecondition  the view is in another state
  absl::Status CheckState(const Batch& batch) const;

  // Keeps the labels of these keys in the shapes of pods, which may split shapes: for a question whose
  // selectors the view has not seen. Returns for each entry whether there was room for all of its keys; if
  // not, none of them was added. Cost: as above.
  std::vector<bool> SelectLabelKeys(std::span<const SelectorKeys> wishes);
  // The label keys that are kept, sorted; they grow until the next full list.
  const LabelKeys& label_keys() const { return content_.label_keys; }
  // The latest time of a batch, seconds since 1970; 0: none stated one. Profiles of expected use age by it.
  int64_t time_s() const { return time_s_; }
  void AdvanceTime(int64_t time_s) { time_s_ = std::max(time_s_, time_s); }
  // How its pods count that are being resized.
  ResizeRule resize_rule() const { return content_.resize_rule; }

  // Has the node of an occupied slot stand there as one of another shape, with the same pods, until the next
  // record of it. Cost: O(pods of the node).
  void ShowNode(Slot slot, NodeShape shape);

  // Returns the objects of the view that could not be taken, or not in full. One that is replaced or removed
  // is not listed any more. Cost: O(1) where there is none; else O(pods).
  LeftOutList LeftOut() const;

  // The canonical shape of a client's id, or nullopt when the id was never sent.
  std::optional<int32_t> ShapeOf(int32_t id) const;

  // Another number each time that slots, shapes or objects of the cluster may have changed their meaning.
  int64_t version() const { return version_; }
  // Another number each time that a full list has put another cluster in place of the last one.
  int64_t cluster_number() const { return cluster_number_; }

  // A check failed while the view was being changed: it is neither as it was nor as it should be.
  bool half_applied() const { return half_applied_; }

  // Checks what the view and its cluster keep against nodes and pods. For tests, of a view that is not half
  // applied. Cost: O(nodes * resources + pods + shapes * labels).
  void CheckConsistent() const;

  const ViewLimits& limits() const { return limits_; }
  const Revision& revision() const { return revision_; }
  const ClusterState& cluster() const { return *content_.cluster; }
  int64_t clamped_amounts() const { return clamped_amounts_; }
  // The part of ViewLimits::bytes that is taken.
  int64_t bytes() const { return content_.bytes.total(); }

 private:
  // The pod shape that the client numbers by id: the canonical shape, and how many pods refer to it by this
  // id.
  struct ClientShape {
    int32_t shape = -1;  // in ClusterState::pod_shapes(); -1: not sent
    int32_t pods = 0;
    uint64_t fingerprint = 0;  // with all labels
    std::string labels;        // all labels, packed
    bool reduced = false;      // there was no room for its selectors, or for more: it is not as it was sent
  };
  struct Content {
    Content() = default;
    Content(const Content& other);
    Content& operator=(Content&&) = default;

    std::unique_ptr<ClusterState> cluster = std::make_unique<ClusterState>();
    ResizeRule resize_rule = ResizeRule::kPerContainer;
    std::vector<ClientShape> shapes;
    int32_t unreadable_shapes = 0;  // of them, with PodTraits::unreadable
    LabelKeys label_keys;
    absl::btree_map<std::string, int32_t> keys_of_namespace;  // how many it brought
    ViewBytes bytes;
    absl::flat_hash_map<Slot, int64_t> bytes_of_node;  // of them; none is 0
  };
  struct Staging {
    Revision revision;
    int32_t next_chunk = 0;
    int64_t clamped_amounts = 0;
    Content content;
  };

  View(const View&) = default;  // both have the same chunks of a full list
  absl::Status ApplyChanges(const Batch& batch);
  absl::Status ApplyChunk(const Batch& batch);
  absl::Status Refused(const Batch& batch, absl::string_view reason) const;
  absl::Status CheckContent(const Batch& batch, const Content& content) const;
  absl::Status CheckAmounts(const Batch& batch, const Content& content) const;
  absl::Status CheckShapes(const Batch& batch, const Content& content) const;
  absl::Status CheckNodes(const Batch& batch, const Content& content) const;
  std::vector<bool> AdmitLabelKeys(std::span<const SelectorKeys> wishes, Content* content) const;
  static void AddLabelKeys(LabelKeys keys, Content* content);
  static bool IsUnchanged(const PodShapeRecord& record, const Content& content);
  static int64_t BytesOfLabels(const ClientShape& shape) { return static_cast<int64_t>(shape.labels.size()); }
  absl::string_view NoRoom(const PodShape& shape, const std::string& labels, const Content& content) const;
  void ApplyShape(const PodShapeRecord& record, bool selects, Content* content) const;
  static int32_t AcquireShape(PodShape shape, Content* content);
  static void ReleaseShape(int32_t id, Content* content);
  void ApplyContent(const Batch& batch, Content* content) const;
  void SetNode(const NodeRecord& node, Content* content) const;
  static void CountNode(Slot slot, int64_t bytes, Content* content);
  static void RemoveNode(Slot slot, Content* content);
  void SetObject(ClusterObject object, bool readable, Content* content) const;
  static void ReleasePods(Slot slot, Content* content);
  static ViewBytes CountBytes(const Content& content);
  static void CheckKept(const Content& content);

  ViewLimits limits_;
  Revision revision_;
  Content content_;
  std::shared_ptr<Staging> staging_;
  int64_t clamped_amounts_ = 0;
  int64_t time_s_ = 0;
  int64_t version_ = 0;
  int64_t cluster_number_ = 0;
  bool half_applied_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_VIEW_H_
