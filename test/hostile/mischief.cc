#include "test/hostile/mischief.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr size_t kBatchBytes = 3'500'000;
// The most bytes that all rows together may send with one question.
constexpr size_t kMostTogetherBytes = 3'000'000;

// Adds the first of `count` objects to a text that lists sorts of them.
void Describe(absl::string_view sort, absl::string_view state, absl::string_view first, size_t count,
              std::string* text) {
  if (count == 0) return;
  k8s::v1::ObjectMeta metadata;
  ReadName(first, &metadata);
  absl::StrAppend(text, text->empty() ? "" : ", ", sort, " ", Quoted(metadata.namespace_()), "/",
                  Quoted(metadata.name()), " (", state, "1 of ", count, ")");
}

}  // namespace

std::string Mischief::Describe() const {
  std::string text;
  const auto describe = [&text](absl::string_view sort, absl::string_view state, const auto& objects,
                                const auto& bytes_of) {
    if (!objects.empty()) {
      loadline::Describe(sort, state, bytes_of(objects.front()), objects.size(), &text);
    }
  };
  const auto itself = [](const std::string& bytes) { return bytes; };
  describe("Pod", "waits, ", pending_, [](const v1::PendingPods& pods) { return pods.pod().pod(); });
  describe("Pod", "runs, ", bound_, [](const BoundPod& pod) { return pod.pod; });
  describe("Node", "", nodes_, itself);
  describe("Pod", "of a DaemonSet, ", daemon_pods_, itself);
  std::map<std::string, std::vector<std::string>> objects;
  for (const v1::ClusterObject& object : objects_) {
    objects[v1::ObjectKind_Name(object.kind())].push_back(object.object());
  }
  for (const auto& [kind, of_kind] : objects) describe(kind, "", of_kind, itself);
  if (!groups_.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "node group ", Quoted(groups_.front().node_group()),
                    " (1 of ", groups_.size(), ")");
  }
  return text;
}

void Mischief::Pending(const k8s::v1::Pod& pod, int32_t count) {
  v1::PendingPods& pods = pending_.emplace_back();
  pods.mutable_pod()->set_pod(pod.SerializeAsString());
  pods.set_count(count);
}

void Mischief::Bound(const k8s::v1::Pod& pod) {
  bound_.push_back({pod.SerializeAsString(), pod.metadata().name()});
}

void Mischief::DaemonPod(k8s::v1::Pod pod) {
  pod.mutable_metadata()->clear_name();
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->mutable_owner_references(0);
  owner->set_kind("DaemonSet");
  owner->set_name("hostile");
  daemon_pods_.push_back(pod.SerializeAsString());
}

size_t Mischief::QuestionBytes() const {
  size_t bytes = 0;
  for (const v1::PendingPods& pods : pending_) bytes += pods.ByteSizeLong();
  for (const std::string& pod : daemon_pods_) bytes += pod.size();
  for (const v1::ScalableGroup& group : groups_) bytes += group.ByteSizeLong();
  return bytes;
}

size_t Mischief::ViewBytes() const {
  size_t bytes = 0;
  for (const BoundPod& pod : bound_) bytes += pod.pod.size();
  for (const std::string& node : nodes_) bytes += node.size();
  for (const v1::ClusterObject& object : objects_) bytes += object.object().size();
  return bytes;
}

void Mischief::Add(const Mischief& other, size_t most_bytes) {
  const auto append = [](const auto& from, auto* to) { to->insert(to->end(), from.begin(), from.end()); };
  append(other.bound_, &bound_);
  append(other.nodes_, &nodes_);
  append(other.objects_, &objects_);
  if (QuestionBytes() + other.QuestionBytes() > most_bytes) return;
  append(other.pending_, &pending_);
  append(other.daemon_pods_, &daemon_pods_);
  append(other.groups_, &groups_);
}

std::vector<v1::Changes> Mischief::Batches(const v1::NodeRecord& victim, int32_t first_shape,
                                           int32_t first_slot) const {
  std::vector<v1::Changes> batches(1);
  size_t bytes = 0;
  const auto next = [&](size_t more) -> v1::Changes& {
    if (bytes > 0 && bytes + more > kBatchBytes) {
      batches.emplace_back();
      bytes = 0;
    }
    bytes += more;
    return batches.back();
  };
  for (const v1::ClusterObject& object : objects_) *next(object.object().size() + 16).add_objects() = object;
  int32_t slot = first_slot;
  for (const std::string& node : nodes_) {
    v1::NodeRecord* const record = next(node.size() + 16).add_nodes();
    record->set_slot(slot++);
    record->set_node(node);
  }
  v1::NodeRecord full = victim;
  int32_t id = first_shape;
  for (const BoundPod& pod : bound_) {
    v1::PodShape* const shape = next(pod.pod.size() + 16).add_pod_shapes();
    shape->set_id(id);
    shape->set_pod(pod.pod);
    v1::PodRecord* const record = full.add_pods();
    record->set_shape(id++);
    record->set_name(pod.name);
    record->set_uid("evil-" + std::to_string(id));
  }
  if (!bound_.empty()) *next(full.ByteSizeLong()).add_nodes() = full;
  return batches;
}

std::vector<HostileRow> Catalogue() {
  std::vector<HostileRow> rows = HostilePods();
  for (std::vector<HostileRow> more : {HostileRules(), HostileObjects()}) {
    for (HostileRow& row : more) rows.push_back(std::move(row));
  }
  return rows;
}

void BuildAllRows(Effect most, Mischief* mischief) {
  int number = 0;
  for (const HostileRow& row : Catalogue()) {
    if (row.effect > most) continue;
    Mischief one(absl::StrCat("-", ++number));
    row.build(&one);
    mischief->Add(one, kMostTogetherBytes);
  }
}

}  // namespace loadline
