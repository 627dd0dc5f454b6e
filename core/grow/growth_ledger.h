// The ledger of one loop's growth.
#ifndef LOADLINE_CORE_GROW_GROWTH_LEDGER_H_
#define LOADLINE_CORE_GROW_GROWTH_LEDGER_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/expand/node_limits.h"
#include "core/grow/loop_facts.h"
#include "core/grow/loop_plan.h"
#include "core/grow/resource_limit.h"

namespace loadline {

// New nodes of groups.
using NodesOfGroups = absl::btree_map<GroupIndex, int64_t>;

// Keeps account of the nodes that groups have, win and give up so far, and of what limits leave for more.
// Whoever tries something writes it into a copy.
struct GrowthLedger {
  // `of` outlives the ledger and its copies.
  explicit GrowthLedger(const LoopFacts& of) : facts(&of), counts(of.counts) { MeasureRoom(); }

  // Sets `room` to what present nodes and the upcoming ones of `counts` leave of the maxima. An upcoming node
  // whose group has no template counts for nothing: nobody knows what it offers.
  void MeasureRoom();

  // Returns the entry of the group in `growth`, which gets its place.
  LoopGrowth& Of(GroupIndex group);
  // Takes out what groups grow by for pods.
  void ForgetPods();

  // Returns how many nodes of the group that are not begun stay on their way.
  int64_t NotBegunLeft(GroupIndex group) const;
  // Takes so many nodes of a group back, as far as the provider has not begun to make them and they are not
  // taken back. There is one entry for each group: a target is lowered once, by the sum.
  void TakeBackNodes(GroupIndex group, int64_t nodes);

  // Returns the nodes that the group has, and those on their way.
  int64_t NodesOf(GroupIndex group) const { return counts[group].registered + counts[group].upcoming; }
  // Returns whether any node is on its way.
  bool AnyComes() const;
  // Returns the nodes that the group may have beyond those that it has, that are on their way, and that it
  // wins.
  int64_t RoomOf(GroupIndex group) const;
  // Returns the rest of what all groups may grow by together, as PlanOptions::max_new_nodes has it.
  NodeLimit NewNodesLeft() const;
  // Returns what all growth leaves of `room`.
  ResourceRoom RoomLeft() const;
  // Returns the number of nodes of the group that such amounts allow; nullopt: there is no limit, or no
  // template.
  NodeLimit MostNodesOf(GroupIndex group, const ResourceRoom& left) const;
  // Returns what the group may still win: within its own maximum, those of the cluster, and what all groups
  // may grow by together. 0 where it can only grow as a whole and may not.
  int64_t NodesWithinLimits(GroupIndex group) const;
  // The same; 0 where the group may not grow for pods and slack.
  int64_t MayAdd(GroupIndex group) const { return facts->may_grow[group] ? NodesWithinLimits(group) : 0; }

  // The same for slack alone.
  int64_t MayAddForSlack(GroupIndex group) const { return not_for_slack.contains(group) ? 0 : MayAdd(group); }

  // Returns whether the maxima of the cluster permit all of these nodes more.
  bool Permits(const NodesOfGroups& nodes) const;
  // Returns the nodes that each group may win at most so that all together stay within the maxima: what may
  // be of `nodes`, and then what is left for others, each in the order of the groups. A group that has all of
  // its nodes or none is behind the others of `nodes`, with all that `nodes` has of it or none.
  StrongVector<GroupIndex, NodeLimit> CapsTogether(const NodesOfGroups& nodes) const;
  // Returns the groups with a template of which the maxima permit no further node, in their order.
  std::vector<GroupAtMaximum> AtMaximum() const;

  const LoopFacts* facts;
  CountsOfGroups counts;           // with what sizes and minima ask for
  ResourceRoom room;               // that the maxima of the cluster left before anything grew
  std::vector<LoopGrowth> growth;  // by group; those that win nothing are left out
  std::vector<TakeBack> take_back;
  // Groups whose new nodes did not help slack.
  absl::btree_set<GroupIndex> not_for_slack;
  // The nodes on their way that a trial gives up. As many new ones may come beside what all groups may grow
  // by.
  int64_t given_up = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_GROWTH_LEDGER_H_
