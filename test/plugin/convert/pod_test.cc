// v1.Pod bytes to shapes.
#include "plugin/convert/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "plugin/convert/parse.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using NamedAmounts = std::map<std::string, int64_t>;

// One decoder over several pods, as in a batch.
class PodDecoderTest : public ::testing::Test {
 protected:
  absl::StatusOr<PodShape> Decode(const k8s::v1::Pod& pod, PodRole role = PodRole::kExisting) {
    return decoder_.Decode(pod.SerializeAsString(), role);
  }
  PodShape MustDecode(const k8s::v1::Pod& pod, PodRole role = PodRole::kExisting) {
    absl::StatusOr<PodShape> shape = Decode(pod, role);
    EXPECT_TRUE(shape.ok()) << shape.status();
    return shape.ok() ? *std::move(shape) : PodShape();
  }
  std::string ErrorOf(const k8s::v1::Pod& pod) {
    const absl::StatusOr<PodShape> shape = Decode(pod);
    EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(shape.status().message());
  }
  NamedAmounts Named(const ResourceAmounts& amounts) const {
    NamedAmounts named;
    for (const auto& [id, amount] : amounts) named[std::string(names_.name(id))] = amount;
    return named;
  }

  ResourceNames names_;
  // Many names: those of one pod are of interest here.
  ResourceReader resources_{&names_, {{1000, 1000, 1000}, kDefaultSlackNamespace}};
  PodDecoder decoder_{&resources_};
};

k8s::v1::Container* AddContainer(const std::string& name, const Quantities& limits,
                                 google::protobuf::RepeatedPtrField<k8s::v1::Container>* containers) {
  k8s::v1::Container* const container = containers->Add();
  container->set_name(name);
  AddEntries(limits, container->mutable_resources()->mutable_limits());
  return container;
}

TEST_F(PodDecoderTest, ReadsRequestsAndLimits) {
  const PodShape shape =
      MustDecode(MakePod({{"cpu", "1500m"}, {"example.com/gpu", "2"}}, {{"cpu", "0.1"}, {"memory", "1Ki"}}));
  EXPECT_EQ(shape.namespace_name, "default");
  EXPECT_FALSE(shape.finished);
  EXPECT_FALSE(shape.best_effort);
  EXPECT_THAT(Named(shape.limits), ElementsAre(Pair("cpu", 1500), Pair("example.com/gpu", 2)));
  EXPECT_THAT(Named(shape.requests), ElementsAre(Pair("cpu", 100), Pair("memory", 1024)));
}

TEST_F(PodDecoderTest, AnEmptyPodIsBestEffort) {
  const PodShape shape = MustDecode(k8s::v1::Pod());
  EXPECT_EQ(shape.namespace_name, "");
  EXPECT_TRUE(shape.best_effort);
  EXPECT_THAT(Named(shape.limits), IsEmpty());
  EXPECT_THAT(Named(shape.requests), IsEmpty());
}

// 100m + 200m run at once; the sidecar's 50m is there before the plain init container's 400m, and overhead is
// added to all of it: max(350, 450) + 10.
TEST_F(PodDecoderTest, ReadsInitContainersSidecarsAndOverhead) {
  k8s::v1::Pod pod = MakePod({{"cpu", "100m"}});
  AddContainer("second", {{"cpu", "200m"}}, pod.mutable_spec()->mutable_containers());
  AddContainer("sidecar", {{"cpu", "50m"}}, pod.mutable_spec()->mutable_init_containers())
      ->set_restart_policy("Always");
  AddContainer("init", {{"cpu", "400m"}}, pod.mutable_spec()->mutable_init_containers());
  AddEntries({{"cpu", "10m"}}, pod.mutable_spec()->mutable_overhead());
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 460)));
}

TEST_F(PodDecoderTest, PodLevelResourcesReplaceTheSumOfTheContainers) {
  k8s::v1::Pod pod = MakePod({{"cpu", "3"}, {"example.com/gpu", "1"}});
  k8s::v1::ResourceRequirements* const level = pod.mutable_spec()->mutable_resources();
  AddEntries({{"cpu", "2"}}, level->mutable_limits());
  AddEntries({{"memory", "5"}}, level->mutable_requests());
  const PodShape shape = MustDecode(pod);
  EXPECT_THAT(Named(shape.limits), ElementsAre(Pair("cpu", 2000), Pair("example.com/gpu", 1)));
  EXPECT_EQ(Named(shape.requests)["memory"], 5);
}

// A resize to 1 CPU that the node has not carried out counts the larger one, except where the kubelet said
// that it never will. Requests also count what is allocated.
TEST_F(PodDecoderTest, ReadsTheResizeStatusOfExistingPodsOnly) {
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}}, {{"cpu", "500m"}});
  k8s::v1::ContainerStatus* const status = pod.mutable_status()->add_container_statuses();
  status->set_name("app");
  AddEntries({{"cpu", "3"}}, status->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "700m"}}, status->mutable_allocated_resources());
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 3000)));
  EXPECT_THAT(Named(MustDecode(pod).requests), ElementsAre(Pair("cpu", 700)));
  EXPECT_THAT(Named(MustDecode(pod, PodRole::kIncoming).limits), ElementsAre(Pair("cpu", 1000)));

  AddEntries({{"cpu", "250m"}}, status->mutable_resources()->mutable_requests());
  k8s::v1::PodCondition* const condition = pod.mutable_status()->add_conditions();
  condition->set_type("PodResizePending");
  condition->set_reason("Deferred");
  status->mutable_resources()->mutable_limits(0)->mutable_value()->set_string("300m");
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 1000)));
  condition->set_reason("Infeasible");
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 300)));
}

TEST_F(PodDecoderTest, ReadsTheStatusOfSidecars) {
  k8s::v1::Pod pod = MakePod({});
  AddContainer("sidecar", {{"cpu", "1"}}, pod.mutable_spec()->mutable_init_containers())
      ->set_restart_policy("Always");
  k8s::v1::ContainerStatus* const status = pod.mutable_status()->add_init_container_statuses();
  status->set_name("sidecar");
  AddEntries({{"cpu", "2"}}, status->mutable_resources()->mutable_limits());
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 2000)));
}

TEST_F(PodDecoderTest, ReadsTheStatusOfThePodLevel) {
  k8s::v1::Pod pod = MakePod({});
  AddEntries({{"cpu", "1"}}, pod.mutable_spec()->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "1"}}, pod.mutable_spec()->mutable_resources()->mutable_requests());
  AddEntries({{"cpu", "2"}}, pod.mutable_status()->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "4"}}, pod.mutable_status()->mutable_allocated_resources());
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 2000)));
  EXPECT_THAT(Named(MustDecode(pod).requests), ElementsAre(Pair("cpu", 4000)));
}

TEST_F(PodDecoderTest, FinishedPodsHoldNothing) {
  for (const char* const phase : {"Succeeded", "Failed"}) {
    k8s::v1::Pod pod = MakePod({{"cpu", "1"}});
    pod.mutable_status()->set_phase(phase);
    EXPECT_TRUE(MustDecode(pod).finished) << phase;
    EXPECT_THAT(Named(MustDecode(pod).limits), IsEmpty()) << phase;
    EXPECT_FALSE(MustDecode(pod, PodRole::kIncoming).finished) << phase;
  }
  for (const char* const phase : {"", "Pending", "Running", "Unknown", "succeeded"}) {
    k8s::v1::Pod pod = MakePod({{"cpu", "1"}});
    pod.mutable_status()->set_phase(phase);
    EXPECT_FALSE(MustDecode(pod).finished) << phase;
  }
}

TEST_F(PodDecoderTest, OfEqualKeysTheLastOneHolds) {
  EXPECT_THAT(Named(MustDecode(MakePod({{"cpu", "1"}, {"memory", "7"}, {"cpu", "2"}})).limits),
              ElementsAre(Pair("cpu", 2000), Pair("memory", 7)));
}

TEST_F(PodDecoderTest, AnAbsentQuantityIsZero) {
  k8s::v1::Pod pod = MakePod({});
  auto* const limits = pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits();
  limits->Add()->set_key("cpu");
  limits->Add()->set_key("memory");
  limits->Mutable(1)->mutable_value();
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("cpu", 0), Pair("memory", 0)));
}

// The huge pages that a pod as a whole states replace what its containers ask for, also by 0.
TEST_F(PodDecoderTest, ZeroOfThePodLevelReplacesTheSumOfTheContainers) {
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}, {"hugepages-2Mi", "64Mi"}});
  pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests()->CopyFrom(
      pod.spec().containers(0).resources().limits());
  k8s::v1::ResourceRequirements* const level = pod.mutable_spec()->mutable_resources();
  AddEntries({{"cpu", "1"}, {"hugepages-2Mi", "0"}}, level->mutable_requests());
  AddEntries({{"hugepages-2Mi", "0"}, {"hugepages-1Gi", "0"}}, level->mutable_limits());
  const PodShape shape = MustDecode(pod);
  EXPECT_THAT(Named(shape.requests), ElementsAre(Pair("cpu", 1000), Pair("hugepages-2Mi", 0)));
  EXPECT_THAT(Named(shape.limits), ElementsAre(Pair("cpu", 1000), Pair("hugepages-2Mi", 0)));
  EXPECT_FALSE(names_.Find("hugepages-1Gi").has_value()) << "nobody asks for any";
}

// A status without any limit leaves the spec in force after a resize that is infeasible, but not one of
// zeros.
TEST_F(PodDecoderTest, StatusOfLimitsThatAreAllZeroStatesLimits) {
  k8s::v1::Pod pod = MakePod({});
  AddEntries({{"memory", "300"}}, pod.mutable_spec()->mutable_resources()->mutable_limits());
  k8s::v1::PodCondition* const condition = pod.mutable_status()->add_conditions();
  condition->set_type("PodResizePending");
  condition->set_reason("Infeasible");
  pod.mutable_status()->mutable_resources();
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("memory", 300)));
  AddEntries({{"hugepages-2Mi", "0"}}, pod.mutable_status()->mutable_resources()->mutable_limits());
  EXPECT_THAT(Named(MustDecode(pod).limits), ElementsAre(Pair("memory", 0)));
}

TEST_F(PodDecoderTest, NothingOfAFormerPodRemains) {
  k8s::v1::Pod full = MakePod({{"cpu", "1"}}, {{"memory", "1"}});
  AddEntries({{"cpu", "1"}}, full.mutable_spec()->mutable_overhead());
  AddEntries({{"cpu", "1"}}, full.mutable_spec()->mutable_resources()->mutable_limits());
  full.mutable_status()->set_phase("Failed");
  MustDecode(full);
  EXPECT_EQ(MustDecode(k8s::v1::Pod()), MakePodShape("", false, PodResources(), names_, PodRole::kExisting));
}

TEST_F(PodDecoderTest, HugeAmountsAreClampedAndCounted) {
  struct Row {
    const char* resource;
    const char* quantity;
    int64_t amount;
    int clamped;
  };
  for (const Row& row : std::vector<Row>{
           {"memory", "8Ei", kMaxAmount, 1},
           {"memory", "1e30", kMaxAmount, 1},
           {"memory", "9e18", kMaxAmount, 1},
           {"memory", "4611686018427387904", kMaxAmount, 0},
           {"memory", "4611686018427387905", kMaxAmount, 1},
           {"memory", "4Ei", kMaxAmount, 0},
           {"cpu", "9e18", kMaxAmount, 1},
           {"cpu", "4611686018427387.904", kMaxAmount, 0},
           {"cpu", "4611686018427387.905", kMaxAmount, 1},
           {"cpu", "4611686018427387", 4611686018427387000, 0},
       }) {
    const int64_t before = resources_.clamped_amounts();
    const PodShape shape = MustDecode(MakePod({{row.resource, row.quantity}}));
    EXPECT_EQ(Named(shape.limits)[row.resource], row.amount) << row.resource << " " << row.quantity;
    EXPECT_EQ(resources_.clamped_amounts() - before, row.clamped) << row.resource << " " << row.quantity;
  }
}

struct BadPod {
  std::string name;
  std::function<void(k8s::v1::Pod*)> change;
  std::string error;
};

class BadPodTest : public PodDecoderTest, public ::testing::WithParamInterface<BadPod> {};

TEST_P(BadPodTest, IsRefusedWithThePathOfTheField) {
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}, {"memory", "1Gi"}});
  GetParam().change(&pod);
  EXPECT_THAT(ErrorOf(pod), StartsWith(GetParam().error));
  EXPECT_THAT(Named(MustDecode(MakePod({{"cpu", "2"}})).limits), ElementsAre(Pair("cpu", 2000)));
}

k8s::v1::ResourceRequirements* FirstResources(k8s::v1::Pod* pod) {
  return pod->mutable_spec()->mutable_containers(0)->mutable_resources();
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadPodTest,
    ::testing::ValuesIn(std::vector<BadPod>{
        {"Malformed",
         [](k8s::v1::Pod* pod) {
           AddContainer("b", {}, pod->mutable_spec()->mutable_containers());
           AddContainer("c", {{"memory", "1.5.2"}}, pod->mutable_spec()->mutable_containers());
         },
         R"((namespace "default"): spec.containers[2] "c": resources.limits["memory"]: "1.5.2" is not a quantity)"},
        {"Empty",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"x", ""}}, FirstResources(pod)->mutable_requests());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.requests["x"]: "" is not a quantity)"},
        {"Negative",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"cpu", "-1n"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.limits["cpu"]: "-1n" is negative)"},
        {"MalformedBeforeAGoodOneOfTheSameKey",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"x", "bad"}, {"x", "1"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.limits["x"]: "bad" is not a quantity)"},
        {"InitContainer",
         [](k8s::v1::Pod* pod) {
           AddContainer("i\x1b[31m", {{"cpu", "?"}}, pod->mutable_spec()->mutable_init_containers());
         },
         R"((namespace "default"): spec.initContainers[0] "i\x1b[31m": resources.limits["cpu"]: "?" is not)"},
        {"Overhead",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"cpu", "-5"}}, pod->mutable_spec()->mutable_overhead());
         },
         R"((namespace "default"): spec.overhead["cpu"]: "-5" is negative)"},
        {"PodLevel",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"cpu", "1K"}}, pod->mutable_spec()->mutable_resources()->mutable_limits());
         },
         R"((namespace "default"): spec.resources.limits["cpu"]: "1K" is not a quantity)"},
        {"Status",
         [](k8s::v1::Pod* pod) {
           pod->mutable_status()->add_container_statuses()->set_name("a");
           k8s::v1::ContainerStatus* const status = pod->mutable_status()->add_container_statuses();
           status->set_name("b");
           AddEntries({{"cpu", "-1"}}, status->mutable_allocated_resources());
         },
         R"((namespace "default"): status.containerStatuses[1] "b": allocatedResources["cpu"]: "-1" is negative)"},
        {"PodLevelStatus",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"cpu", "x"}}, pod->mutable_status()->mutable_resources()->mutable_requests());
         },
         R"((namespace "default"): status.resources.requests["cpu"]: "x" is not a quantity)"},
        {"EmptyResourceName",
         [](k8s::v1::Pod* pod) {
           AddEntries({{"", "1"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.limits[""]: the name of the resource is empty)"},
        {"NulInResourceName",
         [](k8s::v1::Pod* pod) {
           AddEntries({{std::string("cpu\0x", 5), "1"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.limits["cpu\x00x"]: "cpu\x00x" is not a name)"},
        {"LongResourceName",
         [](k8s::v1::Pod* pod) {
           AddEntries({{std::string(318, 'a'), "1"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers[0] "app": resources.limits[")"},
        {"NulInNamespace",
         [](k8s::v1::Pod* pod) { pod->mutable_metadata()->set_namespace_(std::string("a\0z", 3)); },
         R"(metadata.namespace: "a\x00z" is not a name: it has characters other than printable ASCII)"},
        {"TooManyContainers",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 1024; ++i) pod->mutable_spec()->add_containers();
         },
         R"((namespace "default"): spec.containers: has 1025 entries, at most 1024 are allowed)"},
        {"TooManyResources",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 257; ++i) {
             AddEntries({{"r", "1"}}, FirstResources(pod)->mutable_requests());
           }
         },
         R"((namespace "default"): spec.containers[0] "app": resources.requests: has 257 entries, at most 256)"},
        {"TooManyResourcesOfAllContainers",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 254; ++i) {
             const std::string name = "example.com/r" + std::to_string(i);
             AddEntries({{name, "1"}},
                        pod->mutable_spec()->add_containers()->mutable_resources()->mutable_limits());
           }
           AddEntries({{"example.com/one-more", "1"}}, FirstResources(pod)->mutable_limits());
         },
         R"((namespace "default"): spec.containers: resources.limits: has 257 distinct entries in all, at most 256)"},
        {"TooManyAffinityTerms",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 1'001; ++i)
             pod->mutable_spec()->mutable_affinity()->mutable_pod_affinity()->add_required();
         },
         R"((namespace "default"): spec.affinity.podAffinity: has 1001 entries, at most 1000 are allowed)"},
        {"TooManyAntiAffinityTerms",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 1'001; ++i)
             pod->mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required();
         },
         R"((namespace "default"): spec.affinity.podAntiAffinity: has 1001 entries, at most 1000 are allowed)"},
        {"TooManySpreadConstraints",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 1'001; ++i) pod->mutable_spec()->add_topology_spread_constraints();
         },
         R"((namespace "default"): spec.topologySpreadConstraints: has 1001 entries, at most 1000 are allowed)"},
        {"TooManyHostPorts",
         [](k8s::v1::Pod* pod) {
           k8s::v1::Container* const container = pod->mutable_spec()->mutable_containers(0);
           for (int i = 1; i <= 1'001; ++i) container->add_ports()->set_host_port(i);
         },
         R"((namespace "default"): spec.containers: hostPort: has 1001 entries, at most 1000 are allowed)"},
        {"TooManyVolumes",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 1'001; ++i) pod->mutable_spec()->add_volumes();
         },
         R"((namespace "default"): spec.volumes: has 1001 entries, at most 1000 are allowed)"},
        {"TooManyRequirementsOfASelector",
         [](k8s::v1::Pod* pod) {
           auto* const terms = pod->mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity();
           k8s::v1::PodAffinityTerm* const term = terms->add_required();
           for (int i = 0; i < 200; ++i) term->mutable_label_selector()->add_match_expressions();
           for (int i = 0; i < 57; ++i) term->add_match_label_keys(absl::StrCat("k", i));
         },
         R"((namespace "default"): spec.affinity.podAntiAffinity: has 257 entries, at most 256 are allowed)"},
        {"TooManyLabelsOfNodes",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 257; ++i)
             pod->mutable_spec()->add_node_selector()->set_key(absl::StrCat("k", i));
         },
         R"((namespace "default"): spec.nodeSelector: has 257 entries, at most 256 are allowed)"},
        {"TooManyRequirementsInAll",
         [](k8s::v1::Pod* pod) {
           for (int i = 0; i < 17; ++i) {
             auto* const constraint = pod->mutable_spec()->add_topology_spread_constraints();
             for (int k = 0; k < 241; ++k) constraint->mutable_label_selector()->add_match_expressions();
           }
         },
         R"((namespace "default"): spec: selectors: has 4097 entries, at most 4096 are allowed)"},
    }),
    [](const auto& info) { return info.param.name; });

TEST_F(PodDecoderTest, BytesThatAreNoPodAreRefused) {
  const std::string pod = MakePod({{"cpu", "1"}}).SerializeAsString();
  for (const std::string& bytes : {pod.substr(0, pod.size() - 1), std::string("\x0a\xff\xff\xff\xff\x0f", 6),
                                   std::string("\xff"), std::string(200, '\x0b')}) {
    const absl::StatusOr<PodShape> shape = decoder_.Decode(bytes, PodRole::kExisting);
    EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(shape.status().message()), HasSubstr("is not a k8s.io.api.core.v1.Pod"));
  }
  const absl::StatusOr<PodShape> large =
      decoder_.Decode(std::string(kMaxObjectBytes + 1, '\0'), PodRole::kExisting);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(large.status().message()), "has 1572865 bytes, at most 1572864 are allowed");
}

}  // namespace
}  // namespace loadline
