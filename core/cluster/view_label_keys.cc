// Chooses the labels by which a view tells pods apart.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "core/cluster/packed_labels.h"
#include "core/cluster/view.h"

namespace loadline {
namespace {

// `keys` and `more`, sorted, each once.
LabelKeys Merge(LabelKeys keys, const LabelKeys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

std::vector<bool> View::SelectLabelKeys(std::span<const SelectorKeys> wishes) {
  half_applied_ = true;  // until the end: what throws in between leaves it set
  const size_t before = content_.label_keys.size();
  std::vector<bool> admitted = AdmitLabelKeys(wishes, &content_);
  if (content_.label_keys.size() != before) ++version_;
  half_applied_ = false;
  return admitted;
}

// Each namespace has room of its own for keys that nobody else refers to, so that one that invents keys
// leaves out its own pods.
std::vector<bool> View::AdmitLabelKeys(std::span<const SelectorKeys> wishes, Content* content) const {
  std::set<absl::string_view> known(content->label_keys.begin(), content->label_keys.end());
  LabelKeys added;
  std::vector<bool> admitted;
  admitted.reserve(wishes.size());
  for (const SelectorKeys& wish : wishes) {
    std::set<absl::string_view> fresh;
    for (const std::string& key : wish.keys) {
      if (!known.contains(absl::string_view(key))) fresh.insert(key);
    }
    bool room = true;
    if (!fresh.empty()) {
      const auto max = [](int32_t limit) { return static_cast<size_t>(limit); };
      const std::string namespace_name(wish.namespace_name.data(), wish.namespace_name.size());
      const auto brought = content->keys_of_namespace.find(namespace_name);
      const size_t before = brought == content->keys_of_namespace.end() ? 0 : max(brought->second);
      room = known.size() + fresh.size() <= max(limits_.label_keys) &&
             before + fresh.size() <= max(limits_.label_keys_of_namespace);
      if (room) {
        content->keys_of_namespace[namespace_name] += static_cast<int32_t>(fresh.size());
        for (const absl::string_view key : fresh) added.emplace_back(key.data(), key.size());
        known.insert(fresh.begin(), fresh.end());
      }
    }
    admitted.push_back(room);
  }
  AddLabelKeys(std::move(added), content);
  return admitted;
}

// Pods that have a label of a new key get shapes that tell it.
void View::AddLabelKeys(LabelKeys keys, Content* content) {
  LabelKeys merged = Merge(std::move(keys), content->label_keys);
  LabelKeys added;
  std::set_difference(merged.begin(), merged.end(), content->label_keys.begin(), content->label_keys.end(),
                      std::back_inserter(added));
  if (added.empty()) return;
  content->label_keys = std::move(merged);
  const ShapeTable<PodShape>& shapes = content->cluster->pod_shapes();
  std::vector<int32_t> by_tag(content->shapes.size(), -1);
  std::vector<int32_t> former;
  for (size_t id = 0; id < content->shapes.size(); ++id) {
    ClientShape& client_shape = content->shapes[id];
    by_tag[id] = client_shape.shape;
    if (client_shape.shape < 0 || shapes[client_shape.shape].finished) continue;
    Labels labels = shapes[client_shape.shape].labels;
    const size_t before = labels.size();
    VisitLabels(client_shape.labels, [&](absl::string_view key, absl::string_view value) {
      if (std::binary_search(added.begin(), added.end(), key)) labels.Set(key, value);
    });
    if (labels.size() == before) continue;
    PodShape shape = shapes[client_shape.shape];
    SetLabels(std::move(labels), &shape);
    former.push_back(client_shape.shape);
    client_shape.shape = by_tag[id] = AcquireShape(std::move(shape), content);
  }
  if (former.empty()) return;
  content->cluster->ReplacePodShapes(by_tag);
  for (const int32_t shape : former) ReleaseShape(shape, content);
}

}  // namespace loadline
