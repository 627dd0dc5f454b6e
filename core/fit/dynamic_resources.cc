// DynamicResources: allocates devices to resource claims, and to extended resources that a device class
// serves where the node offers none of its own. The engine knows no devices: a pod with claims cannot be
// judged unless another filter refuses it, and neither can one that needs such devices on a node.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

// Before the name of a device class: a resource that every class serves.
constexpr char kClassPrefix[] = "deviceclass.resource.kubernetes.io/";

bool AllDeviceClassesKnown(const ClusterObjects& objects) {
  if (!objects.complete(ObjectKind::kDeviceClass)) return false;
  const auto left_out = objects.unreadable().lower_bound({ObjectKind::kDeviceClass, "", ""});
  return left_out == objects.unreadable().end() || left_out->first.kind != ObjectKind::kDeviceClass;
}

bool AnyNodeOffers(ResourceId resource, const FitContext& context) {
  constexpr int32_t kNodesPerUnit = 64;
  const Snapshot& snapshot = *context.snapshot;
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    if (i % kNodesPerUnit == 0 && !context.budget->Spend()) {
      *context.cut_short = true;
      return false;
    }
    const NodeIndex node{i};
    if (snapshot.Contains(node) && snapshot.amount(node, resource).allocatable > 0) return true;
  }
  return false;
}

class DynamicResources : public NodeFilter {
 public:
  struct Need {
    ResourceId resource;
    std::string doubt;
  };

  DynamicResources(const Snapshot& snapshot, std::vector<Need> needs)
      : NodeFilter(FilterName::kDynamicResources, Scope::kNode),
        snapshot_(snapshot),
        needs_(std::move(needs)) {}

  bool Passes(NodeIndex node, Verdict* why) const override {
    for (const Need& need : needs_) {
      if (snapshot_.amount(node, need.resource).allocatable != 0) continue;
      if (why != nullptr) *why = CannotJudge(name(), need.doubt);
      return false;
    }
    return true;
  }

 private:
  const Snapshot& snapshot_;
  const std::vector<Need> needs_;
};

}  // namespace

DeviceService ServiceOf(ResourceId resource, const FitContext& context) {
  const absl::string_view name = context.pod->names.name(resource);
  const ClusterObjects& objects = context.snapshot->objects();
  const bool by_class = absl::StartsWith(name, kClassPrefix);
  if (!by_class && !IsExtendedName(name)) return DeviceService::kNobody;
  for (const auto& [key, object] : objects.of(ObjectKind::kDeviceClass)) {
    if (std::get<DeviceClass>(object.content).extended_resource == name) return DeviceService::kDeviceClass;
    if (by_class && name.substr(sizeof(kClassPrefix) - 1) == key.name) return DeviceService::kDeviceClass;
  }
  if (AllDeviceClassesKnown(objects) || AnyNodeOffers(resource, context)) return DeviceService::kNobody;
  return DeviceService::kUnknown;
}

MadeFilter MakeDynamicResources(const FitContext& context) {
  MadeFilter made;
  if (context.rules->claims_resources) {
    made.doubt = CannotJudge(FilterName::kDynamicResources, "the pod has resource claims");
  }
  const std::vector<CheckedRequest> checked = CheckedRequests(*context.pod, *context.options);
  const auto asked_for = [&](ResourceId resource) {
    const auto found = std::lower_bound(
        checked.begin(), checked.end(), resource,
        [](const CheckedRequest& request, ResourceId wanted) { return request.id < wanted; });
    return found != checked.end() && found->id == resource;
  };
  std::vector<DynamicResources::Need> needs;
  for (const auto& [resource, amount] : context.pod->shape.requests) {
    if (amount <= 0) continue;
    const absl::string_view name = context.pod->names.name(resource);
    switch (ServiceOf(resource, context)) {
      case DeviceService::kNobody:
        break;
      case DeviceService::kDeviceClass:
        needs.push_back(
            {resource,
             absl::StrCat(name, " belongs to a device class whose devices the engine does not know")});
        break;
      case DeviceService::kUnknown:
        if (!asked_for(resource)) break;  // ignored: somebody else serves it
        needs.push_back(
            {resource, absl::StrCat("no node offers ", name,
                                    ", and the view does not hold all device classes, of which one may")});
        break;
    }
  }
  if (!needs.empty()) made.filter = std::make_unique<DynamicResources>(*context.snapshot, std::move(needs));
  return made;
}

}  // namespace loadline
