// NodeDeclaredFeatures: the node declares every feature that the pod requires of it.
#include <algorithm>

#include "core/fit/filters.h"

namespace loadline {
namespace {

class NodeDeclaredFeatures : public NodeFilter {
 public:
  explicit NodeDeclaredFeatures(const FitContext& context)
      : NodeFilter(FilterName::kNodeDeclaredFeatures, Scope::kNodeShape),
        snapshot_(*context.snapshot),
        required_(context.rules->required_features) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    const std::vector<std::string>& declared = snapshot_.node_shape(node).declared_features;
    if (std::includes(declared.begin(), declared.end(), required_.begin(), required_.end())) return true;
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                  "node(s) didn't match Pod's required features");
  }

 private:
  const Snapshot& snapshot_;
  const std::vector<std::string>& required_;
};

}  // namespace

MadeFilter MakeNodeDeclaredFeatures(const FitContext& context) {
  if (context.rules->required_features.empty()) return {};
  return {std::make_unique<NodeDeclaredFeatures>(context), {}, {}};
}

}  // namespace loadline
