// How much memory a view takes of each namespace.
#include "core/cluster/view_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/view.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int kTolerations = 1000;

// 1,000 tolerations of four texts of 32 bytes, and the list of them.
constexpr int64_t kGreedyBytes = 4 * 32 * kTolerations + 24;

PodRules Tolerating(int tolerations) {
  PodRules rules;
  for (int i = 0; i < tolerations; ++i) rules.tolerations.push_back({absl::StrCat("k", i), "Exists", "", ""});
  return rules;
}

PodShape Pod(const std::string& namespace_name, PodRules rules, const std::string& owner = "") {
  PodTraits traits;
  if (!owner.empty()) traits.owner = PodOwner{"ReplicaSet", "apps/v1", owner, ""};
  return MakePodShape(namespace_name, false, PodResources(), ResourceNames(), PodRole::kExisting,
                      std::move(rules), std::move(traits));
}

// Each pod has rules of its own.
PodShape Greedy(const std::string& namespace_name, int i) {
  return Pod(namespace_name, Tolerating(kTolerations), absl::StrCat("r", i));
}

Labels ManyLabels(int count) {
  std::vector<Label> labels;
  for (int i = 0; i < count; ++i) labels.push_back({absl::StrCat("k", 1'000'000 + i), "v"});
  return Labels(std::move(labels));
}

class ViewBytesTest : public ::testing::Test {
 protected:
  static ViewLimits Limits() {
    ViewLimits limits;
    limits.bytes = kMebibyte;
    return limits;
  }

  void Apply(Batch batch) {
    batch.epoch = 1;
    batch.base_revision = revision_;
    batch.revision = ++revision_;
    if (revision_ == 1) batch.full_list = FullListChunk{0, true};
    const absl::Status status = view_.Apply(batch);
    ASSERT_TRUE(status.ok()) << status;
    view_.CheckConsistent();
  }

  // A node in slot `i` with a pod of each of these shapes.
  void ApplyNode(int32_t i, std::vector<PodShapeRecord> shapes) {
    Batch batch;
    const std::string name = absl::StrCat("n", i);
    batch.nodes = {{Slot{i}, name, MakeNodeShape({}, ResourceNames()), {}}};
    std::vector<std::string> pods;
    for (const PodShapeRecord& shape : shapes) pods.push_back(absl::StrCat("p", shape.id));
    for (size_t j = 0; j < shapes.size(); ++j) batch.nodes[0].pods.push_back({shapes[j].id, pods[j], "u"});
    batch.pod_shapes = std::move(shapes);
    Apply(std::move(batch));
  }

  const PodShape& Shape(int32_t id) const { return view_.cluster().pod_shapes()[view_.ShapeOf(id).value()]; }
  std::string Reason(int32_t id) const { return TraitsOf(Shape(id)).unreadable; }

  int64_t revision_ = 0;
  View view_{Limits()};
};

TEST(MemoryBuilderTest, CountsTextsAndLists) {
  PodRules rules = Tolerating(kTolerations);
  EXPECT_EQ(BytesOf(rules).field, "spec.tolerations");
  const int64_t plain = BytesOf(PodRules()).bytes;
  EXPECT_EQ(BytesOf(rules).bytes - plain, kGreedyBytes - 24);
  // A text that is not part of its string: with its end, and what malloc adds.
  rules.tolerations[0].value = std::string(100, 'v');
  EXPECT_EQ(BytesOf(rules).bytes - plain, kGreedyBytes - 24 + 124);
}

// Half of 1 MiB is four times 128 kB.
TEST_F(ViewBytesTest, OneNamespaceHasHalf) {
  std::vector<PodShapeRecord> shapes;
  for (int i = 0; i < 20; ++i) shapes.push_back({i, Greedy("evil", i)});
  ApplyNode(0, shapes);
  int kept = 0;
  for (int i = 0; i < 20; ++i) {
    if (Shape(i).rules != nullptr) {
      EXPECT_EQ(*Shape(i).rules, Tolerating(kTolerations));
      EXPECT_THAT(Reason(i), IsEmpty());
      ++kept;
    } else {
      EXPECT_EQ(Reason(i),
                "spec.tolerations: takes more memory than the view has left for its namespace "
                "(max_view_bytes)");
    }
  }
  EXPECT_EQ(kept, 4);
  EXPECT_LE(view_.bytes(), kMebibyte / 2);
  EXPECT_EQ(view_.LeftOut().total(), 16);
  EXPECT_EQ(view_.LeftOut().named().begin()->namespace_name, "evil");
}

TEST_F(ViewBytesTest, OthersHaveTheirsStill) {
  std::vector<PodShapeRecord> shapes;
  for (int i = 0; i < 20; ++i) shapes.push_back({i, Greedy("evil", i)});
  ApplyNode(0, shapes);
  // A pod of many rules, and ordinary ones, which take nothing.
  ApplyNode(1, {{100, Greedy("victim", 0)}});
  EXPECT_THAT(Reason(100), IsEmpty());
  const int64_t before = view_.bytes();
  for (int i = 0; i < 100; ++i) {
    ApplyNode(2 + i, {{200 + i, Pod("evil", Tolerating(10), absl::StrCat("o", i)), ManyLabels(10)}});
    EXPECT_THAT(Reason(200 + i), IsEmpty());
    EXPECT_EQ(*Shape(200 + i).rules, Tolerating(10));
  }
  EXPECT_EQ(view_.bytes(), before);
}

TEST_F(ViewBytesTest, ManyNamespacesStayBelowTheLimit) {
  for (int i = 0; i < 100; ++i) ApplyNode(i, {{i, Greedy(absl::StrCat("evil-", i), i)}});
  EXPECT_LE(view_.bytes(), kMebibyte);
  EXPECT_GT(view_.bytes(), kMebibyte / 2);
}

TEST_F(ViewBytesTest, LabelsCountAsWellAndGoAlone) {
  std::vector<PodShapeRecord> shapes;
  for (int i = 0; i < 20; ++i) {
    shapes.push_back({i, Pod("evil", Tolerating(2), absl::StrCat("r", i)), ManyLabels(5000)});
  }
  ApplyNode(0, shapes);
  EXPECT_THAT(Reason(0), IsEmpty());
  EXPECT_THAT(Reason(19), HasSubstr("metadata.labels: takes more memory"));
  EXPECT_LE(view_.bytes(), kMebibyte / 2);
  // A later selector finds labels of the pods that have theirs.
  const SelectorKeys key{"default", {"k1000000"}};
  view_.SelectLabelKeys({&key, 1});
  view_.CheckConsistent();
  EXPECT_EQ(Shape(0).labels.size(), 1u);
  EXPECT_EQ(Shape(19).labels.size(), 0u);
}

// A shape that was left out may be sent again, and is whole once there is room.
TEST_F(ViewBytesTest, RoomComesBack) {
  std::vector<PodShapeRecord> shapes;
  for (int i = 0; i < 5; ++i) shapes.push_back({i, Greedy("evil", i)});
  ApplyNode(0, shapes);
  EXPECT_THAT(Reason(4), HasSubstr("spec.tolerations"));
  ApplyNode(0, shapes);
  EXPECT_THAT(Reason(4), HasSubstr("spec.tolerations")) << "while pods refer to it a shape stays as it is";
  ApplyNode(0, {});
  ApplyNode(0, {{0, Pod("evil", {})}, {4, Greedy("evil", 4)}});
  EXPECT_THAT(Reason(4), IsEmpty());
  EXPECT_EQ(*Shape(4).rules, Tolerating(kTolerations));
}

// The memory that is allocated, in bytes; 0 under a sanitizer, which has an allocator of its own.
int64_t Allocated() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// 20 pods of rules or labels of 130 kB each take what is counted, beside some KiB for each pod.
TEST_F(ViewBytesTest, TakesWhatIsCounted) {
  for (const bool labels : {false, true}) {
    const int64_t before = Allocated();
    View view(Limits());
    for (int i = 0; i < 20; ++i) {
      Batch batch;
      batch.epoch = 1;
      batch.base_revision = i;
      batch.revision = i + 1;
      if (i == 0) batch.full_list = FullListChunk{0, true};
      const PodShape pod = Pod("evil", Tolerating(labels ? 1 : kTolerations), absl::StrCat("r", i));
      batch.pod_shapes = {{i, pod, labels ? ManyLabels(7500) : Labels()}};
      ASSERT_TRUE(view.Apply(batch).ok());
    }
    EXPECT_GT(view.bytes(), kMebibyte / 4);
    EXPECT_LT(Allocated() - before, view.bytes() + 20 * 4096) << (labels ? "labels" : "tolerations");
  }
}

TEST_F(ViewBytesTest, AFullListCountsAnew) {
  std::vector<PodShapeRecord> shapes;
  for (int i = 0; i < 20; ++i) shapes.push_back({i, Greedy("evil", i)});
  ApplyNode(0, shapes);
  Batch batch;
  batch.epoch = batch.revision = 2;
  batch.full_list = FullListChunk{0, true};
  ASSERT_TRUE(view_.Apply(batch).ok());
  EXPECT_EQ(view_.bytes(), 0);
}

NodeShape Labelled(int labels) {
  NodeShape shape;
  shape.labels = ManyLabels(labels);
  return CompleteNodeShape(std::move(shape), ResourceNames());
}

// Nothing can be said to fit on a node whose labels were left out.
TEST_F(ViewBytesTest, NodesCountTogether) {
  Batch batch;
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(absl::StrCat("n", i));
  for (int i = 0; i < 20; ++i) {
    batch.nodes.push_back({Slot{i}, names[static_cast<size_t>(i)], Labelled(i < 10 ? 2000 : 25), {}});
  }
  Apply(batch);
  const ClusterState& cluster = view_.cluster();
  EXPECT_EQ(cluster.node_shape(Slot{0}), Labelled(2000));
  EXPECT_EQ(cluster.node_shape(Slot{9}).labels.size(), 0u);
  EXPECT_THAT(cluster.node_shape(Slot{9}).unknown_field, HasSubstr("metadata.labels"));
  EXPECT_THAT(cluster.traits(Slot{9}).unreadable, HasSubstr("metadata.labels: takes more memory"));
  for (int i = 10; i < 20; ++i) EXPECT_EQ(cluster.node_shape(Slot{i}), Labelled(25));
  EXPECT_LE(view_.bytes(), kMebibyte / 2);
  Batch gone;
  for (int i = 0; i < 9; ++i) gone.removed_slots.push_back(Slot{i});
  gone.nodes = {{Slot{9}, "n9", Labelled(2000), {}}};
  Apply(gone);
  EXPECT_EQ(cluster.node_shape(Slot{9}), Labelled(2000));
}

ClusterObject Budget(int i) {
  DisruptionBudget budget;
  budget.disruptions_allowed = 7;
  for (int pod = 0; pod < 5000; ++pod) budget.disrupted_pods.push_back({absl::StrCat("p", pod), 1});
  return {{ObjectKind::kDisruptionBudget, "evil", absl::StrCat("b", i)}, std::move(budget)};
}

// A budget that is left out lets nothing go.
TEST_F(ViewBytesTest, ObjectsCountForTheirNamespace) {
  Batch batch;
  for (int i = 0; i < 10; ++i) {
    batch.objects.push_back(Budget(i));
    batch.objects.push_back(
        {{ObjectKind::kNamespace, "", absl::StrCat("ns", i)}, Namespace{ManyLabels(2000)}});
  }
  Apply(batch);
  const auto& budgets = view_.cluster().objects().of(ObjectKind::kDisruptionBudget);
  EXPECT_EQ(budgets.size(), 10u);
  const auto& last =
      std::get<DisruptionBudget>(budgets.at({ObjectKind::kDisruptionBudget, "evil", "b9"}).content);
  EXPECT_TRUE(last.selector.nothing);
  EXPECT_THAT(last.selector_error, HasSubstr("status.disruptedPods: takes more memory"));
  EXPECT_THAT(last.disrupted_pods, IsEmpty());
  EXPECT_LT(view_.cluster().objects().of(ObjectKind::kNamespace).size(), 10u);
  EXPECT_LE(view_.bytes(), kMebibyte);
  Batch gone;
  for (const ClusterObject& object : batch.objects) gone.removed_objects.push_back(object.key);
  Apply(gone);
  EXPECT_EQ(view_.bytes(), 0);
}

}  // namespace
}  // namespace loadline
