// NodeName: a pod that names its node is placed there and nowhere else.
#include "core/fit/filters.h"

namespace loadline {
namespace {

class NodeName : public NodeFilter {
 public:
  explicit NodeName(const FitContext& context)
      : NodeFilter(FilterName::kNodeName, Scope::kNode),
        snapshot_(*context.snapshot),
        name_(context.rules->node_name) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (snapshot_.name(node) == name_) return true;
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                  "node(s) didn't match the requested node name");
  }

 private:
  const Snapshot& snapshot_;
  const std::string& name_;
};

}  // namespace

MadeFilter MakeNodeName(const FitContext& context) {
  if (context.rules->node_name.empty()) return {};
  return {std::make_unique<NodeName>(context), {}, {}};
}

}  // namespace loadline
