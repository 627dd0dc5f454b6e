// The objects that one tenant adds to a cluster, whether from malice or by accident.
#ifndef LOADLINE_TEST_HOSTILE_MISCHIEF_H_
#define LOADLINE_TEST_HOSTILE_MISCHIEF_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/scale_up_plan.pb.h"

namespace loadline {

// The objects of a row, as bytes that a client would send.
class Mischief {
 public:
  // `suffix`: of the names of nodes, objects and groups, so that those of several rows keep apart.
  explicit Mischief(std::string suffix = "") : suffix_(std::move(suffix)) {}

  // A pod that waits for a node.
  void Pending(const k8s::v1::Pod& pod, int32_t count = 1);
  // A pod that runs on the node "victim".
  void Bound(const k8s::v1::Pod& pod);
  // A node beside those of the cluster.
  void Node(k8s::v1::Node node) {
    node.mutable_metadata()->set_name(node.metadata().name() + suffix_);
    nodes_.push_back(node.SerializeAsString());
  }
  template <typename Message>
  void Object(v1::ObjectKind kind, Message object) {
    object.mutable_metadata()->set_name(object.metadata().name() + suffix_);
    v1::ClusterObject& message = objects_.emplace_back();
    message.set_kind(kind);
    message.set_object(object.SerializeAsString());
  }
  // The template of a DaemonSet that runs on each new node.
  // The pod of a DaemonSet "hostile", as a client sends it: without a name.
  void DaemonPod(k8s::v1::Pod pod);
  void Group(v1::ScalableGroup group) {
    group.set_node_group(group.node_group() + suffix_);
    groups_.push_back(std::move(group));
  }
  // Adds all of `other` as well, as far as the pods that wait, and those of new nodes, stay below
  // `most_bytes`.
  void Add(const Mischief& other, size_t most_bytes);

  // Returns the changes of the view, in batches below 4 MiB; `victim` is the record of that node, which gets
  // the bound pods.
  std::vector<v1::Changes> Batches(const v1::NodeRecord& victim, int32_t first_shape,
                                   int32_t first_slot) const;

  // Returns the first object of each sort with its namespace, and how many there are: "Pod evil/p (waits, 1
  // of 300), POD_DISRUPTION_BUDGET evil/b (1 of 2)". A name that no object has is "".
  std::string Describe() const;

  // Returns the size of all that is sent to a view.
  size_t ViewBytes() const;

  const std::vector<v1::PendingPods>& pending() const { return pending_; }
  const std::vector<std::string>& daemon_pods() const { return daemon_pods_; }
  const std::vector<v1::ScalableGroup>& groups() const { return groups_; }

 private:
  struct BoundPod {
    std::string pod;
    std::string name;
  };

  size_t QuestionBytes() const;

  std::string suffix_;
  std::vector<v1::PendingPods> pending_;
  std::vector<BoundPod> bound_;
  std::vector<std::string> nodes_;
  std::vector<v1::ClusterObject> objects_;
  std::vector<std::string> daemon_pods_;
  std::vector<v1::ScalableGroup> groups_;
};

// The object that has to be named if it cannot be read. An empty kind: nobody has to be, since the object may
// be taken; an empty name: any of that kind.
struct Culprit {
  std::string kind;
  std::string namespace_name;
  std::string name;
};

// The effect of the objects of a row on the answers of others.
enum class Effect {
  kNone,       // none: every answer is as without them
  kTakesRoom,  // they take room, as pods and nodes may: each pod of others finds a place as without them
  kTakesAll,  // they take all the room that groups may ever have; what is not about places is as without them
};

struct HostileRow {
  std::string name;
  void (*build)(Mischief* mischief);
  Culprit culprit;
  Effect effect = Effect::kNone;
};

// Its name, for the output of a test that fails.
inline void PrintTo(const HostileRow& row, std::ostream* out) { *out << row.name; }

// The catalogue: tools of attack that an API server lets through, and the bounds of our own messages.
std::vector<HostileRow> HostilePods();
std::vector<HostileRow> HostileRules();  // pods with affinity, spreading, tolerations, selectors
std::vector<HostileRow> HostileObjects();
std::vector<HostileRow> Catalogue();  // all of them
// All rows of this effect or a smaller one at once, as far as a question has room for their pods.
void BuildAllRows(Effect most, Mischief* mischief);

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_MISCHIEF_H_
