// Pods that say where they go in far too many words.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/hostile/hostile_objects.h"
#include "test/hostile/mischief.h"

namespace loadline {
namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";
constexpr char kZone[] = "topology.kubernetes.io/zone";
const Culprit kHostilePod = {"Pod", "evil", "hostile"};
const Culprit kMayBeTaken = {};

// `first`: no pod with another one has the same.
k8s::v1::Pod Tolerating(int count, int first = 0) {
  k8s::v1::Pod pod = EvilPod();
  for (int i = 0; i < count; ++i) {
    k8s::v1::Toleration* const toleration = pod.mutable_spec()->add_tolerations();
    toleration->set_key(absl::StrCat("evil.example/t", first + i));
    toleration->set_operator_("Exists");
  }
  return pod;
}

// Each term selects other pods, all of its own namespace.
void AddTerms(int count, const std::string& topology_key, k8s::v1::PodAffinity* affinity, int first = 0) {
  for (int i = first; i < first + count; ++i) {
    k8s::v1::PodAffinityTerm* const term = affinity->add_required();
    term->set_topology_key(topology_key);
    k8s::v1::StringEntry* const label = term->mutable_label_selector()->add_match_labels();
    label->set_key("app");
    label->set_value(absl::StrCat("evil-", i));
  }
}

k8s::v1::Pod Affine(int count) {
  k8s::v1::Pod pod = EvilPod();
  AddTerms(count, kZone, pod.mutable_spec()->mutable_affinity()->mutable_pod_affinity());
  return pod;
}

k8s::v1::Pod AntiAffine(int count, int first = 0) {
  k8s::v1::Pod pod = EvilPod();
  AddTerms(count, kHostname, pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity(), first);
  return pod;
}

// Terms that match every pod of the namespace evil, and so each other.
k8s::v1::Pod MatchAll(int count) {
  k8s::v1::Pod pod = EvilPod();
  k8s::v1::PodAffinity* const affinity = pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity();
  for (int i = 0; i < count; ++i) {
    affinity->add_required()->set_topology_key(absl::StrCat("evil.example/k", i));
    affinity->mutable_required(i)->mutable_label_selector();
  }
  return pod;
}

void SelectNamespaces(int terms, int namespaces, Mischief* mischief) {
  k8s::v1::Pod pod = Affine(terms);
  for (k8s::v1::PodAffinityTerm& term :
       *pod.mutable_spec()->mutable_affinity()->mutable_pod_affinity()->mutable_required()) {
    term.mutable_namespace_selector();
  }
  mischief->Pending(pod);
  for (int i = 0; i < namespaces; ++i) {
    k8s::v1::Namespace one;
    one.mutable_metadata()->set_name(absl::StrCat("evil-", i));
    AddLabel("team", "evil", one.mutable_metadata());
    mischief->Object(v1::NAMESPACE, one);
  }
}

k8s::v1::Pod Spreading(int count, size_t key_bytes) {
  k8s::v1::Pod pod = EvilPod();
  for (int i = 0; i < count; ++i) {
    k8s::v1::TopologySpreadConstraint* const constraint =
        pod.mutable_spec()->add_topology_spread_constraints();
    constraint->set_max_skew(1);
    constraint->set_topology_key(absl::StrCat("evil.example/", std::string(key_bytes, 'k'), i));
    constraint->set_when_unsatisfiable("DoNotSchedule");
    constraint->mutable_label_selector();
  }
  return pod;
}

// One of many pods that are all different, each of which spreads over nodes.
k8s::v1::Pod SpreadingByItself(int number) {
  k8s::v1::Pod pod = Spreading(1, 1);
  k8s::v1::TopologySpreadConstraint* const constraint =
      pod.mutable_spec()->mutable_topology_spread_constraints(0);
  constraint->set_topology_key(kHostname);
  k8s::v1::StringEntry* const label = constraint->mutable_label_selector()->add_match_labels();
  label->set_key("app");
  label->set_value(absl::StrCat("evil-", number));
  AddLabel("app", absl::StrCat("evil-", number), pod.mutable_metadata());
  return pod;
}

k8s::v1::Pod SpreadingOddly(int32_t max_skew, int32_t min_domains) {
  k8s::v1::Pod pod = Spreading(1, 1);
  k8s::v1::TopologySpreadConstraint* const constraint =
      pod.mutable_spec()->mutable_topology_spread_constraints(0);
  constraint->set_topology_key(kZone);
  constraint->set_max_skew(max_skew);
  constraint->set_min_domains(min_domains);
  return pod;
}

k8s::v1::Pod SelectingKeys(int count) {
  k8s::v1::Pod pod = Affine(1);
  k8s::v1::LabelSelector* const selector = pod.mutable_spec()
                                               ->mutable_affinity()
                                               ->mutable_pod_affinity()
                                               ->mutable_required(0)
                                               ->mutable_label_selector();
  for (int i = 0; i < count; ++i) AddRequirement(absl::StrCat("evil.example/k", i), "Exists", selector);
  return pod;
}

// Returns a pod with so many requirements of one key that all are true for any pod.
k8s::v1::Pod AvoidingValues(int count) {
  k8s::v1::Pod pod = EvilPod();
  k8s::v1::PodAffinityTerm* const term =
      pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required();
  term->set_topology_key(kHostname);
  term->mutable_namespace_selector();
  for (int i = 0; i < count; ++i) {
    AddRequirement("evil.example/key", "NotIn", term->mutable_label_selector())
        ->add_values(absl::StrCat("v", i));
  }
  return pod;
}

k8s::v1::Pod NodeAffine(int terms, int values) {
  k8s::v1::Pod pod = EvilPod();
  k8s::v1::NodeSelector* const selector =
      pod.mutable_spec()->mutable_affinity()->mutable_node_affinity()->mutable_required();
  for (int i = 0; i < terms; ++i) {
    k8s::v1::NodeSelectorRequirement* const requirement =
        selector->add_node_selector_terms()->add_match_expressions();
    requirement->set_key(kHostname);
    requirement->set_operator_("In");
    for (int n = 0; n < values; ++n) requirement->add_values(absl::StrCat("no-such-node-", i, "-", n));
  }
  return pod;
}

k8s::v1::Pod NodeSelecting(int count) {
  k8s::v1::Pod pod = EvilPod();
  for (int i = 0; i < count; ++i) {
    k8s::v1::StringEntry* const entry = pod.mutable_spec()->add_node_selector();
    entry->set_key(absl::StrCat("evil.example/n", i));
    entry->set_value("\x1b[31m\xff");
  }
  return pod;
}

}  // namespace

std::vector<HostileRow> HostileRules() {
  return {
      {"WaitingPodOf10001Tolerations", [](Mischief* m) { m->Pending(Tolerating(10'001)); }, kHostilePod},
      {"WaitingPodOf10000Tolerations", [](Mischief* m) { m->Pending(Tolerating(10'000)); }, kMayBeTaken},
      {"BoundPodOf10001Tolerations", [](Mischief* m) { m->Bound(Tolerating(10'001)); }, kHostilePod},
      {"WaitingPodOf1000AffinityTerms", [](Mischief* m) { m->Pending(Affine(1'000)); }, kMayBeTaken},
      {"WaitingPodOf4000AffinityTerms", [](Mischief* m) { m->Pending(Affine(4'000)); }, kMayBeTaken},
      {"WaitingPodOf4000AntiAffinityTerms", [](Mischief* m) { m->Pending(AntiAffine(4'000)); }, kMayBeTaken},
      {"BoundPodOf4000AntiAffinityTerms", [](Mischief* m) { m->Bound(AntiAffine(4'000)); }, kMayBeTaken},
      {"WaitingPodOf1000TermsThatMatchAll", [](Mischief* m) { m->Pending(MatchAll(1'000)); }, kMayBeTaken},
      {"BoundPodsOf1000TermsThatMatchAll",
       [](Mischief* m) {
         for (int i = 0; i < 20; ++i) m->Bound(MatchAll(1'000 + i));
       },
       kMayBeTaken},
      {"WaitingPodThatSelectsNamespaces", [](Mischief* m) { SelectNamespaces(100, 1'000, m); }, kMayBeTaken},
      {"WaitingPodThatSelectsManyNamespaces", [](Mischief* m) { SelectNamespaces(1'000, 5'000, m); },
       kMayBeTaken},
      {"WaitingPodOf4000LongSpreadKeys", [](Mischief* m) { m->Pending(Spreading(4'000, 160)); }, kMayBeTaken},
      {"WaitingPodOf10001SpreadConstraints", [](Mischief* m) { m->Pending(Spreading(10'001, 1)); },
       kHostilePod},
      {"3000WaitingPodsOfOwnSpread",
       [](Mischief* m) {
         for (int i = 0; i < 3'000; ++i) m->Pending(SpreadingByItself(i));
       },
       kMayBeTaken},
      {"700BoundPodsOf900AntiAffinityTerms",
       [](Mischief* m) {
         for (int i = 0; i < 700; ++i) m->Bound(AntiAffine(900, 900 * i));
       },
       kMayBeTaken},
      {"400BoundPodsOf9900Tolerations",
       [](Mischief* m) {
         for (int i = 0; i < 400; ++i) m->Bound(Tolerating(9'900, 9'900 * i));
       },
       kMayBeTaken},
      {"WaitingPodOfNegativeSkew", [](Mischief* m) { m->Pending(SpreadingOddly(-1, -1)); }, kMayBeTaken},
      {"WaitingPodOfGreatestDomains",
       [](Mischief* m) { m->Pending(SpreadingOddly(1, std::numeric_limits<int32_t>::max())); }, kMayBeTaken},
      {"WaitingPodOf40000Requirements", [](Mischief* m) { m->Pending(AvoidingValues(40'000)); }, kHostilePod},
      {"BoundPodsOf40000Requirements",
       [](Mischief* m) {
         for (int i = 0; i < 10; ++i) m->Bound(AvoidingValues(40'000 - i));
       },
       kHostilePod},
      {"WaitingPodThatSelects4097Keys", [](Mischief* m) { m->Pending(SelectingKeys(4'097)); }, kHostilePod},
      {"BoundPodThatSelects4097Keys", [](Mischief* m) { m->Bound(SelectingKeys(4'097)); }, kHostilePod},
      {"WaitingPodOf10000NodeAffinityTerms", [](Mischief* m) { m->Pending(NodeAffine(10'000, 1)); },
       kMayBeTaken},
      {"WaitingPodOf50000NodeAffinityValues", [](Mischief* m) { m->Pending(NodeAffine(1, 50'000)); },
       kMayBeTaken},
      {"WaitingPodOf10000NodeSelectors", [](Mischief* m) { m->Pending(NodeSelecting(10'000)); }, kMayBeTaken},
  };
}

}  // namespace loadline
