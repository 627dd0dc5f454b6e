// Objects of Kubernetes as JSON: the same as their protobuf, and refused with the path of what is wrong.
#include "plugin/convert/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/known_fields.h"
#include "plugin/convert/object_schema.h"
#include "plugin/convert/parse.h"

namespace loadline {
namespace {

constexpr char kPodType[] = "k8s.io.api.core.v1.Pod";

k8s::v1::Pod PodOf(const std::string& json) {
  k8s::v1::Pod pod;
  const absl::Status status = ParseObject(json, kPodType, &pod);
  EXPECT_TRUE(status.ok()) << status;
  return pod;
}

std::string ErrorOf(const std::string& json) {
  k8s::v1::Pod pod;
  return std::string(ParseObject(json, kPodType, &pod).message());
}

TEST(JsonTest, ReadsEachFormOfAField) {
  const k8s::v1::Pod pod = PodOf(R"({
    "kind": "Pod", "apiVersion": "v1",
    "metadata": {"name": "p", "namespace": "n", "labels": {"a": "1", "b": "2"}, "managedFields": [{"x": [1, {}]}],
                 "creationTimestamp": "2026-11-28T00:00:00Z", "deletionTimestamp": null},
    "spec": {"priority": -5, "hostNetwork": true, "nodeName": "node",
             "containers": [{"name": "c", "image": "i", "ports": [{"hostPort": 80, "hostIP": "::1"}],
                             "resources": {"requests": {"cpu": "250m", "memory": 1048576, "x/y": 1.5}}}],
             "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}, {"name": "w", "csi": {"driver": "d"}}],
             "ephemeralContainers": [{"name": "e", "targetContainerName": "c"}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
               "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]}}}}})");
  EXPECT_EQ(pod.metadata().labels_size(), 2);
  EXPECT_EQ(pod.metadata().labels(1).value(), "2");
  EXPECT_EQ(pod.metadata().creation_timestamp().seconds(), 1795824000);
  EXPECT_FALSE(pod.metadata().has_deletion_timestamp());
  EXPECT_EQ(pod.spec().priority(), -5);
  EXPECT_TRUE(pod.spec().host_network());
  ASSERT_EQ(pod.spec().containers_size(), 1);
  const k8s::v1::Container& container = pod.spec().containers(0);
  EXPECT_EQ(container.ports(0).host_port(), 80);
  EXPECT_EQ(container.ports(0).host_ip(), "::1");
  ASSERT_EQ(container.resources().requests_size(), 3);
  EXPECT_EQ(container.resources().requests(0).value().string(), "250m");
  EXPECT_EQ(container.resources().requests(1).value().string(), "1048576");
  EXPECT_EQ(container.resources().requests(2).value().string(), "1.5");
  EXPECT_EQ(pod.spec().volumes(0).volume_source().empty_dir().medium(), "Memory");
  EXPECT_EQ(pod.spec().volumes(1).name(), "w");
  EXPECT_EQ(pod.spec().ephemeral_containers(0).common().name(), "e");
  EXPECT_EQ(
      pod.spec().affinity().node_affinity().required().node_selector_terms(0).match_expressions(0).key(),
      "k");
  EXPECT_EQ(UnknownFieldOf(pod), "");
}

TEST(JsonTest, TellsFieldsThatNobodyKnows) {
  EXPECT_EQ(UnknownFieldOf(PodOf(R"({"spec": {"wish": {"moon": "full"}}, "metadata": {"name": "p"}})")),
            "spec.wish");
  EXPECT_EQ(UnknownFieldOf(PodOf(R"({"spec": {"containers": [{"name": "c"}, {"glow": 1}]}})")),
            "spec.containers[1].glow");
  EXPECT_EQ(UnknownFieldOf(PodOf(R"({"status": {"mood": "good"}, "metadata": {"hue": 1}})")), "");
}

struct Refusal {
  std::string json;
  std::string error;
};

TEST(JsonTest, NamesWhatIsWrong) {
  for (const Refusal& c : std::vector<Refusal>{
           {"[]", "is a list, not an object"},
           {"{", "is no JSON: byte 2 cannot be read"},
           {"{} {}", "is no JSON: byte 4 cannot be read"},
           {R"({"spec": 1, "metadata": {"name": "p", "namespace": "n"}})",
            "spec: is a number, not an object, in Pod \"n/p\""},
           {R"({"spec": {"containers": {}}})", "spec.containers: is an object, not a list"},
           {R"({"spec": {"containers": [{}, []]}})", "spec.containers[1]: is a list, not an object"},
           {R"({"spec": {"containers": [null]}})", "spec.containers[0]: is null, not an object"},
           {R"({"spec": {"hostNetwork": "yes"}})", "spec.hostNetwork: is a text, not true or false"},
           {R"({"spec": {"priority": 2147483648}})",
            "spec.priority: is the number \"2147483648\", not a whole number in range"},
           {R"({"spec": {"priority": 1.5}})",
            "spec.priority: is the number \"1.5\", not a whole number in range"},
           {R"({"metadata": {"labels": {"a": 1}}})", "metadata.labels[\"a\"]: is a number, not a text"},
           {R"({"metadata": {"labels": []}})", "metadata.labels: is a list, not an object"},
           {R"({"metadata": {"creationTimestamp": "now"}})",
            "metadata.creationTimestamp: is \"now\", not a time as of RFC 3339"},
           {R"({"metadata": {"name": "a"}, "metadata": {"name": "b"}})",
            "metadata: occurs twice, in Pod \"b\""},
           {R"({"kind": "PodList", "items": []})", "kind: is \"PodList\", not \"Pod\""}}) {
    EXPECT_EQ(ErrorOf(c.json), c.error) << c.json;
  }
}

TEST(JsonTest, BoundsNoNestingAndEndsOnAnyPrefix) {
  const std::string deep(100000, '[');
  EXPECT_EQ(PodOf("{\"x\": " + deep + std::string(deep.size(), ']') + "}").ByteSizeLong(), 0U);
  const std::string json = R"({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}})";
  for (size_t size = 1; size < json.size(); ++size) {
    EXPECT_THAT(ErrorOf(json.substr(0, size)), ::testing::StartsWith("is no JSON")) << size;
  }
}

TEST(ObjectSchemaTest, KeepsWhatIsReadAndNothingElse) {
  k8s::v1::Pod pod;
  pod.mutable_metadata()->set_name("p");
  pod.mutable_spec()->add_containers()->set_name("c");
  const std::string read = pod.SerializeAsString();
  *pod.mutable_unknown_fields() = "\x7a\x01x";  // field 15
  *pod.mutable_spec()->mutable_unknown_fields() = "\x98\x3f\x01";
  const ObjectSchema& schema = ObjectSchema::OfThisEngine();
  const ObjectSchema::Message* const type = schema.Find("loadline.k8s.v1.Pod");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(schema.KeepRead(*type, pod.SerializeAsString()), read);
  EXPECT_EQ(schema.Find("loadline.v1.ScoreRequest"), nullptr);
}

}  // namespace
}  // namespace loadline
