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
#include <memory>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/cluster/identity.h"
#include "core/fit/filters.h"
#include "core/fit/volume_claims.h"

namespace loadline {
namespace {

bool Names(const AffinityTerm& term, const std::string& namespace_name) {
  return std::binary_search(term.namespaces.begin(), term.namespaces.end(), namespace_name);
}

// Terms of an incoming pod, each once whatever its topology key, with what the view knows of namespaces. The
// labels of a namespace are looked up when a pod of it is met, so that nothing is kept per namespace. Cost of
// Matches(): O(terms), but the first that does not match ends it.
class TermSet {
 public:
  // Adds to `identity` the properties that distinguish term sets by the pods that they match; topology keys
  // do not count.
  TermSet(std::span<const AffinityTerm> terms, const ClusterObjects& objects, const FitOptions& options,
          IdentityBuilder* identity)
      : objects_(objects) {
    absl::flat_hash_set<std::string> known;
    for (const AffinityTerm& term : terms) {
      const LabelSelector& selector = term.namespace_selector;
      const bool all =
          selector.Everything() || (options.namespace_selector_sees_no_labels && selector.Matches(Labels()));
      IdentityBuilder builder;
      builder.Add(int64_t{all});
      if (!all) {
        builder.Add(static_cast<int64_t>(term.namespaces.size()));
        for (const std::string& name : term.namespaces) builder.Add(absl::string_view(name));
        selector.AddTo(&builder);
        if (!selector.nothing) builder.Add(objects.version());
      }
      term.selector.AddTo(&builder);
      std::string text = builder.Finish();
      if (known.contains(text)) continue;
      identity->Add(absl::string_view(text));
      known.insert(std::move(text));
      terms_.push_back({term.selector, all ? std::vector<std::string>() : term.namespaces, selector, all});
    }
  }

  bool Matches(const PodShape& shape) const {
    return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
      return term.selector.Matches(shape.labels) && InNamespace(term, shape.namespace_name);
    });
  }

  // Returns the most requirements that a pod is matched with.
  int64_t requirements() const {
    int64_t sum = 0;
    for (const Term& term : terms_) {
      sum += static_cast<int64_t>(std::max<size_t>(1, term.selector.requirements.size()) +
                                  term.namespace_selector.requirements.size());
    }
    return sum;
  }
  // Pods elsewhere do not match; empty: pods of any namespace may.
  std::vector<std::string> OnlyNamespaces() const {
    for (const Term& term : terms_) {
      if (term.all_namespaces || !term.namespace_selector.nothing) continue;
      std::vector<std::string> names = term.namespaces;
      names.erase(std::unique(names.begin(), names.end()), names.end());
      return names;
    }
    return {};
  }

 private:
  struct Term {
    LabelSelector selector;
    std::vector<std::string> namespaces;  // sorted
    LabelSelector namespace_selector;
    bool all_namespaces;
  };

  bool InNamespace(const Term& term, const std::string& name) const {
    if (term.all_namespaces || std::binary_search(term.namespaces.begin(), term.namespaces.end(), name)) {
      return true;
    }
    if (term.namespace_selector.nothing) return false;
    const Namespace* const found = objects_.FindNamespace(name);
    return found != nullptr && term.namespace_selector.Matches(found->labels);
  }

  const ClusterObjects& objects_;
  std::vector<Term> terms_;
};

// Pods that match all terms of a set, and its number.
struct Matching {
  std::shared_ptr<const PodPredicate> predicate;
  int64_t number;
};

Matching MatchingPods(std::shared_ptr<const TermSet> terms, int64_t number) {
  PodPredicate predicate;
  predicate.work = terms->requirements();
  predicate.namespaces = terms->OnlyNamespaces();
  predicate.matches = [terms = std::move(terms)](const PodShape& shape) { return terms->Matches(shape); };
  return {std::make_shared<const PodPredicate>(std::move(predicate)), number};
}

CountSpec CountOf(const Matching& matching, const std::string& key) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("matching"));
  builder.Add(matching.number);
  builder.Add(absl::string_view(key));
  CountSpec spec;
  spec.identity = builder.Finish();
  spec.use = CountUse::kOccupancy;
  spec.topology_key = key;
  spec.counts = matching.predicate;
  return spec;
}

// Pods that have a term of the snapshot as an anti-affinity term of their own.
CountSpec OwnersOf(int32_t number, const std::string& key) {
  IdentityBuilder builder;
  builder.Add(absl::string_view("owners"));
  builder.Add(int64_t{number});
  CountSpec spec;
  spec.identity = builder.Finish();
  spec.use = CountUse::kOccupancy;
  spec.topology_key = key;
  spec.owners_of = number;
  return spec;
}

constexpr char kNamespacesMissing[] =
    "a namespaceSelector asks for namespaces, which the view does not hold completely";

// Returns whether terms depend on which namespaces there are.
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
      namespace_known_ = snapshot_.objects().KnownMissing(ObjectKind::kNamespace, "", shape_.namespace_name);
    }
    affinity_in_doubt_ =
        !snapshot_.objects().complete(ObjectKind::kNamespace) && LookAtNamespaces(context.rules->affinity);
    std::vector<CountSpec> specs = OwnTerms(context);
    const size_t own = specs.size();
    // The demands of others are worked out together with that: all pods are matched with both at once.
    std::vector<bool> doubtful;
    TermsOfOthers(context.budget, &specs, &doubtful);
    const auto counts = snapshot_.Counts(std::move(specs), context.budget);
    if (!counts.has_value()) {
      *context.cut_short = true;
      return;
    }
    const auto first = counts->begin();
    const auto middle = first + static_cast<std::ptrdiff_t>(context.rules->affinity.size());
    affinity_.assign(first, middle);
    anti_affinity_.assign(middle, first + static_cast<std::ptrdiff_t>(own));
    Append(std::span(*counts).subspan(own), doubtful);
  }

  // Looks at terms that are new to the snapshot.
  Refreshed Refresh(WorkBudget* budget) override {
    if (terms_seen_ == snapshot_.anti_affinity_terms().size()) return Refreshed::kSame;
    const int32_t seen_before = terms_seen_;
    std::vector<CountSpec> specs;
    std::vector<bool> doubtful;
    TermsOfOthers(budget, &specs, &doubtful);
    const auto counts = snapshot_.Counts(std::move(specs), budget);
    if (!counts.has_value()) {
      terms_seen_ = seen_before;
      return Refreshed::kCutShort;
    }
    Append(*counts, doubtful);
    return Refreshed::kMoreDemands;
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
      if (why != nullptr) *why = CannotJudge(name(), NotInView("namespace", shape_.namespace_name));
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
  // Returns whether a term that selects us by our labels is about our namespace.
  bool NamesUs(const AffinityTerm& term) const {
    if (Names(term, shape_.namespace_name) || term.namespace_selector.Everything()) return true;
    return namespace_known_ && term.namespace_selector.Matches(namespace_labels_);
  }

  // Returns whether that depends on the labels of our namespace, which may exist without the view knowing it.
  bool MayNameUs(const AffinityTerm& term) const {
    return !namespace_known_ && !term.namespace_selector.nothing;
  }

  // One for each term of the pod, those of its affinity first.
  std::vector<CountSpec> OwnTerms(const FitContext& context) {
    const std::vector<AffinityTerm>& affinity = context.rules->affinity;
    const std::vector<AffinityTerm>& anti_affinity = context.rules->anti_affinity;
    context.budget->Spend(static_cast<int64_t>(kUnitsPerTerm * (affinity.size() + anti_affinity.size())));
    const auto matching = [&](std::span<const AffinityTerm> terms) {
      IdentityBuilder identity;
      identity.Add(absl::string_view("terms"));
      auto set = std::make_shared<const TermSet>(terms, snapshot_.objects(), *context.options, &identity);
      return MatchingPods(std::move(set), snapshot_.NumberOf(identity.Finish()));
    };
    std::vector<CountSpec> specs;
    specs.reserve(affinity.size() + anti_affinity.size());
    matches_itself_ = true;
    if (!affinity.empty()) {
      const Matching all = matching(affinity);
      matches_itself_ = all.predicate->matches(shape_);
      for (const AffinityTerm& term : affinity) specs.push_back(CountOf(all, term.topology_key));
    }
    absl::flat_hash_map<int64_t, Matching> known;  // the same pods may count by several keys
    for (const AffinityTerm& term : anti_affinity) {
      const Matching one = matching({&term, 1});
      specs.push_back(CountOf(known.try_emplace(one.number, one).first->second, term.topology_key));
    }
    return specs;
  }

  // Finds the terms that the snapshot has learned of, and whether each is about our namespace or may be.
  void TermsOfOthers(WorkBudget* budget, std::vector<CountSpec>* specs, std::vector<bool>* doubtful) {
    constexpr int64_t kTermsPerUnit = 4;
    const AntiAffinityTerms& terms = snapshot_.anti_affinity_terms();
    int64_t looked_at = 0;
    for (const int32_t number : terms.Matching(shape_.labels, terms_seen_, &looked_at)) {
      const AffinityTerm& term = terms.term(number);
      const bool names_us = NamesUs(term);
      if (!names_us && !MayNameUs(term)) continue;
      specs->push_back(OwnersOf(number, term.topology_key));
      doubtful->push_back(!names_us);
    }
    budget->Spend(1 + looked_at / kTermsPerUnit);
    terms_seen_ = terms.size();
  }

  void Append(std::span<const DomainCounts* const> counts, const std::vector<bool>& doubtful) {
    for (size_t i = 0; i < counts.size(); ++i) {
      (doubtful[i] ? doubtful_owners_ : owners_).push_back(counts[i]);
    }
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

  // Returns the first of `group` whose count in the node's domain is not 0.
  static const DomainCounts* Conflict(const std::vector<const DomainCounts*>& group, NodeIndex node) {
    for (const DomainCounts* counts : group) {
      const int32_t domain = counts->domain(node);
      if (domain != TopologyKey::kNone && counts->count(domain) > 0) return counts;
    }
    return nullptr;
  }

  // To read a term, name it and make its counts.
  static constexpr size_t kUnitsPerTerm = 10;

  Snapshot& snapshot_;
  const PodShape& shape_;
  Labels namespace_labels_;
  bool namespace_known_ = true;     // the view has our namespace, or it is known to be missing
  bool affinity_in_doubt_ = false;  // a namespace that the view lacks may have what our terms look for
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
