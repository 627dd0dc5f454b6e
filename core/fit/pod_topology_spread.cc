// PodTopologySpread, constraints with whenUnsatisfiable: DoNotSchedule, in their order; the first that fails
// decides. A node without the topology key fails for good. Else it fails when
//
//   count(domain of the node) + (1 if the pod matches the selector itself) - lowest > maxSkew
//
// count: pods of the same namespace that match the selector and are not terminating, on nodes that carry the
// keys of all the pod's constraints and pass the constraint's inclusion policies (nodeAffinityPolicy,
// nodeTaintsPolicy). lowest: the smallest count among the domains of such nodes, but 0 when there are fewer
// of them than minDomains. An empty selector counts no pod, though the pod matches it itself. A node that the
// policies leave out may still be a candidate. Pods without constraints take the cluster's defaults.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/cluster/identity.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

// Which nodes count for a constraint. Kept with the counts, beyond the life of the pod that came with it.
class Eligibility {
 public:
  Eligibility(const Snapshot* snapshot, std::shared_ptr<const PodRules> rules, std::vector<std::string> keys,
              const SpreadConstraint& constraint)
      : snapshot_(snapshot),
        rules_(std::move(rules)),
        keys_(std::move(keys)),
        honor_affinity_(constraint.honor_affinity && rules_ != nullptr),
        honor_taints_(constraint.honor_taints),
        per_node_((honor_affinity_ && AffinityNamesNodes(*rules_)) ||
                  std::find(keys_.begin(), keys_.end(), kHostnameLabel) != keys_.end()) {}

  bool operator()(NodeIndex node) {
    if (per_node_) return WorkOut(node);
    const size_t shape = static_cast<size_t>(snapshot_->node_shape_id(node));
    if (shape >= known_.size()) known_.resize(shape + 1, kUnknown);
    if (known_[shape] == kUnknown) known_[shape] = WorkOut(node) ? kYes : kNo;
    return known_[shape] == kYes;
  }

 private:
  enum Known : char { kUnknown, kYes, kNo };

  bool WorkOut(NodeIndex node) const {
    const NodeLabels labels = snapshot_->labels(node);
    for (const std::string& key : keys_) {
      if (labels.Find(key) == nullptr) return false;
    }
    static const PodRules* const kPlain = new PodRules;
    const PodRules& rules = rules_ == nullptr ? *kPlain : *rules_;
    return (!honor_affinity_ || MatchesNodeAffinity(rules, labels)) &&
           (!honor_taints_ || ToleratesTaints(rules, snapshot_->node_shape(node)));
  }

  const Snapshot* snapshot_;
  std::shared_ptr<const PodRules> rules_;
  std::vector<std::string> keys_;
  bool honor_affinity_;
  bool honor_taints_;
  bool per_node_;
  std::vector<Known> known_;  // by node shape
};

std::string Identity(const FitContext& context, const std::vector<std::string>& keys,
                     const SpreadConstraint& constraint) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("spread"));
  builder.Add(absl::string_view(context.pod->shape.namespace_name));
  builder.Add(absl::string_view(constraint.topology_key));
  constraint.selector.AddTo(&builder);
  builder.Add(static_cast<int64_t>(keys.size()));
  for (const std::string& key : keys) builder.Add(absl::string_view(key));
  builder.Add(int64_t{constraint.honor_affinity});
  if (constraint.honor_affinity) {
    context.rules->node_selector.AddTo(&builder);
    if (context.rules->node_affinity.has_value()) context.rules->node_affinity->AddTo(&builder);
  }
  builder.Add(int64_t{constraint.honor_taints});
  if (constraint.honor_taints) {
    for (const Toleration& toleration : context.rules->tolerations) toleration.AddTo(&builder);
  }
  return builder.Finish();
}

CountSpec Spec(const FitContext& context, const std::vector<std::string>& keys,
               const SpreadConstraint& constraint) {
  CountSpec spec;
  spec.identity = Identity(context, keys, constraint);
  spec.topology_key = constraint.topology_key;
  spec.counts = [namespace_name = context.pod->shape.namespace_name,
                 selector = constraint.selector](const PodShape& shape) {
    if (selector.Everything() || shape.namespace_name != namespace_name) return false;
    const bool terminating = shape.rules != nullptr && shape.rules->terminating;
    return !terminating && selector.Matches(shape.labels);
  };
  spec.eligible = Eligibility(context.snapshot, context.pod->shape.rules, keys, constraint);
  return spec;
}

class PodTopologySpread : public NodeFilter {
 public:
  PodTopologySpread(const FitContext& context, const std::vector<SpreadConstraint>& constraints)
      : NodeFilter(FilterName::kPodTopologySpread, Scope::kTopology) {
    std::vector<std::string> keys;
    for (const SpreadConstraint& constraint : constraints) keys.push_back(constraint.topology_key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<CountSpec> specs;
    for (const SpreadConstraint& constraint : constraints) specs.push_back(Spec(context, keys, constraint));
    counts_ = context.snapshot->Counts(std::move(specs));
    for (const SpreadConstraint& constraint : constraints) {
      constraints_.push_back({constraint.max_skew, constraint.min_domains,
                              constraint.selector.Matches(context.pod->shape.labels) ? 1 : 0});
    }
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    const std::optional<size_t> failing = Failing(node);
    if (!failing.has_value()) return true;
    if (counts_[*failing]->domain(node) != TopologyKey::kNone) {
      return Refuse(why, StatusClass::kUnschedulable, "node(s) didn't match pod topology spread constraints");
    }
    return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                  "node(s) didn't match pod topology spread constraints (missing required label)");
  }

  void AddDemands(std::vector<Demand>* demands) const override {
    for (const DomainCounts* counts : counts_) demands->push_back({counts, DemandKind::kBalanced});
  }

  std::optional<Blocked> BlockedBy(NodeIndex node) const override {
    const std::optional<size_t> failing = Failing(node);
    if (!failing.has_value() || counts_[*failing]->domain(node) == TopologyKey::kNone) return std::nullopt;
    return Blocked{counts_[*failing], counts_[*failing]->domain(node)};
  }

 private:
  struct Constraint {
    int32_t max_skew;
    int32_t min_domains;
    int32_t self;
  };

  // The first constraint that the node fails.
  std::optional<size_t> Failing(NodeIndex node) const {
    for (size_t i = 0; i < constraints_.size(); ++i) {
      const DomainCounts& counts = *counts_[i];
      const int32_t domain = counts.domain(node);
      if (domain == TopologyKey::kNone) return i;
      const int64_t skew = int64_t{counts.count(domain)} + constraints_[i].self - Lowest(i);
      if (skew > constraints_[i].max_skew) return i;
    }
    return std::nullopt;
  }

  int64_t Lowest(size_t i) const {
    if (counts_[i]->domains() < constraints_[i].min_domains) return 0;
    // Without any domain upstream's smallest count is still at its start value.
    return counts_[i]->domains() == 0 ? std::numeric_limits<int32_t>::max() : counts_[i]->lowest();
  }

  std::vector<Constraint> constraints_;
  std::vector<const DomainCounts*> counts_;  // one per constraint
};

}  // namespace

MadeFilter MakePodTopologySpread(const FitContext& context) {
  if (!context.rules->spread_error.empty()) {
    return {nullptr, CannotJudge(FilterName::kPodTopologySpread, context.rules->spread_error), {}};
  }
  const std::vector<SpreadConstraint>& constraints =
      context.rules->has_spread ? context.rules->spread : context.pod->default_spread;
  if (constraints.empty()) return {};
  return {std::make_unique<PodTopologySpread>(context, constraints), {}, {}};
}

}  // namespace loadline
