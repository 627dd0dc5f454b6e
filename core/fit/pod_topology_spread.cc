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
#include "core/cluster/startup_taints.h"
#include "core/fit/filters.h"

namespace loadline {
namespace {

// Tells which nodes count for constraints that have the same inclusion policies. Kept with the counts, beyond
// the life of the pod that came with them.
class Eligibility {
 public:
  // `keys`: those of all constraints of the pod.
  Eligibility(const Snapshot* snapshot, std::shared_ptr<const PodRules> rules, std::vector<std::string> keys,
              bool honor_affinity, bool honor_taints)
      : snapshot_(snapshot),
        rules_(std::move(rules)),
        keys_(std::move(keys)),
        honor_affinity_(honor_affinity && rules_ != nullptr),
        honor_taints_(honor_taints),
        tolerates_leaving_(ToleratesLeaving()),
        per_node_((honor_affinity_ && AffinityNamesNodes(*rules_)) ||
                  std::find(keys_.begin(), keys_.end(), kHostnameLabel) != keys_.end()) {}

  bool operator()(NodeIndex node) {
    if (honor_taints_ && !tolerates_leaving_ && snapshot_->Leaving(node)) return false;
    if (per_node_) return WorkOut(node);
    const size_t shape = static_cast<size_t>(snapshot_->node_shape_id(node));
    if (shape >= known_.size()) known_.resize(shape + 1, kUnknown);
    if (known_[shape] == kUnknown) known_[shape] = WorkOut(node) ? kYes : kNo;
    return known_[shape] == kYes;
  }

 private:
  enum Known : char { kUnknown, kYes, kNo };

  bool ToleratesLeaving() const {
    if (rules_ == nullptr) return false;
    const Taint taint{kToBeDeletedTaint, "", "NoSchedule"};
    return std::any_of(rules_->tolerations.begin(), rules_->tolerations.end(),
                       [&](const Toleration& toleration) { return toleration.Tolerates(taint); });
  }

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
  bool tolerates_leaving_;  // the taint of a node that is about to be deleted
  bool per_node_;
  std::vector<Known> known_;  // by node shape
};

// The properties that constraints of a pod with the same inclusion policies have in common.
struct Policies {
  std::shared_ptr<Eligibility> eligibility;
  int64_t number = 0;  // of a text that tells it apart
};

// Makes the specs of one pod.
class SpreadSpecs {
 public:
  SpreadSpecs(const FitContext& context, std::vector<std::string> keys)
      : context_(context), keys_(std::move(keys)) {}

  CountSpec Of(const SpreadConstraint& constraint) {
    const Policies& policies = Of(constraint.honor_affinity, constraint.honor_taints);
    IdentityBuilder builder;
    builder.Add(absl::string_view("spread"));
    builder.Add(policies.number);
    builder.Add(absl::string_view(constraint.topology_key));
    builder.Add(context_.snapshot->NumberOf(SelectorText(constraint.selector)));
    CountSpec spec;
    spec.identity = builder.Finish();
    spec.topology_key = constraint.topology_key;
    spec.counts = Counting(constraint.selector);
    spec.eligible = [eligibility = policies.eligibility](NodeIndex node) { return (*eligibility)(node); };
    spec.sees_leaving = constraint.honor_taints;
    return spec;
  }

 private:
  const Policies& Of(bool honor_affinity, bool honor_taints) {
    Policies& policies = policies_[honor_affinity ? 1 : 0][honor_taints ? 1 : 0];
    if (policies.eligibility != nullptr) return policies;
    policies.eligibility = std::make_shared<Eligibility>(context_.snapshot, context_.pod->shape.rules, keys_,
                                                         honor_affinity, honor_taints);
    IdentityBuilder builder;
    builder.Add(absl::string_view("policies"));
    builder.Add(absl::string_view(context_.pod->shape.namespace_name));
    builder.Add(static_cast<int64_t>(keys_.size()));
    for (const std::string& key : keys_) builder.Add(absl::string_view(key));
    builder.Add(int64_t{honor_affinity});
    if (honor_affinity) {
      context_.rules->node_selector.AddTo(&builder);
      if (context_.rules->node_affinity.has_value()) context_.rules->node_affinity->AddTo(&builder);
    }
    builder.Add(int64_t{honor_taints});
    if (honor_taints) {
      for (const Toleration& toleration : context_.rules->tolerations) toleration.AddTo(&builder);
    }
    policies.number = context_.snapshot->NumberOf(builder.Finish());
    return policies;
  }

  static std::string SelectorText(const LabelSelector& selector) {
    IdentityBuilder builder;
    builder.Add(absl::string_view("selector"));
    selector.AddTo(&builder);
    return builder.Finish();
  }

  // Returns the predicate for the pods that a constraint counts. Most constraints of a pod have the same
  // selector.
  std::shared_ptr<const PodPredicate> Counting(const LabelSelector& selector) {
    if (last_ != nullptr && *last_ == selector) return last_counting_;
    PodPredicate predicate;
    predicate.work = static_cast<int64_t>(std::max<size_t>(1, selector.requirements.size()));
    predicate.namespaces = {context_.pod->shape.namespace_name};
    predicate.matches = [namespace_name = context_.pod->shape.namespace_name,
                         selector](const PodShape& shape) {
      if (selector.Everything() || shape.namespace_name != namespace_name) return false;
      const bool terminating = shape.rules != nullptr && shape.rules->terminating;
      return !terminating && selector.Matches(shape.labels);
    };
    last_ = &selector;
    return last_counting_ = std::make_shared<const PodPredicate>(std::move(predicate));
  }

  const FitContext& context_;
  std::vector<std::string> keys_;
  Policies policies_[2][2];  // by whether they honor affinity, and taints
  const LabelSelector* last_ = nullptr;
  std::shared_ptr<const PodPredicate> last_counting_;
};

class PodTopologySpread : public NodeFilter {
 public:
  PodTopologySpread(const FitContext& context, const std::vector<SpreadConstraint>& constraints)
      : NodeFilter(FilterName::kPodTopologySpread, Scope::kTopology) {
    std::vector<std::string> keys;
    for (const SpreadConstraint& constraint : constraints) keys.push_back(constraint.topology_key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    context.budget->Spend(static_cast<int64_t>(kUnitsPerConstraint * constraints.size()));
    SpreadSpecs made(context, std::move(keys));
    std::vector<CountSpec> specs;
    specs.reserve(constraints.size());
    for (const SpreadConstraint& constraint : constraints) specs.push_back(made.Of(constraint));
    auto counts = context.snapshot->Counts(std::move(specs), context.budget);
    if (!counts.has_value()) {
      *context.cut_short = true;
      return;
    }
    counts_ = *std::move(counts);
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

  // To read a constraint, name it and make its counts.
  static constexpr size_t kUnitsPerConstraint = 10;

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
