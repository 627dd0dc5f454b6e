// NodeResourcesFit: there is room for one more pod, and for each resource that the pod requests more than 0
// of, request <= allocatable - requested. Every shortage is a reason. The refusal is
// UnschedulableAndUnresolvable when one request is more than the allocatable by itself; "Too many pods" alone
// never is. What a device class serves on a node that does not offer it, DynamicResources decides there.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

constexpr char kPods[] = "pods";

// Only extended resources can be ignored.
bool Ignored(const FitOptions& options, absl::string_view name) {
  if (options.ignored_resources.empty() && options.ignored_resource_groups.empty()) return false;
  if (!IsExtendedName(name)) return false;
  return options.ignored_resources.contains(name) ||
         options.ignored_resource_groups.contains(name.substr(0, name.find('/')));
}

// Resources other than the three that every node has count if their name is one that the scheduler knows as a
// scalar: extended, huge pages, Kubernetes' own with a prefix, or attachable volumes.
bool IsChecked(absl::string_view name) {
  if (name == "cpu" || name == "memory" || name == "ephemeral-storage") return true;
  return IsExtendedName(name) || absl::StartsWith(name, "hugepages-") ||
         absl::StrContains(name, "kubernetes.io/") || absl::StartsWith(name, "attachable-volumes-");
}

class NodeResourcesFit : public NodeFilter {
 public:
  explicit NodeResourcesFit(const FitContext& context)
      : NodeFilter(FilterName::kNodeResourcesFit, Scope::kNode),
        snapshot_(*context.snapshot),
        names_(context.pod->names),
        pods_(context.pod->names.Find(kPods)) {
    for (const CheckedRequest& want : CheckedRequests(*context.pod, *context.options)) {
      const DeviceService service = ServiceOf(want.id, context);
      wanted_.push_back({want, service != DeviceService::kNobody});
    }
  }

  bool AsksForRoom() const override { return true; }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const bool has_room = snapshot_.pods(node).size() < PodLimit(node);
    const bool fits =
        std::all_of(wanted_.begin(), wanted_.end(), [&](const Wanted& want) { return !Lacks(node, want); });
    if (has_room && fits) return true;
    if (why != nullptr) *why = Explain(node, has_room);
    return false;
  }

 private:
  struct Wanted {
    CheckedRequest request;
    bool by_devices;  // not for us to refuse where the node offers none
  };

  bool Lacks(NodeIndex node, const Wanted& want) const {
    const NodeAmount& amount = snapshot_.amount(node, want.request.id);
    return want.request.value > amount.free && !(want.by_devices && amount.allocatable == 0);
  }

  size_t PodLimit(NodeIndex node) const {
    return pods_.has_value() ? static_cast<size_t>(snapshot_.amount(node, *pods_).allocatable) : 0;
  }

  Verdict Explain(NodeIndex node, bool has_room) const {
    Verdict verdict = Refusal(name(), StatusClass::kUnschedulable, {});
    if (!has_room) verdict.reasons.push_back("Too many pods");
    for (const Wanted& want : wanted_) {
      if (!Lacks(node, want)) continue;
      const auto& [id, value] = want.request;
      verdict.reasons.push_back(absl::StrCat("Insufficient ", names_.name(id)));
      if (value > snapshot_.amount(node, id).allocatable)
        verdict.status_class = StatusClass::kUnschedulableAndUnresolvable;
    }
    std::sort(verdict.reasons.begin(), verdict.reasons.end());
    return verdict;
  }

  const Snapshot& snapshot_;
  const ResourceNames names_;
  const std::optional<ResourceId> pods_;
  std::vector<Wanted> wanted_;
};

}  // namespace

bool IsExtendedName(absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos || absl::StrContains(name, "kubernetes.io/")) return false;
  if (absl::StartsWith(name, "requests.")) return false;
  return IsLabelKey(absl::StrCat("requests.", name));
}

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
