// No filter of kube-scheduler: a field that the engine does not know may be one that a filter reads, so a pod
// or a node that states one cannot be judged unless a filter refuses it.
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

class KnownFields : public NodeFilter {
 public:
  explicit KnownFields(const Snapshot& snapshot)
      : NodeFilter(FilterName::kNone, Scope::kNodeShape), snapshot_(snapshot) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    const std::string& field = snapshot_.node_shape(node).unknown_field;
    if (field.empty()) return true;
    if (why != nullptr)
      *why = CannotJudge(name(),
                         absl::StrCat("the node states ", field, ", a field that the engine does not know"));
    return false;
  }

 private:
  const Snapshot& snapshot_;
};

}  // namespace

MadeFilter MakeKnownFields(const FitContext& context) {
  MadeFilter made;
  made.filter = std::make_unique<KnownFields>(*context.snapshot);
  const std::string& field = context.rules->unknown_field;
  if (!field.empty()) {
    made.doubt = CannotJudge(
        FilterName::kNone, absl::StrCat("the pod states ", field, ", a field that the engine does not know"));
  }
  return made;
}

}  // namespace loadline
