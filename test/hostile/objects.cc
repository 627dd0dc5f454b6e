// The objects that are no pods: nodes, workloads, budgets, namespaces, volumes and node groups.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "test/hostile/hostile_objects.h"
#include "test/hostile/mischief.h"

namespace loadline {
namespace {

const Culprit kAnybody = {};
const Culprit kBudget = {"PodDisruptionBudget", "evil", "hostile"};
const Culprit kDeployment = {"Deployment", "evil", "hostile"};
const Culprit kDaemonSet = {"DaemonSet", "", ""};
const Culprit kNode = {"Node", "", "hostile-node"};

// A taint keeps pods of others away, and makes it a class of its own to slack.
k8s::v1::Node Repelling(k8s::v1::Node node) {
  k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
  taint->set_key("evil.example/keep-off");
  taint->set_effect("NoSchedule");
  return node;
}

k8s::v1::Node EvilNode(const Quantities& allocatable = {{"cpu", "0"}, {"memory", "0"}, {"pods", "0"}}) {
  return Repelling(MakeNode("hostile-node", allocatable));
}

k8s::v1::Node Tainted(int count) {
  k8s::v1::Node node = EvilNode();
  for (int i = 0; i < count; ++i) {
    k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
    taint->set_key(absl::StrCat("evil.example/t", i));
    taint->set_effect("NoSchedule");
  }
  return node;
}

k8s::v1::PodDisruptionBudget BudgetOverKeys(int count, int32_t allowed) {
  auto budget = EvilObject<k8s::v1::PodDisruptionBudget>();
  for (int i = 0; i < count; ++i) {
    AddRequirement(absl::StrCat("evil.example/k", i), "DoesNotExist",
                   budget.mutable_spec()->mutable_selector());
  }
  budget.mutable_status()->set_disruptions_allowed(allowed);
  return budget;
}

// Budgets of 250 requirements each, of which the last one fails for each of the pods.
void AddCostlyBudgets(int budgets, int pods, Mischief* mischief) {
  for (int i = 0; i < budgets; ++i) {
    k8s::v1::PodDisruptionBudget budget = BudgetOverKeys(250, 0);
    budget.mutable_metadata()->set_name(absl::StrCat("hostile-", i));
    mischief->Object(v1::POD_DISRUPTION_BUDGET, budget);
  }
  for (int i = 0; i < pods; ++i) {
    k8s::v1::Pod pod = EvilPod();
    AddLabel("evil.example/k249", absl::StrCat(i), pod.mutable_metadata());
    pod.mutable_metadata()->set_name(absl::StrCat("hostile-", i));
    mischief->Bound(pod);
  }
}

k8s::v1::Deployment SlackDeployment(const k8s::v1::Pod& pod, int32_t replicas, const std::string& copies) {
  auto deployment = EvilObject<k8s::v1::Deployment>();
  Annotate("loadline.dev/slack", "true", deployment.mutable_metadata());
  if (!copies.empty()) Annotate("loadline.dev/slack-copies", copies, deployment.mutable_metadata());
  deployment.mutable_spec()->set_replicas(replicas);
  *deployment.mutable_spec()->mutable_template_() = pod;
  return deployment;
}

v1::ScalableGroup EvilGroup(const std::string& name, int32_t current, int32_t most) {
  v1::ScalableGroup group;
  group.set_node_group(name);
  group.set_current_nodes(current);
  group.set_max_nodes(most);
  group.set_node_usd_per_hour(1e6);  // so that pods of others grow their own
  group.set_template_node(
      Repelling(MakeNode(name, {{"cpu", "1"}, {"memory", "1Gi"}, {"pods", "1"}})).SerializeAsString());
  return group;
}

std::vector<HostileRow> Workloads() {
  return {
      {"1001DaemonPods",
       [](Mischief* m) {
         for (int i = 0; i < 1'001; ++i) m->DaemonPod(EvilPod());
       },
       kDaemonSet, Effect::kTakesAll},  // 1,000 of them are more pods than a new node takes
      {"DaemonPodOf257ExtendedResources",
       [](Mischief* m) { m->DaemonPod(EvilPod(ExtendedResources(257, "1"))); }, kDaemonSet},
      {"1001DaemonSets",
       [](Mischief* m) {
         for (int i = 0; i < 1'001; ++i) {
           auto set = EvilObject<k8s::v1::DaemonSet>();
           set.mutable_metadata()->set_name(absl::StrCat("hostile-", i));
           *set.mutable_spec()->mutable_template_() = EvilPod();
           m->Object(v1::DAEMON_SET, set);
         }
       },
       kAnybody},
      {"DaemonSetOf1025Containers",
       [](Mischief* m) {
         auto set = EvilObject<k8s::v1::DaemonSet>();
         *set.mutable_spec()->mutable_template_() = EvilPod();
         for (int i = 0; i < 1'024; ++i)
           set.mutable_spec()->mutable_template_()->mutable_spec()->add_containers();
         m->Object(v1::DAEMON_SET, set);
       },
       kDaemonSet},
      {"DeploymentOf257ExtendedResourcesWithSlack",
       [](Mischief* m) {
         m->Object(v1::DEPLOYMENT, SlackDeployment(EvilPod(ExtendedResources(257, "1")), 0, ""));
       },
       kDeployment},
      {"DeploymentThatWantsABillionCopies",
       [](Mischief* m) {
         m->Object(v1::DEPLOYMENT, SlackDeployment(EvilPod({{"cpu", "1m"}}), 1, "1000000000"));
       },
       kAnybody, Effect::kTakesRoom},
      {"DeploymentThatWantsCopiesThatAreNoNumber",
       [](Mischief* m) {
         m->Object(v1::DEPLOYMENT, SlackDeployment(EvilPod(), 1, std::string(1 << 20, '\x1b')));
       },
       kAnybody},
      {"DeploymentWithSlackOfGreatestReplicas",
       [](Mischief* m) {
         m->Object(v1::DEPLOYMENT,
                   SlackDeployment(EvilPod({{"cpu", "1e30"}}), std::numeric_limits<int32_t>::max(), "-1"));
       },
       kAnybody, Effect::kTakesRoom},
      {"JobOfGreatestParallelism",
       [](Mischief* m) {
         auto job = EvilObject<k8s::v1::Job>();
         job.mutable_spec()->set_parallelism(std::numeric_limits<int32_t>::max());
         job.mutable_spec()->set_completions(std::numeric_limits<int32_t>::min());
         *job.mutable_spec()->mutable_template_() = EvilPod();
         m->Object(v1::JOB, job);
       },
       kAnybody},
  };
}

std::vector<HostileRow> BudgetsAndNamespaces() {
  return {
      {"BudgetOver4097LabelKeys",
       [](Mischief* m) { m->Object(v1::POD_DISRUPTION_BUDGET, BudgetOverKeys(4'097, 0)); }, kBudget},
      {"BudgetOver10001LabelKeys",
       [](Mischief* m) { m->Object(v1::POD_DISRUPTION_BUDGET, BudgetOverKeys(10'001, 0)); }, kBudget},
      {"BudgetOfNegativeDisruptions",
       [](Mischief* m) {
         m->Object(v1::POD_DISRUPTION_BUDGET, BudgetOverKeys(1, std::numeric_limits<int32_t>::min()));
       },
       kAnybody},
      {"300BudgetsOf250RequirementsOver1000Pods",
       [](Mischief* m) { AddCostlyBudgets(300, 1'000, m); },
       {"PodDisruptionBudget", "evil", ""}},
      {"BudgetOf30000DisruptedPods",
       [](Mischief* m) {
         k8s::v1::PodDisruptionBudget budget = BudgetOverKeys(1, 0);
         for (int i = 0; i < 30'000; ++i) {
           k8s::v1::TimeEntry* const entry = budget.mutable_status()->add_disrupted_pods();
           entry->set_key(absl::StrCat("pod-", i));
           entry->mutable_value()->set_seconds(std::numeric_limits<int64_t>::max());
         }
         m->Object(v1::POD_DISRUPTION_BUDGET, budget);
       },
       kAnybody},
      {"NamespaceOf10000Labels",
       [](Mischief* m) {
         k8s::v1::Namespace one;
         one.mutable_metadata()->set_name("evil");
         for (int i = 0; i < 10'000; ++i)
           AddLabel(absl::StrCat("evil.example/l", i), "v", one.mutable_metadata());
         m->Object(v1::NAMESPACE, one);
       },
       kAnybody},
      {"10000Namespaces",
       [](Mischief* m) {
         for (int i = 0; i < 10'000; ++i) {
           k8s::v1::Namespace one;
           one.mutable_metadata()->set_name(absl::StrCat("evil-", i));
           m->Object(v1::NAMESPACE, one);
         }
       },
       kAnybody},
      {"NamespaceOfANameThatIsNoUtf8",
       [](Mischief* m) {
         k8s::v1::Namespace one;
         one.mutable_metadata()->set_name("\xff\x1b[2J");
         m->Object(v1::NAMESPACE, one);
       },
       {"Namespace", "", ""}},
      {"VolumeOf10000NodeAffinityTerms",
       [](Mischief* m) {
         k8s::v1::PersistentVolume volume;
         volume.mutable_metadata()->set_name("hostile");
         k8s::v1::NodeSelector* const nodes =
             volume.mutable_spec()->mutable_node_affinity()->mutable_required();
         for (int i = 0; i < 10'000; ++i) {
           k8s::v1::NodeSelectorRequirement* const requirement =
               nodes->add_node_selector_terms()->add_match_expressions();
           requirement->set_key(absl::StrCat("evil.example/k", i));
           requirement->set_operator_("Exists");
         }
         m->Object(v1::PERSISTENT_VOLUME, volume);
       },
       {"PersistentVolume", "", "hostile"}},
      {"ClaimOf257Requirements",
       [](Mischief* m) {
         auto claim = EvilObject<k8s::v1::PersistentVolumeClaim>();
         for (int i = 0; i < 257; ++i) {
           AddRequirement(absl::StrCat("evil.example/k", i), "DoesNotExist",
                          claim.mutable_spec()->mutable_selector());
         }
         m->Object(v1::PERSISTENT_VOLUME_CLAIM, claim);
       },
       {"PersistentVolumeClaim", "evil", "hostile"}},
  };
}

std::vector<HostileRow> NodesAndGroups() {
  return {
      {"NodeOf300ExtendedResources", [](Mischief* m) { m->Node(EvilNode(ExtendedResources(300, "0"))); },
       kNode},
      {"NodeOf10001Taints", [](Mischief* m) { m->Node(Tainted(10'001)); }, kAnybody},
      {"NodeOf30000Labels",
       [](Mischief* m) {
         k8s::v1::Node node = EvilNode();
         for (int i = 0; i < 30'000; ++i)
           AddLabel(absl::StrCat("evil.example/l", i), "v", node.mutable_metadata());
         m->Node(node);
       },
       kAnybody},
      {"NodeOfNegativeAllocatable",
       [](Mischief* m) {
         m->Node(EvilNode({{"cpu", "-1"}, {"memory", "-1e30"}, {"pods", "0"}}));
       },
       kNode},
      {"NodeOfANameWithAnsi",
       [](Mischief* m) {
         k8s::v1::Node node = EvilNode();
         node.mutable_metadata()->set_name("\x1b[2Jnode");
         m->Node(node);
       },
       {"Node", "", ""}},
      {"GroupOf100000000Nodes",
       [](Mischief* m) { m->Group(EvilGroup("hostile", 100'000'000, 200'000'000)); },
       {"NodeGroup", "", "hostile"}},
      {"GroupOfGreatestMaximum",
       [](Mischief* m) {
         m->Group(EvilGroup("hostile", 0, std::numeric_limits<int32_t>::max()));
         k8s::v1::Pod pod = EvilPod({{"cpu", "500m"}});
         pod.mutable_spec()->add_tolerations()->set_operator_("Exists");
         m->Pending(pod, 100'000'000);
       },
       kAnybody, Effect::kTakesAll},
      {"GroupWhoseIdDoesNotPrint",
       [](Mischief* m) { m->Group(EvilGroup("hostile\x1b[31m", 0, 1)); },
       {"NodeGroup", "", ""}},
      {"GroupWhoseIdIsLong",
       [](Mischief* m) { m->Group(EvilGroup("hostile" + std::string(300, 'x'), 0, 1)); },
       {"NodeGroup", "", ""}},
      {"GroupWhoseIdHasASpace", [](Mischief* m) { m->Group(EvilGroup("hostile asg", 0, 1)); }, kAnybody},
      {"GroupOfNegativeMaximum",
       [](Mischief* m) { m->Group(EvilGroup("hostile", 0, -3)); },
       {"NodeGroup", "", "hostile"}},
      {"GroupWithATemplateThatIsNone",
       [](Mischief* m) {
         v1::ScalableGroup group = EvilGroup("hostile", 0, 1);
         group.set_template_node(std::string(1'500'000, '\xff'));
         m->Group(group);
       },
       {"NodeGroup", "", "hostile"}},
  };
}

}  // namespace

std::vector<HostileRow> HostileObjects() {
  std::vector<HostileRow> rows = Workloads();
  for (const std::vector<HostileRow>& more : {BudgetsAndNamespaces(), NodesAndGroups()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace loadline
