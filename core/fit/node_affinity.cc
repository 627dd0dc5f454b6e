// NodeAffinity: the scheduler's added affinity, the pod's nodeSelector and its required node affinity all
// match. Before nodes are looked at: if every term of the affinity pins metadata.name by In, only the nodes
// so named are looked at (of several pins in a term, those in all of them); if that leaves no name, the terms
// conflict.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/fit/filters.h"

namespace loadline {
namespace {

// Sorted names that all terms together pin, or nullopt when a term pins none.
std::optional<std::vector<std::string>> PinnedNames(const NodeSelector& selector) {
  std::vector<std::string> names;
  for (const NodeSelectorTerm& term : selector.terms) {
    if (!term.pinned.has_value()) return std::nullopt;
    names.insert(names.end(), term.pinned->begin(), term.pinned->end());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class NodeAffinity : public NodeFilter {
 public:
  NodeAffinity(const FitContext& context, Scope scope, std::optional<std::vector<std::string>> pinned)
      : NodeFilter(FilterName::kNodeAffinity, scope),
        snapshot_(*context.snapshot),
        rules_(*context.rules),
        added_(context.options->added_affinity),
        pinned_(std::move(pinned)) {}

  // The part that depends on the shape of the node only is asked once for each shape.
  int64_t UnitsPerNode() const override {
    constexpr size_t kTermsPerUnit = 4;
    if (scope() == Scope::kNodeShape || !rules_.node_affinity.has_value()) return 0;
    return static_cast<int64_t>(rules_.node_affinity->terms.size() / kTermsPerUnit);
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const NodeLabels labels = snapshot_.labels(node);
    if (added_.has_value() && !added_->Matches(labels)) {
      return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                    "node(s) didn't match scheduler-enforced node affinity");
    }
    if (MatchesNodeAffinity(rules_, labels)) return true;
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                  "node(s) didn't match Pod's node affinity/selector");
  }

  bool LooksAt(NodeIndex node, Verdict* why) const override {
    if (!pinned_.has_value() || std::binary_search(pinned_->begin(), pinned_->end(), snapshot_.name(node))) {
      return true;
    }
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                  "node(s) didn't satisfy plugin(s) [NodeAffinity]");
  }

 private:
  const Snapshot& snapshot_;
  const PodRules& rules_;
  const std::optional<NodeSelector>& added_;
  const std::optional<std::vector<std::string>> pinned_;
};

}  // namespace

bool MatchesNodeAffinity(const PodRules& rules, const NodeLabels& node) {
  return HasAll(rules.node_selector, node) &&
         (!rules.node_affinity.has_value() || rules.node_affinity->Matches(node));
}

bool AffinityNamesNodes(const PodRules& rules) {
  return rules.node_selector.Find(kHostnameLabel) != nullptr ||
         (rules.node_affinity.has_value() && rules.node_affinity->NamesNodes());
}

MadeFilter MakeNodeAffinity(const FitContext& context) {
  const PodRules& rules = *context.rules;
  const std::optional<NodeSelector>& added = context.options->added_affinity;
  if (rules.node_selector.empty() && !rules.node_affinity.has_value() && !added.has_value()) return {};
  std::optional<std::vector<std::string>> pinned;
  if (rules.node_affinity.has_value() && !rules.node_affinity->terms.empty()) {
    pinned = PinnedNames(*rules.node_affinity);
    if (pinned.has_value() && pinned->empty()) {
      return {nullptr,
              Refusal(FilterName::kNodeAffinity, StatusClass::kUnschedulableAndUnresolvable,
                      {"pod affinity terms conflict"}),
              {}};
    }
  }
  const bool names_nodes = AffinityNamesNodes(rules) || (added.has_value() && added->NamesNodes());
  return {std::make_unique<NodeAffinity>(context, names_nodes ? Scope::kNode : Scope::kNodeShape,
                                         std::move(pinned)),
          {},
          {}};
}

}  // namespace loadline
