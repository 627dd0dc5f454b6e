#include "core/sim/move_log.h"

#include <cstddef>
#include <utility>

namespace loadline {
namespace {

template <typename T>
void AddIfFew(T entry, std::vector<T>* entries) {
  if (entries->size() < kMostSimMoves) entries->push_back(std::move(entry));
}

bool Differs(const SimBill& a, const SimBill& b) {
  return a.now != b.now || a.bound != b.bound || a.reachable != b.reachable;
}

}  // namespace

void NoteInLog(const ReplacementPlan& plan, int64_t now_ms, SimMoves* moves) {
  for (const EndedMove& ended : plan.ended) {
    ++(ended.why.empty() ? moves->done : moves->given_up);
    if (!ended.why.empty()) AddIfFew(ended.why, &moves->why_given_up);
  }
  if (plan.bill.has_value()) {
    const SimBill bill = {now_ms, plan.bill->now, plan.bill->bound, plan.bill->reachable};
    if (moves->bills.empty() || Differs(moves->bills.back(), bill)) AddIfFew(bill, &moves->bills);
  }
  for (const ConsolidationMove& move : plan.begun) {
    ++moves->begun;
    SimMove entry = {now_ms, move.saves, move.disrupted, static_cast<int64_t>(move.remove.size())};
    for (const GroupGrowthCount& add : move.add) entry.added += add.nodes;
    AddIfFew(entry, &moves->log);
  }
}

}  // namespace loadline
