// The labels of pods that distinguish shapes, and the objects of a view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/view.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PodShape Plain() {
  return MakePodShape("default", false, PodResources(), ResourceNames(), PodRole::kExisting);
}

// A pod that wants company of pods with this label.
PodShape Asking(const std::string& key) {
  PodRules rules;
  rules.affinity = {{{false, {{key, SelectorOperator::kExists, {}}}}, "zone", {"default"}, {true, {}}}};
  return MakePodShape("default", false, PodResources(), ResourceNames(), PodRole::kExisting, rules);
}

Labels StatefulSetLabels(int i) {
  return Labels({{"app", i % 2 == 0 ? "web" : "db"}, {"apps.kubernetes.io/pod-index", absl::StrCat(i)}});
}

Batch FullList(int64_t epoch) {
  Batch batch;
  batch.epoch = epoch;
  batch.revision = 1;
  batch.full_list = FullListChunk{0, true};
  return batch;
}

// A node with `pods` pods of a StatefulSet, each with labels of its own.
Batch StatefulSet(int pods) {
  Batch batch = FullList(1);
  NodeRecord& node = batch.nodes.emplace_back();
  node = {Slot{0}, "a", MakeNodeShape({}, ResourceNames()), {}};
  for (int i = 0; i < pods; ++i) {
    batch.pod_shapes.push_back({i, Plain(), StatefulSetLabels(i)});
    node.pods.push_back({i, "", ""});
  }
  return batch;
}

Batch Next(int64_t revision) {
  Batch batch;
  batch.epoch = 1;
  batch.base_revision = revision - 1;
  batch.revision = revision;
  return batch;
}

TEST(LabelKeysTest, LabelsThatNobodyAsksForSplitNoShapes) {
  View view(ViewLimits{});
  ASSERT_TRUE(view.Apply(StatefulSet(1000)).ok());
  EXPECT_EQ(view.cluster().pod_shapes().size(), 1u);
  EXPECT_THAT(view.label_keys(), ElementsAre());
}

TEST(LabelKeysTest, ANewSelectorDerivesShapesAnew) {
  View view(ViewLimits{});
  ASSERT_TRUE(view.Apply(StatefulSet(1000)).ok());
  const uint64_t fingerprint = view.cluster().fingerprint(Slot{0});
  Batch batch = Next(2);
  batch.pod_shapes = {{1000, Asking("app"), Labels()}};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_THAT(view.label_keys(), ElementsAre("app"));
  EXPECT_EQ(view.cluster().pod_shapes().size(), 3u);  // "web", "db", and the one that asks
  for (size_t i = 0; i < 4; ++i) {
    const PodShape& shape = view.cluster().pod_shapes()[view.cluster().pods(Slot{0}).pods()[i].shape];
    EXPECT_EQ(shape.labels, Labels(std::vector<Label>{{"app", i % 2 == 0 ? "web" : "db"}}));
  }
  // The node is as it was.
  EXPECT_EQ(view.cluster().fingerprint(Slot{0}), fingerprint);
}

TEST(LabelKeysTest, WhateverCameFirstTheShapesAndFingerprintsAreTheSame) {
  Batch asking_first = StatefulSet(10);
  asking_first.pod_shapes.insert(asking_first.pod_shapes.begin(), {10, Asking("app"), Labels()});
  View first(ViewLimits{});
  ASSERT_TRUE(first.Apply(asking_first).ok());
  View later(ViewLimits{});
  ASSERT_TRUE(later.Apply(StatefulSet(10)).ok());
  const SelectorKeys app{"default", {"app"}};
  ASSERT_THAT(later.SelectLabelKeys({&app, 1}), ElementsAre(true));
  later.CheckConsistent();
  EXPECT_EQ(first.cluster().fingerprint(Slot{0}), later.cluster().fingerprint(Slot{0}));
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(first.cluster().pod_shapes()[first.cluster().pods(Slot{0}).pods()[i].shape],
              later.cluster().pod_shapes()[later.cluster().pods(Slot{0}).pods()[i].shape]);
  }
}

TEST(LabelKeysTest, AFingerprintCoversLabelsThatNobodyAsksFor) {
  View view(ViewLimits{});
  ASSERT_TRUE(view.Apply(StatefulSet(1)).ok());
  Batch other = StatefulSet(1);
  other.pod_shapes[0].labels = StatefulSetLabels(2);
  View changed(ViewLimits{});
  ASSERT_TRUE(changed.Apply(other).ok());
  EXPECT_EQ(view.cluster().pod_shapes()[0], changed.cluster().pod_shapes()[0]);
  EXPECT_NE(view.cluster().fingerprint(Slot{0}), changed.cluster().fingerprint(Slot{0}));
}

TEST(LabelKeysTest, AShapeMayBeSentAgainButNotWithOtherLabels) {
  View view(ViewLimits{});
  ASSERT_TRUE(view.Apply(StatefulSet(2)).ok());
  Batch batch = Next(2);
  batch.pod_shapes = {{0, Plain(), StatefulSetLabels(0)}};
  EXPECT_TRUE(view.Apply(batch).ok());
  batch = Next(3);
  batch.pod_shapes = {{0, Plain(), StatefulSetLabels(5)}};
  EXPECT_THAT(view.Apply(batch).message(), HasSubstr("pod shape 0 is given another content"));
}

TEST(LabelKeysTest, ThereAreOnlySoManyKeys) {
  View view(ViewLimits{.label_keys = 2});
  ASSERT_TRUE(view.Apply(StatefulSet(2)).ok());
  const std::vector<SelectorKeys> wishes = {{"x", {"a", "b", "a"}}, {"y", {"c"}}, {"y", {"b"}}};
  EXPECT_THAT(view.SelectLabelKeys(wishes), ElementsAre(true, false, true));
  view.CheckConsistent();
  EXPECT_THAT(view.label_keys(), ElementsAre("a", "b"));
}

TEST(LabelKeysTest, ANamespaceThatInventsKeysLeavesRoomForOthers) {
  View view(ViewLimits{.label_keys = 4, .label_keys_of_namespace = 2});
  ASSERT_TRUE(view.Apply(StatefulSet(2)).ok());
  const std::vector<SelectorKeys> wishes = {{"greedy", {"a"}},
                                            {"greedy", {"b", "c"}},
                                            {"greedy", {"d"}},
                                            {"greedy", {"e"}},
                                            {"modest", {"f", "d"}}};
  EXPECT_THAT(view.SelectLabelKeys(wishes), ElementsAre(true, false, true, false, true));
  view.CheckConsistent();
  EXPECT_THAT(view.label_keys(), ElementsAre("a", "d", "f"));
}

// The pod counts as if it had no rules; the view still works, and a repeat of the shape is no other content.
TEST(LabelKeysTest, WhatAsksForTooManyKeysIsLeftOutAlone) {
  View view(ViewLimits{.label_keys = 1});
  Batch batch = StatefulSet(1);
  batch.pod_shapes.push_back({1, Asking("app"), Labels()});
  batch.pod_shapes.push_back({2, Asking("other"), Labels()});
  batch.nodes[0].pods.push_back({1, "first", ""});
  batch.nodes[0].pods.push_back({2, "second", ""});
  DisruptionBudget budget;
  budget.selector.requirements = {{"third", SelectorOperator::kExists, {}}};
  batch.objects = {{{ObjectKind::kDisruptionBudget, "default", "b"}, budget, 1}};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_THAT(view.label_keys(), ElementsAre("app"));
  const PodShape& second = view.cluster().pod_shapes()[view.cluster().pods(Slot{0}).pods()[2].shape];
  EXPECT_EQ(second.rules, nullptr);
  EXPECT_EQ(TraitsOf(second).unreadable, kTooManyLabelKeys);
  const LeftOutList left_out = view.LeftOut();
  EXPECT_THAT(left_out.named(),
              ElementsAre(LeftOutObject{"Pod", "default", "second", kTooManyLabelKeys},
                          LeftOutObject{"PodDisruptionBudget", "default", "b", kTooManyLabelKeys}));
  const auto& budgets = view.cluster().objects().of(ObjectKind::kDisruptionBudget);
  EXPECT_EQ(std::get<DisruptionBudget>(budgets.begin()->second.content).selector_error, kTooManyLabelKeys);

  batch = Next(2);
  batch.pod_shapes = {{2, Asking("other"), Labels()}};
  EXPECT_TRUE(view.Apply(batch).ok());
  batch = Next(3);
  batch.nodes = {{Slot{0}, "a", MakeNodeShape({}, ResourceNames()), {{1, "first", ""}}}};
  batch.removed_objects = {{ObjectKind::kDisruptionBudget, "default", "b"}};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_TRUE(view.LeftOut().empty());
}

ClusterObject NamespaceObject(const std::string& name, const std::string& team, uint64_t fingerprint) {
  return {
      {ObjectKind::kNamespace, "", name}, Namespace{Labels(std::vector<Label>{{"team", team}})}, fingerprint};
}

TEST(ViewObjectsTest, ObjectsAreReplacedRemovedAndCounted) {
  View view(ViewLimits{.objects = 2});
  Batch batch = FullList(1);
  batch.objects = {NamespaceObject("a", "red", 5), NamespaceObject("b", "red", 6)};
  ASSERT_TRUE(view.Apply(batch).ok());
  const ClusterObjects& objects = view.cluster().objects();
  EXPECT_EQ(objects.size(), 2);
  EXPECT_EQ(objects.fingerprint(), 11u);
  ASSERT_NE(objects.FindNamespace("a"), nullptr);
  EXPECT_EQ(*objects.FindNamespace("a")->labels.Find("team"), "red");
  EXPECT_EQ(objects.FindClaim("a", "a"), nullptr);

  batch = Next(2);
  batch.removed_objects = {{ObjectKind::kNamespace, "", "b"}, {ObjectKind::kNamespace, "", "missing"}};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_EQ(objects.FindNamespace("b"), nullptr);
  EXPECT_EQ(objects.fingerprint(), 5u);

  batch = Next(3);
  batch.objects = {NamespaceObject("a", "blue", 7)};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_EQ(*objects.FindNamespace("a")->labels.Find("team"), "blue");
  EXPECT_EQ(objects.fingerprint(), 7u);
  const int64_t version = objects.version();

  batch = Next(4);
  batch.objects = {NamespaceObject("c", "x", 1), NamespaceObject("d", "x", 2)};
  EXPECT_EQ(view.Apply(batch).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(objects.size(), 1);

  // The kinds that are complete decide as well: what is not there is then known not to exist.
  EXPECT_FALSE(objects.complete(ObjectKind::kNamespace));
  batch = Next(4);
  batch.complete_kinds = {ObjectKind::kNamespace};
  ASSERT_TRUE(view.Apply(batch).ok());
  EXPECT_TRUE(objects.complete(ObjectKind::kNamespace));
  EXPECT_FALSE(objects.complete(ObjectKind::kStorageClass));
  EXPECT_NE(objects.fingerprint(), 7u);
  EXPECT_GT(objects.version(), version);
}

}  // namespace
}  // namespace loadline
