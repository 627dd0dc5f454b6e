#include "core/size/membership.h"

#include <algorithm>
#include <string>

namespace loadline {
namespace {

// The answer of one place that asks for labels about the labels of a group.
class Asked {
 public:
  explicit Asked(const Labels& group) : group_(group) {}

  void For(const std::string& key, bool lists_value) {
    if (group_.Find(key) == nullptr) return;
    (lists_value ? matches_ : contradicts_) = true;
  }
  bool Holds() const { return matches_ && !contradicts_; }

 private:
  const Labels& group_;
  bool matches_ = false;
  bool contradicts_ = false;
};

bool SelectsBy(const Labels& node_selector, const Labels& group) {
  Asked asked(group);
  for (const Label& label : node_selector) {
    const std::string* const value = group.Find(label.key);
    asked.For(label.key, value != nullptr && *value == label.value);
  }
  return asked.Holds();
}

bool SelectsBy(const NodeSelectorTerm& term, const Labels& group) {
  Asked asked(group);
  for (const Requirement& requirement : term.labels) {
    if (requirement.op != SelectorOperator::kIn) continue;
    const std::string* const value = group.Find(requirement.key);
    asked.For(requirement.key, value != nullptr && std::binary_search(requirement.values.begin(),
                                                                      requirement.values.end(), *value));
  }
  return asked.Holds();
}

}  // namespace

bool IsMember(const Applicant& pod, const GroupSelector& group) {
  if (pod.of_daemon_set || pod.static_pod) return false;
  if (group.catch_all) {
    return !pod.states_affinity && (pod.rules == nullptr || pod.rules->node_selector.empty());
  }
  if (pod.rules == nullptr) return false;
  if (SelectsBy(pod.rules->node_selector, group.labels)) return true;
  if (!pod.rules->node_affinity.has_value()) return false;
  const std::vector<NodeSelectorTerm>& terms = pod.rules->node_affinity->terms;
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeSelectorTerm& term) { return SelectsBy(term, group.labels); });
}

}  // namespace loadline
