#include "core/cluster/shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// In name order: ids depend on the order of arrival.
void AddAmounts(const ResourceAmounts& amounts, const ResourceNames& names, FingerprintBuilder* builder) {
  std::vector<std::pair<absl::string_view, int64_t>> sorted;
  for (const auto& [resource, amount] : amounts) sorted.emplace_back(names.name(resource), amount);
  std::sort(sorted.begin(), sorted.end());
  builder->Add(static_cast<int64_t>(sorted.size()));
  for (const auto& [name, amount] : sorted) {
    builder->Add(name);
    builder->Add(amount);
  }
}

// In name order as well.
void AddPartialLimits(const std::vector<PartialLimit>& limits, const ResourceNames& names,
                      FingerprintBuilder* builder) {
  std::vector<const PartialLimit*> sorted;
  for (const PartialLimit& limit : limits) sorted.push_back(&limit);
  std::sort(sorted.begin(), sorted.end(), [&](const PartialLimit* a, const PartialLimit* b) {
    return names.name(a->resource) < names.name(b->resource);
  });
  builder->Add(static_cast<int64_t>(sorted.size()));
  for (const PartialLimit* const limit : sorted) {
    builder->Add(names.name(limit->resource));
    builder->Add(int64_t{limit->bounded} + 2 * int64_t{limit->stated});
    builder->Add(limit->by_request);
    builder->Add(limit->with_gap);
    builder->Add(limit->whole);
  }
}

template <typename Content>
bool SameContent(const std::shared_ptr<const Content>& a, const std::shared_ptr<const Content>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

// Works out the fingerprints of a shape without labels.
void SetFingerprint(const ResourceNames& names, PodShape* shape) {
  FingerprintBuilder builder;
  builder.Add(absl::string_view(shape->namespace_name));
  builder.Add(int64_t{shape->finished});
  builder.Add(int64_t{shape->best_effort} + 2 * int64_t{shape->partly_requested});
  AddAmounts(shape->requests, names, &builder);
  AddAmounts(shape->limits, names, &builder);
  AddAmounts(shape->proposal_limits, names, &builder);
  if (shape->partial_limits != nullptr) AddPartialLimits(*shape->partial_limits, names, &builder);
  if (shape->rules != nullptr) shape->rules->AddTo(&builder);
  if (shape->traits != nullptr) shape->traits->AddTo(&builder);
  shape->base_fingerprint = shape->fingerprint = builder.Finish();
}

}  // namespace

bool operator==(const PodShape& a, const PodShape& b) {
  return SameContent(a.rules, b.rules) && SameContent(a.traits, b.traits) && a.fingerprint == b.fingerprint &&
         a.finished == b.finished && a.best_effort == b.best_effort &&
         a.partly_requested == b.partly_requested && a.namespace_name == b.namespace_name &&
         a.requests == b.requests && a.limits == b.limits && a.proposal_limits == b.proposal_limits &&
         SameContent(a.partial_limits, b.partial_limits) && a.labels == b.labels;
}

PodShape MakePodShape(std::string namespace_name, bool finished, const PodResources& resources,
                      const ResourceNames& names, PodRole role, PodRules rules, PodTraits traits) {
  PodShape shape;
  shape.namespace_name = std::move(namespace_name);
  shape.finished = finished;
  if (!finished) {
    const bool existing = role == PodRole::kExisting;
    shape.best_effort = IsBestEffort(resources);
    shape.requests = ToAmounts(EffectiveRequests(resources, names, existing));
    shape.partly_requested =
        shape.requests.Get(kCpu) > 0 && shape.requests.Get(kMemory) > 0 && LacksRequests(resources);
    shape.limits = ToAmounts(EffectiveLimits(resources, names, existing));
    shape.proposal_limits = existing ? ProposalExistingLimits(resources) : ProposalIncomingLimits(resources);
    std::vector<PartialLimit> partial = PartialLimits(resources, names, existing);
    if (!partial.empty()) {
      shape.partial_limits = std::make_shared<const std::vector<PartialLimit>>(std::move(partial));
    }
    if (!rules.IsPlain()) shape.rules = std::make_shared<const PodRules>(std::move(rules));
  }
  if (traits != PodTraits()) shape.traits = std::make_shared<const PodTraits>(std::move(traits));
  SetFingerprint(names, &shape);
  return shape;
}

PodShape RoomOf(const PodShape& shape, const ResourceNames& names) {
  PodShape room = shape;
  room.rules = nullptr;
  room.traits = nullptr;
  room.labels = {};
  SetFingerprint(names, &room);
  return room;
}

uint64_t FilterFingerprint(const PodShape& shape, const ResourceNames& names) {
  FingerprintBuilder builder;
  builder.Add(absl::string_view(shape.namespace_name));
  AddAmounts(shape.requests, names, &builder);
  builder.Add(int64_t{shape.rules != nullptr});
  if (shape.rules != nullptr) shape.rules->AddTo(&builder);
  shape.labels.AddTo(&builder);
  return builder.Finish();
}

PartialLimit LimitOf(const PodShape& shape, ResourceId resource) {
  if (shape.partial_limits != nullptr) {
    for (const PartialLimit& limit : *shape.partial_limits) {
      if (limit.resource == resource) return limit;
    }
  }
  return LimitOfOneContainer(resource, shape.requests.Get(resource), shape.limits.Get(resource));
}

const PodTraits& TraitsOf(const PodShape& shape) {
  static const PodTraits* const kNone = new PodTraits;
  return shape.traits == nullptr ? *kNone : *shape.traits;
}

void SelectLabels(const Labels& labels, const LabelKeys& keys, PodShape* shape) {
  if (shape->finished || labels.empty() || keys.empty()) return;
  std::vector<Label> selected;
  for (const Label& label : labels) {
    if (std::binary_search(keys.begin(), keys.end(), label.key)) selected.push_back(label);
  }
  if (selected.empty()) return;
  SetLabels(Labels(std::move(selected)), shape);
}

void SetLabels(Labels labels, PodShape* shape) {
  shape->labels = std::move(labels);
  shape->fingerprint = FingerprintWithLabels(shape->base_fingerprint, shape->labels);
}

uint64_t FingerprintWithLabels(uint64_t base_fingerprint, const Labels& labels) {
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(base_fingerprint));
  labels.AddTo(&builder);
  return builder.Finish();
}

namespace {

void SetUnreadable(const std::string& reason, PodShape* shape) {
  PodTraits traits = TraitsOf(*shape);
  traits.unreadable = reason;
  shape->traits = std::make_shared<const PodTraits>(std::move(traits));
}

}  // namespace

void LeaveOutSelectors(const std::string& reason, PodShape* shape) {
  SetUnreadable(reason, shape);
  if (shape->rules == nullptr) return;
  PodRules rules = *shape->rules;
  rules.spread.clear();
  rules.affinity.clear();
  rules.anti_affinity.clear();
  shape->rules = rules.IsPlain() ? nullptr : std::make_shared<const PodRules>(std::move(rules));
}

void LeaveOutRules(const std::string& reason, PodShape* shape) {
  SetUnreadable(reason, shape);
  if (shape->rules == nullptr) return;
  PodRules rules;
  rules.terminating = shape->rules->terminating;
  rules.claims_resources = shape->rules->claims_resources;
  shape->rules = rules.IsPlain() ? nullptr : std::make_shared<const PodRules>(std::move(rules));
}

namespace {

void SetFingerprint(NodeShape* shape) {
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(shape->base_fingerprint));
  builder.Add(static_cast<int64_t>(shape->taints.size()));
  for (const Taint& taint : shape->taints) taint.AddTo(&builder);
  builder.Add(int64_t{shape->unschedulable});
  builder.Add(absl::string_view(shape->csi_node));
  // Shapes without any keep the fingerprint that they had in states of older releases.
  for (const auto& [driver, volumes] : shape->volume_limits) {
    builder.Add(absl::string_view(driver));
    builder.Add(volumes);
  }
  shape->fingerprint = builder.Finish();
}

}  // namespace

NodeShape CompleteNodeShape(NodeShape shape, const ResourceNames& names) {
  std::vector<std::string>& features = shape.declared_features;
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  FingerprintBuilder builder;
  AddAmounts(shape.allocatable, names, &builder);
  shape.labels.AddTo(&builder);
  builder.Add(static_cast<int64_t>(features.size()));
  for (const std::string& feature : features) builder.Add(absl::string_view(feature));
  builder.Add(absl::string_view(shape.unknown_field));
  shape.base_fingerprint = builder.Finish();
  SetFingerprint(&shape);
  return shape;
}

NodeShape MakeNodeShape(ResourceAmounts allocatable, const ResourceNames& names, Labels labels,
                        std::vector<Taint> taints, bool unschedulable) {
  NodeShape shape;
  shape.allocatable = std::move(allocatable);
  shape.labels = std::move(labels);
  shape.taints = std::move(taints);
  shape.unschedulable = unschedulable;
  return CompleteNodeShape(std::move(shape), names);
}

NodeShape Retainted(NodeShape shape, std::vector<Taint> taints, bool unschedulable) {
  shape.taints = std::move(taints);
  shape.unschedulable = unschedulable;
  SetFingerprint(&shape);
  return shape;
}

NodeShape WithoutRules(const NodeShape& shape, absl::string_view field, const ResourceNames& names) {
  NodeShape rest;
  rest.allocatable = shape.allocatable;
  rest.unschedulable = shape.unschedulable;
  rest.unknown_field = absl::StrCat("more of ", field, " than the view has room for");
  return CompleteNodeShape(std::move(rest), names);
}

NodeShape WithCsiNodeOf(NodeShape shape, std::string model) {
  shape.csi_node = std::move(model);
  SetFingerprint(&shape);
  return shape;
}

}  // namespace loadline
