// NodeResourcesFit: there is room for one more pod, and for each resource that the pod requests more than 0
// of, request <= allocatable - requested. Every shortage is a reason. The refusal is
// UnschedulableAndUnresolvable when one request is more than the allocatable by itself; "Too many pods" alone
// never is.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

constexpr char kPods[] = "pods";

// Names like "example.com/gpu" that are not Kubernetes' own: only they can be ignored.
bool IsExtended(absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos || absl::StrContains(name, "kubernetes.io/")) return false;
  if (absl::StartsWith(name, "requests.")) return false;
  return IsLabelKey(absl::StrCat("requests.", name));
}

bool Ignored(const FitOptions& options, absl::string_view name) {
  if (options.ignored_resources.empty() && options.ignored_resource_groups.empty()) return false;
  if (!IsExtended(name)) return false;
  return options.ignored_resources.contains(name) ||
         options.ignored_resource_groups.contains(name.substr(0, name.find('/')));
}

// Resources other than the three that every node has count if their name is one that the scheduler knows as a
// scalar: extended, huge pages, Kubernetes' own with a prefix, or attachable volumes.
bool IsChecked(absl::string_view name) {
  if (name == "cpu" || name == "memory" || name == "ephemeral-storage") return true;
  return IsExtended(name) || absl::StartsWith(name, "hugepages-") ||
         absl::StrContains(name, "kubernetes.io/") || absl::StartsWith(name, "attachable-volumes-");
}

class NodeResourcesFit : public NodeFilter {
 public:
  explicit NodeResourcesFit(const FitContext& context)
      : NodeFilter(FilterName::kNodeResourcesFit, Scope::kNode),
        snapshot_(*context.snapshot),
        names_(context.pod->names),
        pods_(context.pod->names.Find(kPods)) {
    for (const auto& [resource, request] : context.pod->shape.requests) {
      const absl::string_view name = names_.name(resource);
      if (request > 0 && IsChecked(name) && !Ignored(*context.options, name))
        wanted_.push_back({resource, request});
    }
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const bool has_room = snapshot_.pods(node).size() < PodLimit(node);
    const bool fits = std::all_of(wanted_.begin(), wanted_.end(), [&](const Want& want) {
      return want.request <= snapshot_.amount(node, want.resource).free;
    });
    if (has_room && fits) return true;
    if (why != nullptr) *why = Explain(node, has_room);
    return false;
  }

 private:
  struct Want {
    ResourceId resource;
    int64_t request;
  };

  size_t PodLimit(NodeIndex node) const {
    return pods_.has_value() ? static_cast<size_t>(snapshot_.amount(node, *pods_).allocatable) : 0;
  }

  Verdict Explain(NodeIndex node, bool has_room) const {
    Verdict verdict = Refusal(name(), StatusClass::kUnschedulable, {});
    if (!has_room) verdict.reasons.push_back("Too many pods");
    for (const Want& want : wanted_) {
      const NodeAmount& amount = snapshot_.amount(node, want.resource);
      if (want.request <= amount.free) continue;
      verdict.reasons.push_back(absl::StrCat("Insufficient ", names_.name(want.resource)));
      if (want.request > amount.allocatable)
        verdict.status_class = StatusClass::kUnschedulableAndUnresolvable;
    }
    std::sort(verdict.reasons.begin(), verdict.reasons.end());
    return verdict;
  }

  const Snapshot& snapshot_;
  const ResourceNames names_;
  const std::optional<ResourceId> pods_;
  std::vector<Want> wanted_;
};

}  // namespace

MadeFilter MakeNodeResourcesFit(const FitContext& context) {
  return {std::make_unique<NodeResourcesFit>(context), {}, {}};
}

}  // namespace loadline
