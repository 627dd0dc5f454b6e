#include "core/grow/why_no_growth.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace loadline {
namespace {

const GroupAtMaximum* AtMaximumOfCluster(const LoopPlan& plan, GroupIndex group) {
  const auto at = std::find_if(plan.at_maximum.begin(), plan.at_maximum.end(),
                               [&](const GroupAtMaximum& of) { return of.group == group; });
  return at == plan.at_maximum.end() ? nullptr : &*at;
}

absl::string_view TextOf(GrowthHold hold) {
  switch (hold) {
    case GrowthHold::kOptionsUnknown:
      return "cannot be read";
    case GrowthHold::kBacksOff:
      return "backs off after failed scale-up";
    case GrowthHold::kSized:
      return "sized by utilization";
    case GrowthHold::kHeld:
      return "grows by all of its nodes or none, and so many may not be added";
    case GrowthHold::kAtMaximum:
      return "max node group size reached";
    case GrowthHold::kUnpriced:
      return "no price or template known";
    case GrowthHold::kMaximumOfCluster:
      return "max cluster limit reached";
    case GrowthHold::kNothing:
      return "new nodes do not take it";
  }
  return "invalid reason";
}

// The least actionable reason is last.
constexpr GrowthHold kInOrder[] = {GrowthHold::kNothing,       GrowthHold::kBacksOff, GrowthHold::kHeld,
                                   GrowthHold::kAtMaximum,     GrowthHold::kUnpriced, GrowthHold::kSized,
                                   GrowthHold::kOptionsUnknown};

}  // namespace

GrowthHold HoldOf(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                  const LoopPlan& plan, GroupIndex group) {
  const NodeGroup& of = problem.groups[group];
  int64_t grows = 0;
  for (const LoopGrowth& growth : plan.growth) {
    if (growth.group == group) grows = growth.nodes();
  }
  if (!seen.groups[group].problem.empty()) return GrowthHold::kOptionsUnknown;
  if (findings.fleet.groups[IndexOf(group)].back_off.has_value()) return GrowthHold::kBacksOff;
  if (of.sized) return GrowthHold::kSized;
  if (!findings.groups[group].held.empty()) return GrowthHold::kHeld;
  if (findings.groups[group].room <= grows) return GrowthHold::kAtMaximum;
  const bool chosen_with = of.usd_per_hour.has_value() || problem.ranking.has_value();
  if (!of.model.has_value() || !chosen_with) return GrowthHold::kUnpriced;
  return AtMaximumOfCluster(plan, group) != nullptr ? GrowthHold::kMaximumOfCluster : GrowthHold::kNothing;
}

namespace {

// Returns a sentence for each maximum that the group meets, in the words of Cluster Autoscaler's events.
// Names of maxima have no spaces.
std::vector<std::string> TextsOf(const GroupAtMaximum& at) {
  absl::btree_map<absl::string_view, std::vector<absl::string_view>> by_maximum;
  for (const std::string& resource : at.resources) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(resource, absl::MaxSplits(" of ", 1));
    by_maximum[parts.second].push_back(parts.first);
  }
  std::vector<std::string> texts;
  for (const auto& [name, resources] : by_maximum) {
    const std::string joined = absl::StrJoin(resources, ", ");
    texts.push_back(name.empty() ? absl::StrCat("max cluster ", joined, " limit reached")
                                 : absl::StrCat("exceeded quota: \"", name, "\", resources: ", joined));
  }
  return texts;
}

}  // namespace

std::string WhyNoGrowth(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                        const LoopPlan& plan, const RefusedPods* refused) {
  if (!findings.held.empty()) return findings.held;
  absl::btree_map<GrowthHold, int64_t> groups;
  absl::btree_map<std::string, int64_t> by_refusal;
  absl::btree_map<std::string, int64_t> by_maximum;
  for (const GroupIndex group : problem.groups.indices()) {
    const GrowthHold hold = HoldOf(seen, findings, problem, plan, group);
    if (hold == GrowthHold::kMaximumOfCluster) {
      for (std::string& text : TextsOf(*AtMaximumOfCluster(plan, group))) ++by_maximum[std::move(text)];
    } else if (hold == GrowthHold::kNothing && refused != nullptr) {
      const std::optional<PodRefusal>& refusal = refused->by_group[group];
      ++by_refusal[refusal.has_value() ? TextOf(*refusal) : "new nodes would take it in a later plan"];
    } else {
      ++groups[hold];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : by_refusal) parts.push_back(absl::StrCat(count, " ", text));
  for (const GrowthHold hold : kInOrder) {
    if (const auto found = groups.find(hold); found != groups.end()) {
      parts.push_back(absl::StrCat(found->second, " ", TextOf(hold)));
    }
  }
  for (const auto& [text, count] : by_maximum) parts.push_back(absl::StrCat(count, " ", text));
  return parts.empty() ? "there is no node group" : absl::StrJoin(parts, ", ");
}

}  // namespace loadline
