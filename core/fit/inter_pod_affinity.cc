// InterPodAffinity, required terms. In this order:
//
// * affinity: for each term the node carries the topology key, and an existing pod that matches *all* terms
//   of the incoming pod runs in the node's domain. If no such pod runs on any node that has one of the keys
//   and the pod matches its own terms, nodes that carry every key pass.
// * anti-affinity: for no term does an existing pod that matches it run in the node's domain. Nodes without
//   the key pass.
// * theirs: for no anti-affinity term of an existing pod which matches the incoming pod does the node share
//   the domain of that pod.
//
// A term matches a pod by its labels and namespace: namespaces and namespaceSelector are alternatives, both
// empty means the namespace of the term's pod. Terminating pods count.
#include <algorithm>
#include <utility>

#include "core/cluster/identity.h"
#include "core/fit/filters.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

bool Names(const AffinityTerm& term, const std::string& namespace_name) {
  return std::binary_search(term.namespaces.begin(), term.namespaces.end(), namespace_name);
}

// A term of the incoming pod with its namespaces worked out: names, or all.
struct ResolvedTerm {
  AffinityTerm term;
  bool all_namespaces = false;

  bool Matches(const PodShape& shape) const {
    return (all_namespaces || Names(term, shape.namespace_name)) && term.selector.Matches(shape.labels);
  }
};

ResolvedTerm Resolve(const AffinityTerm& term, const ClusterObjects& objects, const FitOptions& options) {
  ResolvedTerm resolved{term};
  const LabelSelector& selector = term.namespace_selector;
  resolved.all_namespaces =
      selector.Everything() || (options.namespace_selector_sees_no_labels && selector.Matches(Labels()));
  if (selector.nothing || resolved.all_namespaces) return resolved;
  for (const auto& [key, object] : objects.of(ObjectKind::kNamespace)) {
    if (selector.Matches(std::get<Namespace>(object.content).labels))
      resolved.term.namespaces.push_back(key.name);
  }
  std::sort(resolved.term.namespaces.begin(), resolved.term.namespaces.end());
  return resolved;
}

std::string Identity(const std::vector<ResolvedTerm>& terms, const std::string& key) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("matching"));
  builder.Add(absl::string_view(key));
  builder.Add(static_cast<int64_t>(terms.size()));
  for (const ResolvedTerm& resolved : terms) {
    // Of the key of each term nothing is counted, and the namespaces are resolved.
    builder.Add(int64_t{resolved.all_namespaces});
    builder.Add(static_cast<int64_t>(resolved.term.namespaces.size()));
    for (const std::string& name : resolved.term.namespaces) builder.Add(absl::string_view(name));
    resolved.term.selector.AddTo(&builder);
  }
  return builder.Finish();
}

// Pods that match all of `terms`, by `key`.
CountSpec MatchingPods(const std::vector<ResolvedTerm>& terms, const std::string& key) {
  CountSpec spec;
  spec.identity = Identity(terms, key);
  spec.use = CountUse::kOccupancy;
  spec.topology_key = key;
  spec.counts = [terms](const PodShape& shape) {
    return std::all_of(terms.begin(), terms.end(),
                       [&](const ResolvedTerm& term) { return term.Matches(shape); });
  };
  return spec;
}

// Pods that have `term` as an anti-affinity term of their own.
CountSpec OwnersOf(const AffinityTerm& term, const std::string& identity) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("owners"));
  builder.Add(absl::string_view(identity));
  CountSpec spec;
  spec.identity = builder.Finish();
  spec.use = CountUse::kOccupancy;
  spec.topology_key = term.topology_key;
  spec.counts = [term](const PodShape& shape) {
    if (shape.rules == nullptr) return false;
    const std::vector<AffinityTerm>& terms = shape.rules->anti_affinity;
    return std::find(terms.begin(), terms.end(), term) != terms.end();
  };
  return spec;
}

constexpr char kNamespacesMissing[] =
    "a namespaceSelector asks for namespaces, which the view does not hold completely";

// Whether terms turn on which namespaces there are.
bool LookAtNamespaces(const std::vector<AffinityTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const AffinityTerm& term) {
    return !term.namespace_selector.nothing && !term.namespace_selector.Everything();
  });
}

class InterPodAffinity : public NodeFilter {
 public:
  explicit InterPodAffinity(const FitContext& context)
      : NodeFilter(FilterName::kInterPodAffinity, Scope::kTopology),
        snapshot_(*context.snapshot),
        shape_(context.pod->shape) {
    if (const Namespace* const found = snapshot_.objects().FindNamespace(shape_.namespace_name)) {
      namespace_labels_ = found->labels;
    } else {
      namespace_known_ = snapshot_.objects().complete(ObjectKind::kNamespace);
    }
    affinity_in_doubt_ =
        !snapshot_.objects().complete(ObjectKind::kNamespace) && LookAtNamespaces(context.rules->affinity);
    std::vector<ResolvedTerm> terms;
    for (const AffinityTerm& term : context.rules->affinity) {
      terms.push_back(Resolve(term, snapshot_.objects(), *context.options));
    }
    std::vector<CountSpec> specs;
    for (const ResolvedTerm& term : terms) specs.push_back(MatchingPods(terms, term.term.topology_key));
    matches_itself_ = std::all_of(terms.begin(), terms.end(),
                                  [&](const ResolvedTerm& term) { return term.Matches(shape_); });
    for (const AffinityTerm& term : context.rules->anti_affinity) {
      specs.push_back(
          MatchingPods({Resolve(term, snapshot_.objects(), *context.options)}, term.topology_key));
    }
    affinity_ = snapshot_.Counts(std::move(specs));
    anti_affinity_.assign(affinity_.begin() + static_cast<std::ptrdiff_t>(terms.size()), affinity_.end());
    affinity_.resize(terms.size());
    InterPodAffinity::Refresh();
  }

  // Looks at terms that are new to the snapshot.
  bool Refresh() override {
    const AntiAffinityTerms& terms = snapshot_.anti_affinity_terms();
    if (terms_seen_ == terms.size()) return false;
    std::vector<CountSpec> specs, doubtful;
    for (const int32_t number : terms.Matching(shape_.labels, terms_seen_)) {
      const AffinityTerm& term = terms.term(number);
      const bool names_us = NamesUs(term);
      if (!names_us && !MayNameUs(term)) continue;
      (names_us ? specs : doubtful).push_back(OwnersOf(term, terms.identity(number)));
    }
    terms_seen_ = terms.size();
    Append(std::move(specs), &owners_);
    Append(std::move(doubtful), &doubtful_owners_);
    return true;
  }

  bool Passes(NodeIndex node, Verdict* why) const override {
    if (!AffinityHolds(node)) {
      if (affinity_in_doubt_ && CarriesKeys(node)) {
        if (why != nullptr) *why = CannotJudge(name(), kNamespacesMissing);
        return false;
      }
      return Refuse(why, StatusClass::kUnschedulableAndUnresolvable,
                    "node(s) didn't match pod affinity rules");
    }
    if (Conflict(anti_affinity_, node) != nullptr) {
      return Refuse(why, StatusClass::kUnschedulable, "node(s) didn't match pod anti-affinity rules");
    }
    if (Conflict(owners_, node) != nullptr) {
      return Refuse(why, StatusClass::kUnschedulable,
                    "node(s) didn't satisfy existing pods anti-affinity rules");
    }
    if (Conflict(doubtful_owners_, node) != nullptr) {
      if (why != nullptr) *why = CannotJudge(name(), NotHeld("namespace", shape_.namespace_name));
      return false;
    }
    return true;
  }

  void AddDemands(std::vector<Demand>* demands) const override {
    for (const DomainCounts* counts : affinity_) demands->push_back({counts, DemandKind::kOccupied});
    for (const auto* group : {&anti_affinity_, &owners_, &doubtful_owners_}) {
      for (const DomainCounts* counts : *group) demands->push_back({counts, DemandKind::kEmpty});
    }
  }

  bool WaivesOccupied() const override {
    return matches_itself_ && std::all_of(affinity_.begin(), affinity_.end(),
                                          [](const DomainCounts* counts) { return counts->total() == 0; });
  }

 private:
  // Whether a term that selects us by our labels is about our namespace.
  bool NamesUs(const AffinityTerm& term) const {
    if (Names(term, shape_.namespace_name) || term.namespace_selector.Everything()) return true;
    return namespace_known_ && term.namespace_selector.Matches(namespace_labels_);
  }

  // Whether that turns on the labels of our namespace, which may exist without the view knowing it.
  bool MayNameUs(const AffinityTerm& term) const {
    return !namespace_known_ && !term.namespace_selector.nothing;
  }

  void Append(std::vector<CountSpec> specs, std::vector<const DomainCounts*>* to) {
    if (specs.empty()) return;
    const std::vector<const DomainCounts*> counts = snapshot_.Counts(std::move(specs));
    to->insert(to->end(), counts.begin(), counts.end());
  }

  bool CarriesKeys(NodeIndex node) const {
    return std::all_of(affinity_.begin(), affinity_.end(), [&](const DomainCounts* counts) {
      return counts->domain(node) != TopologyKey::kNone;
    });
  }

  bool AffinityHolds(NodeIndex node) const {
    const bool company = std::all_of(affinity_.begin(), affinity_.end(), [&](const DomainCounts* counts) {
      const int32_t domain = counts->domain(node);
      return domain != TopologyKey::kNone && counts->count(domain) > 0;
    });
    return company || (WaivesOccupied() && CarriesKeys(node));
  }

  // Of `group` the first whose count in the node's domain is not 0.
  static const DomainCounts* Conflict(const std::vector<const DomainCounts*>& group, NodeIndex node) {
    for (const DomainCounts* counts : group) {
      const int32_t domain = counts->domain(node);
      if (domain != TopologyKey::kNone && counts->count(domain) > 0) return counts;
    }
    return nullptr;
  }

  Snapshot& snapshot_;
  const PodShape& shape_;
  Labels namespace_labels_;
  bool namespace_known_ = true;     // our namespace is held, or known to be missing
  bool affinity_in_doubt_ = false;  // a namespace that is not held may have what our terms look for
  bool matches_itself_ = false;
  std::vector<const DomainCounts*> affinity_;         // one per term
  std::vector<const DomainCounts*> anti_affinity_;    // one per term
  std::vector<const DomainCounts*> owners_;           // one per term of others that matches the pod
  std::vector<const DomainCounts*> doubtful_owners_;  // one per term of others that may match the pod
  int32_t terms_seen_ = 0;
};

}  // namespace

MadeFilter MakeInterPodAffinity(const FitContext& context) {
  if (!context.rules->affinity_error.empty()) {
    return {nullptr,
            Refusal(FilterName::kInterPodAffinity, StatusClass::kUnschedulableAndUnresolvable,
                    {context.rules->affinity_error}),
            {}};
  }
  MadeFilter made;
  const bool namespaces_known = context.snapshot->objects().complete(ObjectKind::kNamespace);
  if (!namespaces_known &&
      (LookAtNamespaces(context.rules->affinity) || LookAtNamespaces(context.rules->anti_affinity))) {
    made.doubt = CannotJudge(FilterName::kInterPodAffinity, kNamespacesMissing);
  }
  made.filter = std::make_unique<InterPodAffinity>(context);
  return made;
}

}  // namespace loadline
