#include "core/size/memberships.h"

#include <algorithm>
#include <string>

#include "core/cluster/pod_traits.h"

namespace loadline {

Memberships::Memberships(std::span<const SizedGroup> groups, const ClusterObjects& objects)
    : all_(groups), objects_(objects) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const int32_t group = static_cast<int32_t>(i);
    const GroupSelector& pods = groups[i].pods;
    if (!pods.labels.empty()) by_first_label_[KeyOf(*pods.labels.begin())].push_back(group);
    if (pods.catch_all) {
      catch_all_.push_back(group);
      continue;
    }
    for (const Label& label : pods.labels) by_label_[KeyOf(label)].push_back(group);
  }
}

void Memberships::AddCandidates(const Index& index, absl::string_view key, absl::string_view value) {
  const auto found = index.find(Key{key, value});
  if (found == index.end()) return;
  candidates_.insert(candidates_.end(), found->second.begin(), found->second.end());
}

void Memberships::AddCandidates(const NodeSelector& selector) {
  for (const NodeSelectorTerm& term : selector.terms) {
    for (const Requirement& requirement : term.labels) {
      if (requirement.op != SelectorOperator::kIn) continue;
      for (const std::string& value : requirement.values) AddCandidates(by_label_, requirement.key, value);
    }
  }
}

template <typename Predicate>
Memberships::Range Memberships::Keep(Predicate belongs) {
  std::sort(candidates_.begin(), candidates_.end());
  candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
  const int64_t begin = static_cast<int64_t>(groups_.size());
  if (!ok()) return {begin, begin};
  for (const int32_t group : candidates_) {
    if (belongs(group)) groups_.push_back(group);
  }
  return {begin, static_cast<int64_t>(groups_.size())};
}

Memberships::Range Memberships::OfNode(const NodeShape& shape) {
  const auto [found, fresh] = by_node_shape_.try_emplace(&shape);
  if (!fresh) return found->second;
  candidates_.clear();
  for (const Label& label : shape.labels) AddCandidates(by_first_label_, label.key, label.value);
  const NodeLabels labels{&shape.labels, nullptr, ""};
  found->second = Keep([&](int32_t group) { return HasAll(At(group).pods.labels, labels); });
  return found->second;
}

Memberships::Range Memberships::OfPod(const PodShape& shape) {
  const PodTraits& traits = TraitsOf(shape);
  const PodRules* const rules = shape.rules.get();
  candidates_ = catch_all_;
  if (rules != nullptr) {
    for (const Label& label : rules->node_selector) AddCandidates(by_label_, label.key, label.value);
    if (rules->node_affinity.has_value()) AddCandidates(*rules->node_affinity);
  }
  Applicant pod{.rules = rules, .states_affinity = traits.states_affinity};
  return Keep([&](int32_t group) {
    const bool compat = IsCompat(At(group));
    pod.of_daemon_set = compat ? traits.owner.has_value() && traits.owner->kind == "DaemonSet"
                               : OfKnownDaemonSet(shape, objects_);
    pod.static_pod = traits.static_pod || (!compat && traits.mirror);
    return IsMember(pod, At(group).pods);
  });
}

}  // namespace loadline
