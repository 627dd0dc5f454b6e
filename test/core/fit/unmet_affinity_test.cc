#include "core/fit/unmet_affinity.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

std::string Unmet(const PodRules& rules) {
  const Labels labels = MakeLabels({{"zone", "a"}, {"cores", "4"}});
  return UnmetAffinity(rules, {&labels, nullptr, ""});
}

PodRules Required(std::vector<Requirement> conditions) {
  PodRules rules;
  rules.node_affinity.emplace().terms.emplace_back().labels = std::move(conditions);
  return rules;
}

TEST(UnmetAffinityTest, NamesLabelAndValuesOfASelector) {
  PodRules rules;
  EXPECT_EQ(Unmet(rules), "");
  rules.node_selector.Set("zone", "a");
  EXPECT_EQ(Unmet(rules), "");
  rules.node_selector.Set("zone", "b");
  EXPECT_EQ(Unmet(rules), "the pod selects zone=b, and a new node has zone=a");
  rules.node_selector = MakeLabels({{"disk", "ssd"}});
  EXPECT_EQ(Unmet(rules), "the pod selects disk=ssd, and a new node has no label disk");
}

TEST(UnmetAffinityTest, NoNewNodeHasAHostnameThatIsKnown) {
  PodRules rules;
  rules.node_selector.Set("kubernetes.io/hostname", "n1");
  EXPECT_EQ(Unmet(rules), "the pod selects kubernetes.io/hostname=n1, which no new node has");
}

TEST(UnmetAffinityTest, NamesTheFirstConditionThatIsNotMet) {
  EXPECT_EQ(Unmet(Required({{"zone", SelectorOperator::kIn, {"a", "b"}}})), "");
  EXPECT_EQ(
      Unmet(Required({{"cores", SelectorOperator::kExists, {}}, {"zone", SelectorOperator::kIn, {"b"}}})),
      "the pod selects zone=b, and a new node has zone=a");
  EXPECT_EQ(Unmet(Required({{"zone", SelectorOperator::kIn, {"b", "c"}}})),
            "the pod selects zone in (b, c), and a new node has zone=a");
  EXPECT_EQ(Unmet(Required({{"zone", SelectorOperator::kIn, {"b", "c", "d", "e", "f", "g", "h"}}})),
            "the pod selects zone in (b, c, d, e, f and 2 more), and a new node has zone=a");
  EXPECT_EQ(Unmet(Required({{"zone", SelectorOperator::kNotIn, {"a"}}})),
            "the pod selects zone notin (a), and a new node has zone=a");
  EXPECT_EQ(Unmet(Required({{"zone", SelectorOperator::kDoesNotExist, {}}})),
            "the pod selects !zone, and a new node has zone=a");
  EXPECT_EQ(Unmet(Required({{"disk", SelectorOperator::kExists, {}}})),
            "the pod selects disk, and a new node has no label disk");
  EXPECT_EQ(Unmet(Required({{"cores", SelectorOperator::kGreaterThan, {}, 4}})),
            "the pod selects cores > 4, and a new node has cores=4");
  EXPECT_EQ(Unmet(Required({{"cores", SelectorOperator::kLessThan, {}, 4}})),
            "the pod selects cores < 4, and a new node has cores=4");
}

// One alternative that matches is enough.
TEST(UnmetAffinityTest, AlternativesThatMatchAreMet) {
  PodRules rules = Required({{"zone", SelectorOperator::kIn, {"b"}}});
  rules.node_affinity->terms.emplace_back().labels = {{"zone", SelectorOperator::kIn, {"a"}}};
  EXPECT_EQ(Unmet(rules), "");
}

}  // namespace
}  // namespace loadline
