// InterPodAffinity, required terms. In this order:
//
//   affinity       for each term the node carries the topology key, and an existing pod that matches *all*
//   terms
//                  of the incoming pod runs in the node's domain. If no such pod runs on any node that has
//                  one of the keys and the pod matches its own terms, nodes that carry every key pass.
//   anti-affinity  for no term does an existing pod that matches it run in the node's domain. Nodes without
//   the
//                  key pass.
//   theirs         for no anti-affinity term of an existing pod which matches the incoming pod does the node
//   share
//                  the domain of that pod.
//
// A term matches a pod by its labels and namespace: namespaces and namespaceSelector are alternatives, both
// empty means the namespace of the term's pod. Terminating pods count.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
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

std::string Identity(absl::string_view kind, const std::vector<ResolvedTerm>& terms, const std::string& key) {
  IdentityBuilder builder;
  builder.Add(kind);
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

// Pods that match all of `terms`, by `key`; wanted or not wanted.
CountSpec MatchingPods(const std::vector<ResolvedTerm>& terms, const std::string& key, Loosens loosens) {
  CountSpec spec;
  spec.identity = Identity(loosens == Loosens::kPresence ? "wanted" : "unwanted", terms, key);
  spec.loosens = loosens;
  spec.topology_key = key;
  spec.counts = [terms](const PodShape& shape) {
    return std::all_of(terms.begin(), terms.end(),
                       [&](const ResolvedTerm& term) { return term.Matches(shape); });
  };
  return spec;
}

// Pods that have `term` as an anti-affinity term of their own.
CountSpec OwnersOf(const AffinityTerm& term) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("owners"));
  term.AddTo(&builder);
  CountSpec spec;
  spec.identity = builder.Finish();
  spec.loosens = Loosens::kAbsence;
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
    for (const ResolvedTerm& term : terms)
      specs.push_back(MatchingPods(terms, term.term.topology_key, Loosens::kPresence));
    matches_itself_ = std::all_of(terms.begin(), terms.end(),
                                  [&](const ResolvedTerm& term) { return term.Matches(shape_); });
    for (const AffinityTerm& term : context.rules->anti_affinity) {
      specs.push_back(MatchingPods({Resolve(term, snapshot_.objects(), *context.options)}, term.topology_key,
                                   Loosens::kAbsence));
    }
    affinity_ = snapshot_.Counts(std::move(specs));
    anti_affinity_.assign(affinity_.begin() + static_cast<std::ptrdiff_t>(terms.size()), affinity_.end());
    affinity_.resize(terms.size());
    InterPodAffinity::Refresh();
  }

  // Looks at the terms of shapes that are new to the snapshot.
  void Refresh() override {
    std::vector<CountSpec> specs, doubtful;
    for (; shapes_seen_ < snapshot_.pod_shape_end(); ++shapes_seen_) {
      const PodShape& shape = snapshot_.pod_shape(shapes_seen_);
      if (shape.rules == nullptr) continue;
      for (const AffinityTerm& term : shape.rules->anti_affinity) {
        const bool doubt = MayMatchUs(term);
        if (!doubt && !MatchesUs(term)) continue;
        CountSpec spec = OwnersOf(term);
        if (owners_seen_.insert(spec.identity).second) (doubt ? doubtful : specs).push_back(std::move(spec));
      }
    }
    Append(std::move(specs), &owners_);
    Append(std::move(doubtful), &doubtful_owners_);
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

  // Whether there is anything to decide, now or after other pods came.
  std::vector<const DomainCounts*> Counts() const override {
    std::vector<const DomainCounts*> counts = affinity_;
    counts.insert(counts.end(), anti_affinity_.begin(), anti_affinity_.end());
    counts.insert(counts.end(), owners_.begin(), owners_.end());
    counts.insert(counts.end(), doubtful_owners_.begin(), doubtful_owners_.end());
    return counts;
  }

  std::optional<Blocked> BlockedBy(NodeIndex node) const override {
    for (const DomainCounts* counts : affinity_) {
      if (counts->domain(node) == TopologyKey::kNone) return std::nullopt;
    }
    if (!AffinityHolds(node)) {
      for (const DomainCounts* counts : affinity_) {
        if (counts->count(counts->domain(node)) == 0) return Blocked{counts, counts->domain(node)};
      }
    }
    for (const auto* group : {&anti_affinity_, &owners_, &doubtful_owners_}) {
      if (const DomainCounts* const counts = Conflict(*group, node))
        return Blocked{counts, counts->domain(node)};
    }
    return std::nullopt;
  }

 private:
  bool MatchesUs(const AffinityTerm& term) const {
    return (Names(term, shape_.namespace_name) || term.namespace_selector.Matches(namespace_labels_)) &&
           term.selector.Matches(shape_.labels);
  }

  // Whether a term turns on the labels of our namespace, which may exist without the view knowing it.
  bool MayMatchUs(const AffinityTerm& term) const {
    return !namespace_known_ && !Names(term, shape_.namespace_name) && !term.namespace_selector.nothing &&
           !term.namespace_selector.Everything() && term.selector.Matches(shape_.labels);
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
    bool company = true;
    bool anywhere = false;
    for (const DomainCounts* counts : affinity_) {
      const int32_t domain = counts->domain(node);
      if (domain == TopologyKey::kNone) return false;
      company = company && counts->count(domain) > 0;
      anywhere = anywhere || counts->total() > 0;
    }
    return company || (!anywhere && matches_itself_);
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
  absl::flat_hash_set<std::string> owners_seen_;
  int32_t shapes_seen_ = 0;
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
