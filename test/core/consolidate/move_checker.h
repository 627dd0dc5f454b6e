// Follows moves on plain lists and says what is wrong with them. Shares no code with the planner.
#ifndef LOADLINE_TEST_CORE_CONSOLIDATE_MOVE_CHECKER_H_
#define LOADLINE_TEST_CORE_CONSOLIDATE_MOVE_CHECKER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/consolidate/consolidation.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {

class MoveChecker {
 public:
  MoveChecker(const ModelCluster& before, const ConsolidationOptions& options)
      : now_(before), options_(options) {
    for (const ModelNode& node : before.nodes) slots_.push_back(node.name);
    // Names of nodes that came by plans before are taken.
    while (std::any_of(slots_.begin(), slots_.end(), [&](const std::string& name) {
      return name.starts_with(absl::StrCat("new-", round_, "-"));
    })) {
      ++round_;
    }
  }

  // Follows one plan; problems() says what was wrong.
  void Follow(const ConsolidationPlan& plan) {
    double cost = now_.Cost();
    Near(plan.bill.now, cost, "bill.now");
    for (size_t i = 0; i < plan.moves.size(); ++i) {
      where_ = absl::StrCat("move ", i);
      FollowMove(plan.moves[i]);
      const double next = now_.Cost();
      if (next >= cost) Say("cost does not fall");
      Near(plan.moves[i].saves, cost - next, "saves");
      cost = next;
    }
    where_ = "plan";
    Near(plan.bill.reachable, cost, "bill.reachable");
    if (plan.bill.bound > cost + 1e-6) Say(absl::StrCat("bound ", plan.bill.bound, " is above ", cost));
    CheckWaves(plan);
  }

  const ModelCluster& now() const { return now_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  // Pods by app and zone.
  using ByZone = std::map<std::pair<size_t, std::string>, int64_t>;

  void Say(const std::string& text) {
    if (problems_.size() < 10) problems_.push_back(absl::StrCat(where_, ": ", text));
  }
  void Near(double a, double b, const std::string& what) {
    if (std::abs(a - b) > 1e-6) Say(absl::StrCat(what, " is ", a, ", not ", b));
  }
  ModelNode* Find(const std::string& name) {
    const auto found = std::find_if(now_.nodes.begin(), now_.nodes.end(),
                                    [&](const ModelNode& n) { return n.name == name; });
    return found == now_.nodes.end() ? nullptr : &*found;
  }
  std::string NewName(const ModelType& type, int32_t number) const {
    return absl::StrCat("new-", round_, "-", type.name, "-", number);
  }
  std::string NameOf(const MoveTarget& to) const {
    return to.is_new() ? NewName(now_.types[IndexOf(*to.group)], to.number) : slots_[IndexOf(to.slot)];
  }

  void FollowMove(const ConsolidationMove& move) {
    // New nodes come first: maxima hold with the old ones still there.
    for (size_t i = 0; i < move.add.size(); ++i) {
      for (int64_t n = 0; n < move.add[i].nodes; ++n) {
        const size_t type = IndexOf(move.add[i].group);
        now_.nodes.push_back(
            {NewName(now_.types[type], move.first_number[i] + static_cast<int32_t>(n)), type, true, {}});
      }
    }
    std::map<size_t, int64_t> count;
    for (const ModelNode& node : now_.nodes) ++count[node.type];
    for (const auto& add : move.add) {
      const size_t type = IndexOf(add.group);
      if (count[type] > now_.types[type].max)
        Say(absl::StrCat(now_.types[type].name, " is above its maximum"));
    }
    if (!move.add.empty() && now_.max_nodes.has_value() &&
        static_cast<int64_t>(now_.nodes.size()) > *now_.max_nodes) {
      Say("the cluster is above its maximum");
    }
    std::set<std::string> zones;  // also those of nodes that leave: they count until the move is done
    for (const ModelNode& node : now_.nodes) zones.insert(now_.types[node.type].zone);
    ByZone stayed = PodsByZone();
    for (const PodTransfer& pod : move.pods) Forget(pod, &stayed);
    MovePods(move);
    for (const Slot slot : move.remove) {
      const ModelNode* const node = Find(slots_[IndexOf(slot)]);
      if (node == nullptr) {
        Say("a node goes twice");
        continue;
      }
      if (!node->may_go) Say(absl::StrCat(node->name, " may not go"));
      if (!node->pods.empty()) Say(absl::StrCat(node->name, " goes with ", node->pods.size(), " pods on it"));
      if (--count[node->type] < now_.types[node->type].min) Say("a group is below its minimum");
      now_.nodes.erase(now_.nodes.begin() + (node - now_.nodes.data()));
    }
    CheckNodes();
    CheckSkew(zones, stayed);
  }

  void Forget(const PodTransfer& pod, ByZone* stayed) {
    const ModelNode* const node = Find(slots_[IndexOf(pod.from)]);
    const size_t position = static_cast<size_t>(pod.position);
    if (node == nullptr || position >= node->pods.size()) return;
    --(*stayed)[{node->pods[position].app, now_.types[node->type].zone}];
  }

  void MovePods(const ConsolidationMove& move) {
    std::map<std::string, std::vector<ModelPod>> before;
    for (const Slot slot : move.remove) {
      if (const ModelNode* const node = Find(slots_[IndexOf(slot)])) before[node->name] = node->pods;
    }
    std::set<std::pair<std::string, int32_t>> moved;
    int64_t disrupted = 0;
    for (const PodTransfer& pod : move.pods) {
      const std::string from = slots_[IndexOf(pod.from)];
      ModelNode* const to = Find(NameOf(pod.to));
      const size_t position = static_cast<size_t>(pod.position);
      if (!before.contains(from) || position >= before[from].size()) {
        Say(absl::StrCat("a pod moves from ", from, ", which does not go"));
        continue;
      }
      if (!moved.insert({from, pod.position}).second) Say("a pod moves twice");
      if (to == nullptr) {
        Say(absl::StrCat("a pod goes to ", NameOf(pod.to), ", which is not there"));
        continue;
      }
      ++disrupted;
      const ModelPod entry = before[from][position];
      arrived_.insert(entry.name);
      to->pods.push_back(entry);
      std::vector<ModelPod>& pods = Find(from)->pods;
      std::erase_if(pods, [&](const ModelPod& other) { return other.name == entry.name; });
    }
    if (disrupted != move.disrupted) Say(absl::StrCat("disrupted is ", move.disrupted, ", not ", disrupted));
  }

  ByZone PodsByZone() const {
    ByZone pods;
    for (const ModelNode& node : now_.nodes) {
      for (const ModelPod& pod : node.pods) ++pods[{pod.app, now_.types[node.type].zone}];
    }
    return pods;
  }

  // A zone that took pods is within the skew when the last of them has come; others may be above, as for a
  // scheduler.
  void CheckSkew(const std::set<std::string>& zones, const ByZone& stayed) {
    ByZone pods = PodsByZone();
    for (size_t app = 0; app < now_.apps.size(); ++app) {
      if (now_.apps[app].max_skew == 0) continue;
      int64_t least = INT64_MAX;
      for (const std::string& zone : zones) least = std::min(least, pods[{app, zone}]);
      for (const std::string& zone : zones) {
        const auto before = stayed.find({app, zone});
        const int64_t had = before == stayed.end() ? 0 : before->second;
        const int64_t skew = pods[{app, zone}] - least;
        if (pods[{app, zone}] > had && skew > now_.apps[app].max_skew) {
          Say(absl::StrCat("app ", app, " is out of balance by ", skew));
        }
      }
    }
  }

  void CheckNodes() {
    for (const ModelNode& node : now_.nodes) {
      const ModelType& type = now_.types[node.type];
      int64_t cpu = now_.daemon_cpu, memory = 0;
      std::map<size_t, int64_t> apps;
      for (const ModelPod& pod : node.pods) {
        cpu += now_.apps[pod.app].cpu;
        memory += now_.apps[pod.app].memory;
        if (++apps[pod.app] > 1 && now_.apps[pod.app].apart)
          Say(absl::StrCat(node.name, " has two pods that keep apart"));
      }
      if (cpu > type.cpu || memory > type.memory || node.pods.size() + 1 > 234)
        Say(absl::StrCat(node.name, " is too full"));
      CheckLine(node, now_.cpu_line, type.cpu,
                [&](const ModelApp& app) { return app.cpu_limit > 0 ? app.cpu_limit : app.cpu; });
      // A pod without a memory limit counts as all of it.
      CheckLine(node, now_.memory_line, type.memory,
                [&](const ModelApp& app) { return app.memory_limit > 0 ? app.memory_limit : type.memory; });
    }
  }

  // Pods that a plan moved come after those that were there: none of them may lift its node above the line.
  template <typename Count>
  void CheckLine(const ModelNode& node, int64_t line, int64_t allocatable, const Count& count) {
    if (line == 0) return;
    int64_t sum = 0;
    for (const ModelPod& pod : node.pods) {
      sum += std::min(count(now_.apps[pod.app]), allocatable);
      if (arrived_.contains(pod.name) && sum * 1000 > line * allocatable)
        Say(absl::StrCat(pod.name, " lifts ", node.name, " above the line"));
    }
  }

  void CheckWaves(const ConsolidationPlan& plan) {
    int64_t wave = 0;
    for (const ConsolidationMove& move : plan.moves) {
      if (move.wave != wave && move.wave != wave + 1) Say("waves are not in order");
      wave = move.wave;
    }
    for (int64_t w = 0; w <= wave; ++w) {
      int64_t nodes = 0, pods = 0, moves = 0;
      for (const ConsolidationMove& move : plan.moves) {
        if (move.wave != w) continue;
        ++moves;
        nodes += static_cast<int64_t>(move.remove.size());
        pods += move.disrupted;
      }
      if (moves > 1 && (nodes > options_.max_nodes_at_once || pods > options_.max_pods_at_once))
        Say("a wave is too large");
    }
  }

  ModelCluster now_;
  ConsolidationOptions options_;
  std::vector<std::string> slots_;
  int round_ = 0;
  std::set<std::string> arrived_;  // pods
  std::vector<std::string> problems_;
  std::string where_ = "plan";
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_CONSOLIDATE_MOVE_CHECKER_H_
