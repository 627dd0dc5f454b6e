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
        pods_(context.pod->names.Find(kPods)),
        wanted_(CheckedRequests(*context.pod, *context.options)) {}

  bool AsksForRoom() const override { return true; }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const bool has_room = snapshot_.pods(node).size() < PodLimit(node);
    const bool fits = std::all_of(wanted_.begin(), wanted_.end(), [&](const CheckedRequest& want) {
      return want.value <= snapshot_.amount(node, want.id).free;
    });
    if (has_room && fits) return true;
    if (why != nullptr) *why = Explain(node, has_room);
    return false;
  }

 private:
  size_t PodLimit(NodeIndex node) const {
    return pods_.has_value() ? static_cast<size_t>(snapshot_.amount(node, *pods_).allocatable) : 0;
  }

  Verdict Explain(NodeIndex node, bool has_room) const {
    Verdict verdict = Refusal(name(), StatusClass::kUnschedulable, {});
    if (!has_room) verdict.reasons.push_back("Too many pods");
    for (const CheckedRequest& want : wanted_) {
      const NodeAmount& amount = snapshot_.amount(node, want.id);
      if (want.value <= amount.free) continue;
      verdict.reasons.push_back(absl::StrCat("Insufficient ", names_.name(want.id)));
      if (want.value > amount.allocatable) verdict.status_class = StatusClass::kUnschedulableAndUnresolvable;
    }
    std::sort(verdict.reasons.begin(), verdict.reasons.end());
    return verdict;
  }

  const Snapshot& snapshot_;
  const ResourceNames names_;
  const std::optional<ResourceId> pods_;
  const std::vector<CheckedRequest> wanted_;
};

}  // namespace

std::vector<CheckedRequest> CheckedRequests(const IncomingPod& pod, const FitOptions& options) {
  std::vector<CheckedRequest> checked;
  for (const CheckedRequest& entry : pod.shape.requests) {
    const absl::string_view name = pod.names.name(entry.id);
    if (entry.value > 0 && IsChecked(name) && !Ignored(options, name)) checked.push_back(entry);
  }
  return checked;
}

MadeFilter MakeNodeResourcesFit(const FitContext& context) {
  return {std::make_unique<NodeResourcesFit>(context), {}, {}};
}

}  // namespace loadline
