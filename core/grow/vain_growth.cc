#include "core/grow/vain_growth.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/fingerprint.h"
#include "core/base/texts.h"
#include "core/grow/purchase_judge.h"
#include "core/observe/fleet_state.h"

namespace loadline {
namespace {

// The part of the rest of the work that judgements may take. Chosen: pods of one tenant that wait in vain
// leave enough to plan growth for others.
constexpr double kForJudgements = 0.1;

// Takes pods off the new nodes of groups, by a requirement that only these fail.
PodShape KeptOff(PodShape shape, const std::vector<std::string>& groups) {
  PodRules rules = shape.rules == nullptr ? PodRules() : *shape.rules;
  if (!rules.node_affinity.has_value()) rules.node_affinity.emplace().terms.emplace_back();
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(shape.base_fingerprint));
  for (const std::string& group : groups) builder.Add(absl::string_view(group));
  for (NodeSelectorTerm& term : rules.node_affinity->terms) {
    term.labels.push_back({std::string(kPlannedGroup), SelectorOperator::kNotIn, groups, 0});
  }
  shape.rules = std::make_shared<const PodRules>(std::move(rules));
  shape.base_fingerprint = builder.Finish();
  builder.Add(static_cast<int64_t>(shape.fingerprint));
  shape.fingerprint = builder.Finish();
  return shape;
}

void KeepOff(const std::vector<VainGrowth>& vain, LoopProblem* problem) {
  if (vain.empty()) return;
  // Groups with the label stay similar to those without it.
  if (problem->balance.has_value()) problem->balance->ignored_labels.emplace_back(kPlannedGroup);
  absl::btree_map<size_t, std::vector<std::string>> groups_by_pods;
  for (const VainGrowth& of : vain) {
    if (!of.pods.has_value()) continue;
    NodeGroup& group = problem->groups[of.group];
    groups_by_pods[*of.pods].push_back(group.name);
    NodeShape& node = group.model->shape;
    if (node.labels.Find(kPlannedGroup) != nullptr) continue;
    node.labels.Set(kPlannedGroup, group.name);
    node = CompleteNodeShape(std::move(node), problem->names);
  }
  for (auto& [pods, groups] : groups_by_pods) {
    std::sort(groups.begin(), groups.end());
    IncomingPod& pod = problem->pending[pods].pod;
    pod.shape = KeptOff(std::move(pod.shape), groups);
  }
}

void ForgetOld(int64_t now_ms, LoopMemory* memory) {
  absl::erase_if(memory->purchases, [&](auto& entry) {
    Purchase& purchase = entry.second;
    if (purchase.asked_ms.has_value() && now_ms - *purchase.asked_ms >= kPurchaseAgeMs) {
      purchase.asked_ms.reset();
    }
    return !purchase.asked_ms.has_value() && now_ms - purchase.until_ms >= kMostVainMs;
  });
}

// Drops purchases beyond kMostPurchases: those for which their namespace has the most newer ones.
void KeepEqualShares(LoopMemory* memory) {
  if (memory->purchases.size() <= kMostPurchases) return;
  std::vector<std::tuple<uint64_t, int64_t, PurchaseKey>> by_age;  // by namespace, the newest first
  for (const auto& [of, purchase] : memory->purchases) {
    const int64_t newest_ms = std::max(purchase.asked_ms.value_or(0), purchase.until_ms);
    by_age.emplace_back(of.namespace_name, -newest_ms, of);
  }
  std::sort(by_age.begin(), by_age.end());
  std::vector<std::pair<size_t, PurchaseKey>> by_rank;
  size_t rank = 0;
  for (size_t i = 0; i < by_age.size(); ++i) {
    rank = i > 0 && std::get<0>(by_age[i]) == std::get<0>(by_age[i - 1]) ? rank + 1 : 0;
    by_rank.emplace_back(rank, std::get<2>(by_age[i]));
  }
  std::sort(by_rank.begin(), by_rank.end());
  for (size_t i = kMostPurchases; i < by_rank.size(); ++i) memory->purchases.erase(by_rank[i].second);
}

std::string TextOf(const VainGrowth& vain, const LoopProblem& problem, int64_t now_ms) {
  const std::string node =
      vain.node == Slot{-1} ? "a node" : absl::StrCat("node ", problem.drain.cluster->name(vain.node));
  std::string what = " came for slack and stayed empty: it does not grow for slack for ";
  if (vain.pods.has_value()) {
    const PodShape& shape = problem.pending[*vain.pods].pod.shape;
    const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
    what = absl::StrCat(" came for pods of ", shape.namespace_name, "/",
                        owner.has_value() ? owner->name : "a pod without owner", " and does not take them",
                        vain.reason.empty() ? "" : absl::StrCat(" (", vain.reason, ")"),
                        ": it does not grow for them for ");
  }
  return absl::StrCat("node group ", problem.groups[vain.group].name, ": ", node, what,
                      DurationText(vain.until_ms - now_ms),
                      " unless the node or what new nodes will be changes");
}

// Positions in LoopProblem::pending, by namespace and FilterFingerprint().
using PendingByKey = absl::flat_hash_map<std::pair<uint64_t, uint64_t>, std::vector<size_t>>;

// Fingerprints of pods that wait, as they were before they were kept off groups.
class PendingKeys {
 public:
  explicit PendingKeys(const LoopProblem& problem) : problem_(problem) {}

  PurchaseKey Of(uint64_t group, size_t pods) {
    return {group, FleetKey(problem_.pending[pods].pod.shape.namespace_name), FingerprintOf(pods)};
  }

 private:
  uint64_t FingerprintOf(size_t pods) {
    if (!problem_.pending_keys.empty()) return problem_.pending_keys[pods];
    const auto [known, added] = known_.try_emplace(pods, 0);
    if (added) known->second = FilterFingerprint(problem_.pending[pods].pod.shape, problem_.names);
    return known->second;
  }

  const LoopProblem& problem_;
  absl::flat_hash_map<size_t, uint64_t> known_;  // a kind of pods may be on many new nodes
};

// Calls `visit(group, positions of pods, purchase)` for each purchase of which both are in the question, and
// forgets those for which it returns false.
template <typename Visit>
void ForEachAsked(NodeGroupSpan groups, const PendingByKey& pods_of, LoopMemory* memory, Visit visit) {
  absl::flat_hash_map<uint64_t, GroupIndex> group_of;
  for (const GroupIndex group : groups.indices()) {
    if (groups[group].model.has_value()) group_of.emplace(FleetKey(groups[group].name), group);
  }
  absl::erase_if(memory->purchases, [&](auto& entry) {
    const auto group = group_of.find(entry.first.group);
    const auto pods = pods_of.find(std::pair(entry.first.namespace_name, entry.first.pods));
    return group != group_of.end() && pods != pods_of.end() &&
           !visit(group->second, pods->second, &entry.second);
  });
}

void FillInModelKeys(LoopProblem* problem) {
  problem->model_keys.clear();
  for (const NodeGroup& group : problem->groups) {
    problem->model_keys.push_back(group.model.has_value() ? group.model->Fingerprint() : 0);
  }
}

// Reads all pods that wait: only for growth that is remembered.
void FillInPendingKeys(LoopProblem* problem) {
  for (const PendingPods& pods : problem->pending) {
    problem->pending_keys.push_back(FilterFingerprint(pods.pod.shape, problem->names));
  }
}

PurchaseKey ForSlack(const NodeGroup& group) { return {.group = FleetKey(group.name)}; }

bool IsForSlack(const std::pair<const PurchaseKey, Purchase>& entry) {
  return entry.first == PurchaseKey{.group = entry.first.group};
}

// Returns what is remembered of growth for slack, by group, and adds what is blocked to `vain`.
StrongVector<GroupIndex, SlackGrowth> SlackGrowthOf(int64_t now_ms, const LoopProblem& problem,
                                                    PurchaseJudge* judge, LoopMemory* memory,
                                                    std::vector<VainGrowth>* vain) {
  StrongVector<GroupIndex, SlackGrowth> growth(problem.groups.size());
  for (const GroupIndex group : problem.groups.indices()) {
    const auto found = memory->purchases.find(ForSlack(problem.groups[group]));
    if (found == memory->purchases.end() || !problem.groups[group].model.has_value()) continue;
    Purchase& purchase = found->second;
    growth[group].came = judge->NodesOf(group, purchase);
    if (purchase.asked_ms.has_value() || purchase.until_ms <= now_ms) continue;
    const Slot node = judge->Compare(group, &purchase).value_or(Slot{-1});
    growth[group].held = purchase.until_ms > now_ms;
    if (growth[group].held) vain->push_back({group, std::nullopt, node, purchase.until_ms, ""});
  }
  return growth;
}

void NoteGrowthForSlack(const BackOffOptions& back_off, const LoopProblem& problem, const LoopPlan& plan,
                        int64_t now_ms, LoopMemory* memory) {
  for (const JudgedSlackGrowth& judged : plan.judged_for_slack) {
    const auto of = memory->purchases.find(ForSlack(problem.groups[judged.group]));
    if (judged.has_helped) {
      memory->purchases.erase(of);
    } else {
      NoteVain(problem, back_off, now_ms, judged.group, problem.slack_growth[judged.group].came.back(),
               &of->second);
    }
  }
  for (const LoopGrowth& growth : plan.growth) {
    if (growth.for_slack == 0) continue;
    Purchase& purchase = memory->purchases[ForSlack(problem.groups[growth.group])];
    if (!purchase.asked_ms.has_value()) purchase.asked_ms = now_ms;
    purchase.model_asked = problem.model_keys[growth.group];
  }
}

}  // namespace

std::vector<std::string> TextsOf(std::span<const VainGrowth> vain, const LoopProblem& problem,
                                 int64_t now_ms) {
  std::vector<std::string> texts;
  for (const VainGrowth& of : vain.first(std::min(vain.size(), kMostVainTexts))) {
    texts.push_back(TextOf(of, problem, now_ms));
  }
  if (vain.size() > texts.size()) {
    texts.push_back(absl::StrCat("node groups do not grow for ", vain.size() - texts.size(),
                                 vain.size() - texts.size() == 1 ? " further kind" : " further kinds",
                                 " of pods that nodes which came for them do not take"));
  }
  return texts;
}

std::vector<VainGrowth> HoldVainGrowth(const BackOffOptions& back_off, int64_t now_ms, Snapshot* snapshot,
                                       WorkBudget* budget, LoopProblem* problem, LoopMemory* memory) {
  ForgetOld(now_ms, memory);
  FillInModelKeys(problem);
  problem->pending_keys.clear();
  problem->slack_growth.clear();
  std::vector<VainGrowth> all;
  const bool for_slack = problem->decisions.slack && absl::c_any_of(memory->purchases, IsForSlack);
  if (memory->purchases.empty() || (problem->pending.empty() && !for_slack)) return all;
  FillInPendingKeys(problem);
  PendingKeys keys(*problem);
  PendingByKey pods_of;
  for (size_t i = 0; i < problem->pending.size(); ++i) {
    const PurchaseKey of = keys.Of(/*group=*/0, i);
    pods_of[std::pair(of.namespace_name, of.pods)].push_back(i);
  }
  const WorkPhase phase(budget, kForJudgements);
  PurchaseJudge judge(back_off, now_ms, *problem, snapshot, budget);
  if (for_slack) problem->slack_growth = SlackGrowthOf(now_ms, *problem, &judge, memory, &all);
  ForEachAsked(problem->groups, pods_of, memory,
               [&](GroupIndex group, const std::vector<size_t>& pods, Purchase* purchase) {
                 return !judge.HasHelped(group, pods.front(), purchase);
               });
  ForEachAsked(problem->groups, pods_of, memory,
               [&](GroupIndex group, const std::vector<size_t>& pods, Purchase* purchase) {
                 if (purchase->asked_ms.has_value() || purchase->until_ms <= now_ms) return true;
                 const Slot node = judge.Compare(group, purchase).value_or(Slot{-1});
                 if (purchase->until_ms <= now_ms) return true;
                 for (const size_t of : pods) all.push_back({group, of, node, purchase->until_ms, ""});
                 return true;
               });
  std::sort(all.begin(), all.end(), [](const VainGrowth& a, const VainGrowth& b) {
    return std::tie(a.group, a.pods) < std::tie(b.group, b.pods);
  });
  for (VainGrowth& vain : std::span(all).first(std::min(all.size(), kMostVainTexts))) {
    if (vain.node != Slot{-1} && vain.pods.has_value()) vain.reason = judge.ReasonOf(*vain.pods, vain.node);
  }
  KeepOff(all, problem);
  return all;
}

void NoteGrowth(const BackOffOptions& back_off, const LoopProblem& problem, const LoopPlan& plan,
                int64_t now_ms, LoopMemory* memory) {
  NoteGrowthForSlack(back_off, problem, plan, now_ms, memory);
  if (plan.batch_wait_ms.has_value()) return;
  PendingKeys keys(problem);
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    const GroupIndex group = plan.grown[nodes.group];
    const uint64_t key = FleetKey(problem.groups[group].name);
    for (const PodCount& pods : nodes.pods) {
      const size_t position = static_cast<size_t>(pods.pods);
      if (position >= problem.pending.size()) continue;  // a pod of a node that is being deleted
      Purchase& purchase = memory->purchases[keys.Of(key, position)];
      if (!purchase.asked_ms.has_value()) purchase.asked_ms = now_ms;
      purchase.model_asked = problem.model_keys[group];
    }
  }
  KeepEqualShares(memory);
}

}  // namespace loadline
