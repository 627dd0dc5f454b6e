// Objects that are known, and objects that are known not to exist.
#include "core/cluster/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace loadline {
namespace {

ClusterObject DaemonSetNamed(const std::string& name, const std::string& uid) {
  ClusterObject object;
  object.key = {ObjectKind::kDaemonSet, "kube-system", name};
  object.content = Workload{.uid = uid};
  object.fingerprint = 7;
  return object;
}

// Only of a complete list is known what it lacks, and an object that nobody can read is there all the same.
TEST(ClusterObjectsTest, KnownMissing) {
  ClusterObjects objects;
  const auto missing = [&](absl::string_view name) {
    return objects.KnownMissing(ObjectKind::kDaemonSet, "kube-system", name);
  };
  EXPECT_FALSE(missing("agent")) << "the list may not be complete";
  objects.SetComplete(ObjectKind::kDaemonSet);
  EXPECT_TRUE(missing("agent"));
  objects.Set(DaemonSetNamed("agent", "a"));
  EXPECT_FALSE(missing("agent"));
  EXPECT_TRUE(missing("other"));
  EXPECT_TRUE(objects.KnownMissing(ObjectKind::kDaemonSet, "default", "agent")) << "of another namespace";
  EXPECT_FALSE(objects.KnownMissing(ObjectKind::kJob, "kube-system", "agent")) << "of another kind";
  ClusterObject unreadable = DaemonSetNamed("other", "");
  unreadable.unreadable = "its template has 2,000 containers";
  unreadable.is_left_out = true;
  objects.Set(std::move(unreadable));
  EXPECT_FALSE(missing("other"));
  EXPECT_EQ(objects.FindWorkload(ObjectKind::kDaemonSet, "kube-system", "other"), nullptr);
  EXPECT_TRUE(objects.of(ObjectKind::kDaemonSet).size() == 1 && objects.size() == 2);
  objects.Remove({ObjectKind::kDaemonSet, "kube-system", "other"});
  objects.Remove({ObjectKind::kDaemonSet, "kube-system", "agent"});
  EXPECT_TRUE(missing("other"));
  EXPECT_TRUE(missing("agent"));
}

TEST(ClusterObjectsTest, APodIsOfADaemonSetThatExistsUnderItsUid) {
  PodTraits traits;
  traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "a"};
  const auto of_known = [](const PodTraits& of, const ClusterObjects& objects) {
    PodShape shape;
    shape.namespace_name = "kube-system";
    shape.traits = std::make_shared<const PodTraits>(of);
    return OfKnownDaemonSet(shape, objects);
  };
  ClusterObjects objects;
  EXPECT_TRUE(of_known(traits, objects)) << "nobody knows better";
  objects.SetComplete(ObjectKind::kDaemonSet);
  EXPECT_FALSE(of_known(traits, objects));
  objects.Set(DaemonSetNamed("agent", "b"));
  EXPECT_FALSE(of_known(traits, objects));
  objects.Set(DaemonSetNamed("agent", "a"));
  EXPECT_TRUE(of_known(traits, objects));
  traits.owner->api_version = "example.com/v1";
  EXPECT_FALSE(of_known(traits, objects)) << "another kind of the same name";
  traits.daemon_by_annotation = true;
  EXPECT_TRUE(of_known(traits, objects));
}

TEST(ClusterObjectsTest, AnOwnerIsFoundByItsNameAndWhatIsKnownOfItsUid) {
  ClusterObjects objects;
  objects.Set(DaemonSetNamed("agent", "a"));
  objects.Set(DaemonSetNamed("old", ""));
  const auto found = [&](const std::string& name, const std::string& uid) {
    return objects.FindOwner(ObjectKind::kDaemonSet, "kube-system", {"DaemonSet", "apps/v1", name, uid}) !=
           nullptr;
  };
  EXPECT_TRUE(found("agent", "a"));
  EXPECT_FALSE(found("agent", "b")) << "another one has the name now";
  EXPECT_TRUE(found("agent", ""));
  EXPECT_TRUE(found("old", "a"));
  EXPECT_FALSE(found("missing", ""));
  EXPECT_EQ(objects.FindOwner(ObjectKind::kJob, "kube-system", {"Job", "batch/v1", "agent", "a"}), nullptr);
}

}  // namespace
}  // namespace loadline
