// Invariants of drain plans over random clusters, by an independent checker, and that the checker finds
// defects.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/drain/planner.h"
#include "test/core/drain/naive_checker.h"
#include "test/core/drain/naive_parts.h"
#include "test/core/drain/random_drain_cluster.h"
#include "test/testing/drawn_cases.h"

namespace loadline {
namespace {

const uint32_t kSeeds = static_cast<uint32_t>(DrawnCases(8'000, 40'000));

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Returns the state of what is under way, for a planner that is asked about the model.
DrainState StateOf(const CheckedState& checked, DrainModel* model) {
  DrainState state;
  for (const std::string& node : checked.deleting) {
    state.deleting.push_back(
        {.node = node, .drain = checked.draining.contains(node), .risky = checked.risky.contains(node)});
  }
  for (const Evicted& evicted : checked.evictions) {
    state.recent_evictions.push_back({.shape = model->cluster().Shape(evicted.pod),
                                      .name = evicted.pod.name,
                                      .uid = evicted.pod.uid,
                                      .node = evicted.node,
                                      .at_s = evicted.at_s});
  }
  for (RecentEviction& eviction : state.recent_evictions) eviction.names = model->cluster().names();
  return state;
}

// Nobody waits for a replacement for longer than a minute; of the future no eviction is.
void ForgetEvictions(int64_t now_s, CheckedState* checked) {
  for (Evicted& evicted : checked->evictions) evicted.at_s = std::min(evicted.at_s, now_s);
  std::erase_if(checked->evictions, [&](const Evicted& evicted) { return now_s - evicted.at_s >= 60; });
}

// Since when a node is not needed. One that only a budget keeps may have one as well, if others use it up:
// from then on or later.
struct NaiveTimer {
  std::string uid;
  int64_t since_s = 0;
  bool perhaps = false;
};
using NaiveTimers = std::map<std::string, NaiveTimer>;  // by node

std::string UidOf(const DrainCluster& cluster, const std::string& name) {
  const auto node = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                 [&](const DrainNode& of) { return of.node.name == name; });
  return node == cluster.nodes.end() ? "" : node->node.traits.uid;
}

const NaiveTimer* Running(const NaiveTimers& timers, const std::string& node, const std::string& uid) {
  const auto timer = timers.find(node);
  return timer != timers.end() && timer->second.uid == uid ? &timer->second : nullptr;
}

// Returns whether the budgets of the pod that keeps a node ever let it go.
bool MayGoLater(const DrainCluster& cluster, const DrainModel& model, const DrainKeep& keep) {
  const std::string node_name = model.name(keep.slot);
  const absl::string_view pod_name = model.problem().cluster->pods(keep.slot).name(keep.pod->position());
  const auto node = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                 [&](const DrainNode& of) { return of.node.name == node_name; });
  const auto pod = std::find_if(node->pods.begin(), node->pods.end(),
                                [&](const FitPod& of) { return of.name == pod_name; });
  return std::all_of(cluster.budgets.begin(), cluster.budgets.end(), [&](const DrainBudget& of) {
    return of.namespace_name != pod->namespace_name || !Selects(of.budget.selector, *pod) ||
           of.budget.expected_pods > of.budget.desired_healthy;
  });
}

// Three loops on each of kSeeds clusters, in which nodes change and the clock steps in between, with
// deletions and evictions under way, minima and rules: D1 to D13 as far as a plan can break them; timers are
// those that a naive count has; and a planner that was restarted with the state, or has the nodes in other
// slots, says the same.
TEST(DrainPlannerRandomTest, D1ToD13HoldOverLoops) {
  int64_t nodes_gone = 0;
  int64_t starts = 0;
  int64_t loops = 0;
  int64_t brakes = 0;
  int64_t risky = 0;
  int64_t kept_over = 0;
  int64_t waited_on = 0;
  int64_t waited_for = 0;
  int64_t clock_went_back = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    RandomDrainCluster random(seed);
    DrainCluster cluster = random.Cluster();
    CheckedState checked = random.State(cluster);
    DrainModel model(cluster);
    DrainPlanner planner;
    planner.SetState(StateOf(checked, &model));
    DrainPlanner handed;  // the state each time, as by a client that tells of removals
    handed.SetState(StateOf(checked, &model));
    DrainState state;
    NaiveTimers timers;
    for (int loop = 0; loop < 3; ++loop) {
      ForgetEvictions(cluster.now_s, &checked);
      waited_for += static_cast<int64_t>(checked.evictions.size());
      clock_went_back += checked.last_now_s.value_or(0) > cluster.now_s;
      WorkBudget budget;
      const DrainPlan& plan = planner.Plan(model.problem(), checked.options, &budget);
      planner.CheckConsistent();
      const NamedPlan named = Named(model, plan);
      const std::vector<std::string> errors = CheckPlan(cluster, checked, named);
      ASSERT_TRUE(errors.empty()) << "seed " << seed << " loop " << loop << "\n"
                                  << Join(errors) << PlanText(model, plan);
      NaiveTimers now;
      for (const NamedRemoval& removal : named.remove) {
        const std::string uid = UidOf(cluster, removal.node);
        const NaiveTimer* const before = Running(timers, removal.node, uid);
        const int64_t since_s = before != nullptr ? std::min(before->since_s, cluster.now_s) : cluster.now_s;
        const bool later = before != nullptr && before->perhaps && removal.since_s > since_s &&
                           removal.since_s <= cluster.now_s;
        ASSERT_TRUE(later || removal.since_s == since_s)
            << "seed " << seed << " loop " << loop << ": node " << removal.node << " since "
            << removal.since_s << ", want " << since_s;
        now[removal.node] = {uid, removal.since_s};
        kept_over += before != nullptr && !before->perhaps;
      }
      for (const DrainKeep& keep : plan.keep) {
        if (!NothingIsLeft(keep.budget)) continue;
        const std::string name = model.name(keep.slot), uid = UidOf(cluster, name);
        const NaiveTimer* const before = Running(timers, name, uid);
        if (before != nullptr && MayGoLater(cluster, model, keep)) {
          now[name] = *before;
          waited_on += !before->perhaps;
        } else if (before == nullptr || before->perhaps) {
          now[name] = {uid, cluster.now_s, /*perhaps=*/true};
        }
      }
      if (!named.braked) timers = std::move(now);
      for (auto& [node, timer] : timers) timer.since_s = std::min(timer.since_s, cluster.now_s);
      // A planner that knows the state only.
      if (loop > 0) {
        DrainPlanner restarted;
        restarted.SetState(state);
        WorkBudget again;
        ASSERT_EQ(PlanText(model, restarted.Plan(model.problem(), checked.options, &again)),
                  PlanText(model, plan))
            << "seed " << seed << " loop " << loop;
        handed.ReplaceState(state);
        ASSERT_EQ(PlanText(model, handed.Plan(model.problem(), checked.options, &again)),
                  PlanText(model, plan))
            << "seed " << seed << " loop " << loop;
        handed.CheckConsistent();
      } else {
        WorkBudget first;
        handed.Plan(model.problem(), checked.options, &first);
        DrainCluster shuffled = cluster;
        std::reverse(shuffled.nodes.begin(), shuffled.nodes.end());
        for (DrainNode& node : shuffled.nodes) std::reverse(node.pods.begin(), node.pods.end());
        DrainModel other(shuffled);
        DrainPlanner fresh;
        fresh.SetState(StateOf(checked, &other));
        WorkBudget again;
        const NamedPlan same = Named(other, fresh.Plan(other.problem(), checked.options, &again));
        ASSERT_EQ(same.remove.size(), named.remove.size()) << "seed " << seed;
        for (size_t i = 0; i < same.remove.size(); ++i) {
          ASSERT_EQ(same.remove[i].node, named.remove[i].node) << "seed " << seed;
          for (size_t k = 0; k < same.remove[i].moves.size(); ++k) {
            ASSERT_EQ(same.remove[i].moves[k].pod + ">" + same.remove[i].moves[k].to,
                      named.remove[i].moves[k].pod + ">" + named.remove[i].moves[k].to)
                << "seed " << seed;
          }
        }
      }
      ++loops;
      brakes += named.braked;
      nodes_gone += static_cast<int64_t>(named.remove.size());
      for (const NamedRemoval& removal : named.remove) {
        starts += removal.start;
        risky += removal.risky;
      }
      state = planner.state();
      if (random.Percent("loop.change", 70)) random.Change(&cluster);
      checked.last_now_s = cluster.now_s;
      cluster.now_s += random.Percent("loop.time", 50) ? 30 : 700;
      if (random.Percent("loop.clock", 5)) cluster.now_s -= random.Draw("loop.back", 1, 2'000);
      model.Update(cluster);
    }
  }
  // That something was tried at all.
  EXPECT_EQ(loops, 3 * int64_t{kSeeds});
  EXPECT_GT(nodes_gone, kSeeds);
  EXPECT_GT(starts, kSeeds / 10);
  EXPECT_GT(kept_over, kSeeds / 2);
  EXPECT_GT(waited_on, kSeeds / 200);
  EXPECT_GT(risky, 50);
  EXPECT_GT(brakes, 50);
  EXPECT_GT(waited_for, kSeeds / 10);
  EXPECT_GT(clock_went_back, kSeeds / 100);
  RecordProperty("nodes_gone", static_cast<int>(nodes_gone));
  RecordProperty("starts", static_cast<int>(starts));
}

// --- the checker finds what is wrong
// ---------------------------------------------------------------------------

// Makes the answer of a planner with one defect from a plan that is right. False: there is nothing in this
// plan that the defect would change.
struct Defect {
  std::string name;
  std::string number;  // of the invariant that is broken
  std::function<bool(const DrainCluster&, NamedPlan*)> apply;
};

const DrainNode* FindNode(const DrainCluster& cluster, const std::string& name) {
  for (const DrainNode& node : cluster.nodes) {
    if (node.node.name == name) return &node;
  }
  return nullptr;
}

// The kept node of which `wanted` holds joins the plan, its pods going to the first node that stays.
bool RemoveToo(const DrainCluster& cluster, NamedPlan* plan,
               const std::function<bool(const DrainNode&)>& wanted) {
  for (size_t i = 0; i < plan->keep.size(); ++i) {
    const DrainNode& node = *FindNode(cluster, plan->keep[i]);
    if (!wanted(node) || plan->keep.size() < 2) continue;
    NamedRemoval removal{.node = node.node.name, .empty = true, .since_s = cluster.now_s};
    std::vector<size_t> pods;
    bool waits = false;
    MovablePods(cluster, node, &pods, &waits);
    const std::string& to = plan->keep[i == 0 ? 1 : 0];
    for (const size_t pod : pods) {
      removal.moves.push_back({node.pods[pod].name, to});
      removal.empty = removal.empty && node.pods[pod].traits.placeholder;
    }
    plan->remove.push_back(std::move(removal));
    plan->keep.erase(plan->keep.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

const std::vector<Defect>& Defects() {
  static const auto* const kDefects = new std::vector<Defect>{
      {"a pod is forgotten", "D4",
       [](const DrainCluster&, NamedPlan* plan) {
         for (NamedRemoval& removal : plan->remove) {
           if (removal.moves.empty()) continue;
           removal.moves.pop_back();
           return true;
         }
         return false;
       }},
      {"a node that goes takes pods", "D4",
       [](const DrainCluster&, NamedPlan* plan) {
         if (plan->remove.size() < 2 || plan->remove[0].moves.empty()) return false;
         plan->remove[0].moves[0].to = plan->remove[1].node;
         return true;
       }},
      {"room is used twice", "D4",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         // Each node by itself fits: all go to the node that takes the first pod.
         if (plan->remove.size() < 2 || plan->remove[0].moves.empty()) return false;
         int64_t pods = 0;
         int64_t cpu = 0;
         const std::string to = plan->remove[0].moves[0].to;
         for (NamedRemoval& removal : plan->remove) {
           for (NamedMove& move : removal.moves) {
             move.to = to;
             ++pods;
             for (const FitPod& pod : FindNode(cluster, removal.node)->pods) {
               if (pod.name == move.pod) cpu += pod.requests[0].second;
             }
           }
         }
         return cpu > FindNode(cluster, to)->node.allocatable[0].second;
       }},
      {"pods go to a cordoned node", "D4",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         for (const std::string& name : plan->keep) {
           if (!FindNode(cluster, name)->node.unschedulable) continue;
           for (NamedRemoval& removal : plan->remove) {
             if (removal.moves.empty()) continue;
             removal.moves[0].to = name;
             return true;
           }
         }
         return false;
       }},
      {"budgets are not looked at", "D1",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         return RemoveToo(cluster, plan, [&](const DrainNode& node) {
           std::vector<size_t> pods;
           bool waits = false;
           return MovablePods(cluster, node, &pods, &waits) &&
                  std::any_of(node.pods.begin(), node.pods.end(), [&](const FitPod& pod) {
                    return pod.traits.ready && pod.traits.owner.has_value() &&
                           pod.traits.owner->kind == "ReplicaSet" && !pod.traits.deleted_s.has_value() &&
                           !HasFinished(pod.traits.phase) && !pod.traits.placeholder &&
                           pod.traits.safe_to_evict != SafeToEvict::kOnCompletion &&
                           std::any_of(cluster.budgets.begin(), cluster.budgets.end(),
                                       [&](const DrainBudget& budget) {
                                         return budget.namespace_name == pod.namespace_name &&
                                                budget.budget.selector_error.empty() &&
                                                budget.budget.selector.Matches(MakeLabels(pod.labels)) &&
                                                budget.budget.disruptions_allowed <= 0;
                                       });
                  });
         });
       }},
      {"minima of groups are not looked at", "D2",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         bool any = false;
         while (RemoveToo(cluster, plan, [&](const DrainNode& node) {
           return node.group == GroupIndex{0} && cluster.groups[GroupIndex{0}].min_nodes > 0;
         })) {
           any = true;
         }
         const bool left = std::any_of(plan->keep.begin(), plan->keep.end(), [&](const std::string& name) {
           return FindNode(cluster, name)->group == GroupIndex{0};
         });
         return any && !left;
       }},
      {"pods that must not move do", "D3",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         return RemoveToo(cluster, plan, [&](const DrainNode& node) {
           std::vector<size_t> pods;
           bool waits = false;
           return !MovablePods(cluster, node, &pods, &waits);
         });
       }},
      {"timers are not waited for", "D7",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         for (NamedRemoval& removal : plan->remove) {
           if (removal.start || cluster.now_s - removal.since_s > 600) continue;
           removal.start = true;
           return true;
         }
         return false;
       }},
      {"too many start", "D6",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         int64_t drains = 0;
         for (NamedRemoval& removal : plan->remove) {
           removal.start = true;
           removal.since_s = cluster.now_s - 5000;
           drains += !removal.empty;
         }
         const bool atomic = cluster.groups[GroupIndex{0}].atomic || cluster.groups[GroupIndex{1}].atomic;
         return drains > 2 && !atomic;
       }},
      {"spreading is not looked at", "D12",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         for (NamedRemoval& removal : plan->remove) {
           for (NamedMove& move : removal.moves) {
             for (const FitPod& pod : FindNode(cluster, removal.node)->pods) {
               if (pod.name != move.pod || pod.rules.spread.empty() ||
                   pod.rules.spread[0].topology_key != "zone") {
                 continue;
               }
               // A node without a zone.
               for (const std::string& name : plan->keep) {
                 if (!FindNode(cluster, name)->node.labels.empty()) continue;
                 move.to = name;
                 return true;
               }
             }
           }
         }
         return false;
       }},
      {"anti-affinity is not looked at", "D12",
       [](const DrainCluster& cluster, NamedPlan* plan) {
         for (NamedRemoval& removal : plan->remove) {
           for (NamedMove& move : removal.moves) {
             for (const FitPod& pod : FindNode(cluster, removal.node)->pods) {
               if (pod.name != move.pod || pod.rules.anti_affinity.empty()) continue;
               for (const std::string& name : plan->keep) {
                 for (const FitPod& other : FindNode(cluster, name)->pods) {
                   if (other.labels != pod.labels || HasFinished(other.traits.phase)) continue;
                   if (pod.rules.anti_affinity[0].topology_key == "zone" &&
                       FindNode(cluster, name)->node.labels.empty()) {
                     continue;
                   }
                   move.to = name;
                   return true;
                 }
               }
             }
           }
         }
         return false;
       }},
  };
  return *kDefects;
}

// A plan that is right, but for something that it did not know of.
TEST(DrainPlannerRandomTest, TheCheckerCountsWhatIsUnderWayAndAskedFor) {
  struct Hidden {
    std::string name;
    std::string number;
    std::function<bool(const DrainCluster&, const NamedPlan&, CheckedState*)> hide;
  };
  const auto drains = [](const NamedPlan& plan) {
    return std::count_if(plan.remove.begin(), plan.remove.end(),
                         [](const NamedRemoval& removal) { return removal.start && !removal.empty; });
  };
  const auto one_drains = [](const NamedPlan& plan, CheckedState* checked) {
    checked->deleting = {plan.keep.front()};
    checked->draining = {plan.keep.front()};
  };
  const std::vector<Hidden> hidden = {
      {"a drain that runs is exclusive", "D6",
       [&](const DrainCluster&, const NamedPlan& plan, CheckedState* checked) {
         one_drains(plan, checked);
         checked->options.deletion.exclusive = true;
         return drains(plan) > 0;
       }},
      {"a drain that runs is risky", "D1",
       [&](const DrainCluster&, const NamedPlan& plan, CheckedState* checked) {
         one_drains(plan, checked);
         checked->risky = checked->draining;
         return drains(plan) > 0;
       }},
      {"a drain that runs counts", "D6",
       [&](const DrainCluster& cluster, const NamedPlan& plan, CheckedState* checked) {
         one_drains(plan, checked);
         checked->options.deletion.max_drain_parallelism = drains(plan);
         return drains(plan) > 0 && !cluster.groups[GroupIndex{0}].atomic &&
                !cluster.groups[GroupIndex{1}].atomic;
       }},
      {"the nodes that stay are as few as may be", "D2",
       [](const DrainCluster&, const NamedPlan& plan, CheckedState* checked) {
         checked->options.minimum.nodes = static_cast<int64_t>(plan.keep.size()) + 1;
         return !plan.remove.empty();
       }},
      {"what stays has too little memory", "D2",
       [](const DrainCluster& cluster, const NamedPlan& plan, CheckedState* checked) {
         for (const DrainNode& node : cluster.nodes) {
           checked->options.minimum.amounts.memory += node.node.allocatable[1].second;
         }
         return !plan.remove.empty();
       }},
      {"the clock went back", "D8",
       [](const DrainCluster& cluster, const NamedPlan& plan, CheckedState* checked) {
         checked->last_now_s = cluster.now_s + 1;
         return !plan.braked;
       }},
      {"the replacement of an evicted pod has no place", "D4",
       [](const DrainCluster& cluster, const NamedPlan& plan, CheckedState* checked) {
         checked->evictions = {{ReplicaPod("gone", 5'000), "elsewhere", cluster.now_s}};
         return !plan.braked;
       }},
  };
  std::map<std::string, int> applied;
  for (uint32_t seed = 1; seed <= 1'000; ++seed) {
    RandomDrainCluster random(seed);
    const DrainCluster cluster = random.Cluster();
    CheckedState checked;
    DrainOptions& options = checked.options;
    options.deletion.timers.unneeded_time_s = options.deletion.timers.unready_time_s = -1;
    DrainModel model(cluster);
    DrainPlanner planner;
    WorkBudget budget;
    const NamedPlan plan = Named(model, planner.Plan(model.problem(), options, &budget));
    if (plan.keep.empty()) continue;
    for (const Hidden& fact : hidden) {
      CheckedState other = checked;
      if (!fact.hide(cluster, plan, &other)) continue;
      ++applied[fact.name];
      const std::vector<std::string> errors = CheckPlan(cluster, other, plan);
      EXPECT_TRUE(std::any_of(errors.begin(), errors.end(),
                              [&](const std::string& error) { return error.starts_with(fact.number + ":"); }))
          << fact.name << ", seed " << seed << "\n"
          << Join(errors);
    }
  }
  for (const Hidden& fact : hidden) EXPECT_GT(applied[fact.name], 10) << fact.name;
}

TEST(DrainPlannerRandomTest, TheCheckerFindsSeededDefects) {
  std::map<std::string, int> applied;
  std::map<std::string, int> found;
  for (uint32_t seed = 1; seed <= 4'000; ++seed) {
    RandomDrainCluster random(seed);
    const DrainCluster cluster = random.Cluster();
    CheckedState checked;
    checked.options.deletion.max_drain_parallelism = 2;
    DrainModel model(cluster);
    DrainPlanner planner;
    WorkBudget budget;
    const NamedPlan plan = Named(model, planner.Plan(model.problem(), checked.options, &budget));
    for (const Defect& defect : Defects()) {
      NamedPlan wrong = plan;
      if (!defect.apply(cluster, &wrong)) continue;
      ++applied[defect.name];
      const std::vector<std::string> errors = CheckPlan(cluster, checked, wrong);
      found[defect.name] += std::any_of(errors.begin(), errors.end(), [&](const std::string& error) {
        return error.starts_with(defect.number + ":");
      });
    }
  }
  for (const Defect& defect : Defects()) {
    EXPECT_GT(applied[defect.name], 10) << defect.name;
    EXPECT_EQ(found[defect.name], applied[defect.name]) << defect.name;
  }
}

}  // namespace
}  // namespace loadline
