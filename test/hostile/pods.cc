// Pods: what they ask for, what they are called, and whose they say they are.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/hostile/hostile_objects.h"
#include "test/hostile/mischief.h"

namespace loadline {
namespace {

const Culprit kPod = {"Pod", "evil", "hostile"};
const Culprit kAnyPod = {"Pod", "", ""};
const Culprit kNobody = {};

k8s::v1::Pod Containers(int count) {
  k8s::v1::Pod pod = EvilPod();
  while (pod.spec().containers_size() < count) {
    pod.mutable_spec()->add_containers()->set_name(absl::StrCat("c", pod.spec().containers_size()));
  }
  return pod;
}

k8s::v1::Pod Annotated(size_t bytes) {
  k8s::v1::Pod pod = EvilPod();
  Annotate("evil.example/novel", std::string(bytes, 'x'), pod.mutable_metadata());
  return pod;
}

k8s::v1::Pod Labelled(const std::string& key, const std::string& value, const Quantities& requests = {}) {
  k8s::v1::Pod pod = EvilPod(requests);
  AddLabel(key, value, pod.mutable_metadata());
  return pod;
}

k8s::v1::Pod WithPorts(int ports, const std::string& ip) {
  k8s::v1::Pod pod = EvilPod();
  pod.mutable_metadata()->set_name(absl::StrCat("hostile", ip));
  for (int i = 0; i < ports; ++i) {
    k8s::v1::ContainerPort* const port = pod.mutable_spec()->mutable_containers(0)->add_ports();
    port->set_host_port(i + 1);
    port->set_host_ip(ip);
  }
  return pod;
}

k8s::v1::Pod WithDisks(int disks, const std::string& name) {
  k8s::v1::Pod pod = EvilPod();
  for (int i = 0; i < disks; ++i) {
    k8s::v1::Volume* const volume = pod.mutable_spec()->add_volumes();
    volume->set_name(absl::StrCat("v", i));
    volume->mutable_volume_source()->mutable_iscsi()->set_iqn(absl::StrCat(name, "-", i));
  }
  return pod;
}

// Adds so many pods of pairwise different sizes, which together ask for little.
void DifferentSizes(int count, Mischief* mischief) {
  for (int i = 0; i < count; ++i) {
    k8s::v1::Pod pod = EvilPod({{"cpu", "1m"}, {"memory", absl::StrCat(1'048'576 + i)}});
    pod.mutable_metadata()->set_name(absl::StrCat("hostile-", i));
    mischief->Pending(pod);
  }
}

void Waits(const Quantities& requests, Mischief* mischief) { mischief->Pending(EvilPod(requests)); }

k8s::v1::Pod Named(const std::string& name) {
  k8s::v1::Pod pod = EvilPod();
  pod.mutable_metadata()->set_name(name);
  return pod;
}

k8s::v1::Pod DaemonOwned() {
  k8s::v1::Pod pod = EvilPod({{"cpu", "3"}});
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->mutable_owner_references(0);
  owner->set_kind("DaemonSet");
  owner->set_name("no-such-set");
  return pod;
}

std::vector<HostileRow> Amounts() {
  return {
      {"WaitingPodOf257ExtendedResources", [](Mischief* m) { Waits(ExtendedResources(257, "1"), m); }, kPod},
      {"WaitingPodOf257ZeroAmounts", [](Mischief* m) { Waits(ExtendedResources(257, "0"), m); }, kNobody},
      {"WaitingPodOfOneZeroAmount",
       [](Mischief* m) {
         Waits({{"example.com/foo", "0"}}, m);
       },
       kNobody},
      {"WaitingPodOfAmount1e30",
       [](Mischief* m) {
         Waits({{"cpu", "1e30"}, {"memory", "1e30"}}, m);
       },
       kNobody},
      {"WaitingPodOfNegativeAmount",
       [](Mischief* m) {
         Waits({{"cpu", "-1"}}, m);
       },
       kPod},
      {"WaitingPodOfAmountThatIsNone",
       [](Mischief* m) {
         Waits({{"cpu", "1x"}}, m);
       },
       kPod},
      {"WaitingPodOfAmountOfOneMegabyte",
       [](Mischief* m) {
         Waits({{"cpu", std::string(1 << 20, '9')}}, m);
       },
       kNobody},
      {"WaitingPodOfResourceNameOfOneMegabyte",
       [](Mischief* m) {
         Waits({{std::string(1 << 20, 'r'), "1"}}, m);
       },
       kPod},
      {"WaitingPodThatNamesCpuTwice",
       [](Mischief* m) {
         Waits({{"cpu", "1m"}, {"cpu", "1e30"}}, m);
       },
       kNobody},
      {"WaitingPodOfOverhead1e30",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         AddEntries({{"cpu", "1e30"}, {"memory", "1e30"}}, pod.mutable_spec()->mutable_overhead());
         m->Pending(pod);
       },
       kNobody},
      {"WaitingPodsOf16000ResourceNames",
       [](Mischief* m) {
         for (int i = 0; i < 64; ++i) Waits(ExtendedResources(250, "1", absl::StrCat("p", i, "-")), m);
       },
       kAnyPod, Effect::kTakesRoom},
      {"8200WaitingPodsOfDifferentSizes", [](Mischief* m) { DifferentSizes(8'200, m); }, kNobody,
       Effect::kTakesRoom},
      {"16000WaitingPodsOfDifferentSizes", [](Mischief* m) { DifferentSizes(16'000, m); }, kNobody,
       Effect::kTakesRoom},
      {"WaitingPodOfCount100000000",
       [](Mischief* m) {
         m->Pending(EvilPod({{"cpu", "7"}}), 100'000'000);
       },
       kNobody, Effect::kTakesAll},
      {"WaitingPodOfGreatestCount",
       [](Mischief* m) {
         m->Pending(EvilPod({{"cpu", "1m"}}), std::numeric_limits<int32_t>::max());
       },
       kNobody, Effect::kTakesAll},
      {"BoundPodOf257ZeroAmounts", [](Mischief* m) { m->Bound(EvilPod(ExtendedResources(257, "0"))); },
       kNobody},
      {"BoundPodOf257ExtendedResources", [](Mischief* m) { m->Bound(EvilPod(ExtendedResources(257, "1"))); },
       kPod},
      {"BoundPodOfAmount1e30",
       [](Mischief* m) {
         m->Bound(EvilPod({{"cpu", "1e30"}, {"example.com/foo", "1e30"}}));
       },
       kNobody},
      {"BoundPodOfOneZeroAmount",
       [](Mischief* m) {
         m->Bound(EvilPod({{"example.com/foo", "0"}}));
       },
       kNobody},
      {"BoundPodOfNegativeStatus",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         AddEntries({{"cpu", "-1e30"}}, pod.mutable_status()->mutable_resources()->mutable_requests());
         m->Bound(pod);
       },
       kPod},
      {"BoundPodOfStatus1e30",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         k8s::v1::ContainerStatus* const status = pod.mutable_status()->add_container_statuses();
         status->set_name("app");
         AddEntries({{"cpu", "1e30"}}, status->mutable_allocated_resources());
         m->Bound(pod);
       },
       kNobody},
  };
}

std::vector<HostileRow> Lengths() {
  return {
      {"WaitingPodOf1025Containers", [](Mischief* m) { m->Pending(Containers(1'025)); }, kPod},
      {"WaitingPodOf1024Containers", [](Mischief* m) { m->Pending(Containers(1'024)); }, kNobody},
      {"WaitingPodOf1025InitContainers",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         for (int i = 0; i < 1'025; ++i)
           pod.mutable_spec()->add_init_containers()->set_name(absl::StrCat("i", i));
         m->Pending(pod);
       },
       kPod},
      {"BoundPodOf1025Containers", [](Mischief* m) { m->Bound(Containers(1'025)); }, kPod},
      {"WaitingPodOfAnnotationsAtTheLimit", [](Mischief* m) { m->Pending(Annotated(1'500 * 1'024)); },
       kNobody},
      {"WaitingPodOfAnnotationsBeyondTheLimit", [](Mischief* m) { m->Pending(Annotated(1'600 * 1'024)); },
       kPod},
      {"BoundPodOfAnnotationsBeyondTheLimit", [](Mischief* m) { m->Bound(Annotated(1'600 * 1'024)); }, kPod},
      {"WaitingPodOf10000Labels",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         for (int i = 0; i < 10'000; ++i)
           AddLabel(absl::StrCat("evil.example/l", i), "v", pod.mutable_metadata());
         m->Pending(pod);
       },
       kNobody},
      {"WaitingPodOf1001HostPorts", [](Mischief* m) { m->Pending(WithPorts(1'001, "")); }, kPod},
      {"WaitingPodOf1000HostPorts", [](Mischief* m) { m->Pending(WithPorts(1'000, "")); }, kNobody},
      {"20BoundPodsOf1000HostPorts",
       [](Mischief* m) {
         for (int i = 0; i < 20; ++i) m->Bound(WithPorts(1'000, absl::StrCat("127.0.0.", i)));
       },
       kNobody},
      {"WaitingPodOf1001Volumes", [](Mischief* m) { m->Pending(WithDisks(1'001, "d")); }, kPod},
      {"WaitingPodOf1000DisksAmong20000Others",
       [](Mischief* m) {
         m->Pending(WithDisks(1'000, "ours"));
         for (int i = 0; i < 20; ++i) m->Bound(WithDisks(1'000, absl::StrCat("theirs-", i)));
       },
       kNobody},
      {"WaitingPodOf1000Claims",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         for (int i = 0; i < 1'000; ++i) {
           k8s::v1::Volume* const volume = pod.mutable_spec()->add_volumes();
           volume->set_name(absl::StrCat("v", i));
           volume->mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(
               absl::StrCat("claim-", i));
         }
         m->Pending(pod);
       },
       kNobody},
  };
}

std::vector<HostileRow> NamesAndOwners() {
  return {
      {"WaitingPodOfANameThatIsNoUtf8", [](Mischief* m) { m->Pending(Named("\xff\xfe\x80")); }, kNobody},
      {"WaitingPodOfANameWithNulAndAnsi",
       [](Mischief* m) { m->Pending(Named(std::string("a\0b\x1b[2J\r\n", 9))); }, kNobody},
      {"BoundPodOfANameWithNulAndAnsi",
       [](Mischief* m) { m->Bound(Named(std::string("a\0b\x1b[2J\r\n", 9))); },
       {"Node", "", "victim"}},
      {"WaitingPodOfANamespaceOfOneMegabyte",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         pod.mutable_metadata()->set_namespace_(std::string(1 << 20, 'n'));
         m->Pending(pod);
       },
       kAnyPod},
      {"BoundPodOfAnOwnerOfOneMegabyte",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         Annotate("loadline.dev/slack", "true", pod.mutable_metadata());
         pod.mutable_metadata()->mutable_owner_references(0)->set_kind(std::string(1 << 19, 'K'));
         pod.mutable_metadata()->mutable_owner_references(0)->set_name(std::string(1 << 19, '\xff'));
         m->Bound(pod);
       },
       kNobody},
      {"WaitingPodWithAForgedPlaceholderLabel",
       [](Mischief* m) { m->Pending(Labelled("loadline.dev/placeholder", "true")); }, kNobody},
      {"BoundPodWithAForgedPlaceholderLabel",
       [](Mischief* m) {
         m->Bound(Labelled("loadline.dev/placeholder", "true", {{"cpu", "4"}}));
       },
       kNobody},
      {"BoundPodWithAForgedDaemonSetOwner", [](Mischief* m) { m->Bound(DaemonOwned()); }, kNobody,
       Effect::kTakesRoom},
      {"WaitingPodOfGreatestPriority",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         pod.mutable_spec()->set_priority(std::numeric_limits<int32_t>::max());
         m->Pending(pod);
       },
       kNobody},
      {"BoundPodFromTheEndOfTime",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod();
         pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(
             std::numeric_limits<int64_t>::max());
         pod.mutable_metadata()->mutable_creation_timestamp()->set_seconds(
             std::numeric_limits<int64_t>::min());
         pod.mutable_spec()->set_termination_grace_period_seconds(std::numeric_limits<int64_t>::max());
         m->Bound(pod);
       },
       kNobody},
      {"BoundPodThatWantsCopies",
       [](Mischief* m) {
         k8s::v1::Pod pod = EvilPod({{"cpu", "1"}});
         Annotate("loadline.dev/slack", "true", pod.mutable_metadata());
         Annotate("loadline.dev/slack-copies", "10000", pod.mutable_metadata());
         m->Bound(pod);
       },
       kNobody, Effect::kTakesRoom},
      // Somebody else has many bad pods, and yet the one of evil is named.
      {"BoundPodBehind400OfAnother",
       [](Mischief* m) {
         m->Bound(EvilPod({{"cpu", "-1"}}));
         for (int i = 0; i < 400; ++i) {
           k8s::v1::Pod pod = EvilPod({{"cpu", "-1"}});
           pod.mutable_metadata()->set_namespace_("another");
           pod.mutable_metadata()->set_name(absl::StrCat("bad-", i));
           m->Bound(pod);
         }
       },
       {"Pod", "evil", "hostile"}},
      {"BoundPodsOfOneName",
       [](Mischief* m) {
         for (int i = 0; i < 1'000; ++i) m->Bound(EvilPod());
       },
       kNobody},
  };
}

}  // namespace

std::vector<HostileRow> HostilePods() {
  std::vector<HostileRow> rows = Amounts();
  for (const std::vector<HostileRow>& more : {Lengths(), NamesAndOwners()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace loadline
