#include "core/removal/step_removal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/removal/drain_pods.h"
#include "core/removal/removal_pods.h"

namespace loadline {
namespace {

// One call of StepRemoval().
class RemovalStep {
 public:
  RemovalStep(const RemovalRules& rules, const RemovalFacts& seen, int64_t now_ms, Removal* removal)
      : rules_(rules), seen_(seen), now_ms_(now_ms), removal_(*removal) {}

  RemovalOrders Take() {
    // Once the cloud is asked, its answer is all that counts.
    if (!seen_.siblings.failed.empty() && removal_.stage != RemovalStage::kAsking) {
      return Fail(RemovalResult::kFailedToDelete,
                  absl::StrCat("its group is removed as a whole, and ", seen_.siblings.failed));
    }
    switch (removal_.stage) {
      case RemovalStage::kTainted:
        return LookAgain();
      case RemovalStage::kDraining:
        return Drain();
      case RemovalStage::kDelayed:
        return AwaitDelays();
      case RemovalStage::kReady:
        return Close();
      case RemovalStage::kMarking:
      case RemovalStage::kMarked:
        return Ask();
      case RemovalStage::kAsking:
        return Answered();
      case RemovalStage::kEnded:
        break;
    }
    return Fail(RemovalResult::kInternal, "its removal has ended already");
  }

 private:
  RemovalOrders LookAgain() {
    if (!seen_.node.has_value() || !seen_.pods.has_value()) {
      return Look(removal_.since_ms + rules_.delay_after_taint_ms, /*node=*/true, /*pods=*/true);
    }
    if (seen_.node->standing != NodeStanding::kOurs) return Lost(RemovalResult::kInternal);
    if (!seen_.pods->error.empty()) return Fail(RemovalResult::kInternal, seen_.pods->error);
    if (const auto why = Unexpected(seen_.pods->pods, NowS())) return Fail(RemovalResult::kInternal, *why);
    removal_.pods = PodsToGo(rules_, removal_.empty, seen_.pods->pods, NowS());
    removal_.stage = RemovalStage::kDraining;
    return Drain();
  }

  RemovalOrders Drain() {
    // That it cannot be read is no reason to stop: the evictions meet the same API server.
    if (seen_.node.has_value() && seen_.node->standing != NodeStanding::kOurs &&
        seen_.node->standing != NodeStanding::kUnreadable) {
      return Lost(RemovalResult::kFailedToEvict);
    }
    PodsDrain drain(rules_, seen_, now_ms_, &removal_);
    orders_.counted = drain.Settle();
    if (!drain.failure().empty()) return Fail(RemovalResult::kFailedToEvict, drain.failure());
    if (removal_.pods.empty()) {
      removal_.stage = RemovalStage::kDelayed;
      removal_.since_ms = now_ms_;
      return Look(now_ms_, /*node=*/true, /*pods=*/false);
    }
    if (!seen_.pods.has_value()) return Look(now_ms_, /*node=*/false, /*pods=*/true);
    drain.Advance();
    if (!drain.failure().empty()) return Fail(RemovalResult::kFailedToEvict, drain.failure());
    orders_.evictions = drain.TakeEvictions();
    return Look(drain.due_ms(), drain.look_at_node(), /*pods=*/true);
  }

  RemovalOrders AwaitDelays() {
    if (!seen_.node.has_value()) return Look(now_ms_, /*node=*/true, /*pods=*/false);
    if (seen_.node->standing != NodeStanding::kOurs) return Lost(RemovalResult::kInternal);
    if (!seen_.node->delays.empty()) {
      const int64_t until_ms = removal_.since_ms + rules_.deletion_delay_ms;
      if (now_ms_ < until_ms) {
        return Look(std::min(now_ms_ + rules_.poll_ms, until_ms), /*node=*/true, /*pods=*/false);
      }
      orders_.note = absl::StrCat("it is deleted although that is still delayed by ",
                                  absl::StrJoin(seen_.node->delays, ", "));
    }
    removal_.stage = RemovalStage::kReady;
    return Close();
  }

  // Nodes may have waited long for others since they were drained, and pods that tolerate all taints come.
  RemovalOrders Close() {
    if (seen_.siblings.not_ready > 0) return Look(now_ms_ + rules_.poll_ms, /*node=*/false, /*pods=*/false);
    if (rules_.batch_interval_ms > 0 && !seen_.siblings.atomic) {
      const int64_t since_ms = seen_.siblings.gathered_since_ms;
      const int64_t until_ms = since_ms + rules_.batch_interval_ms;
      if (since_ms < 0) return Look(now_ms_, /*node=*/false, /*pods=*/false);
      if (now_ms_ < until_ms) return Look(until_ms, /*node=*/false, /*pods=*/false);
    }
    if (!seen_.pods.has_value()) return Look(now_ms_, /*node=*/false, /*pods=*/true);
    if (!seen_.pods->error.empty()) return Fail(RemovalResult::kInternal, seen_.pods->error);
    if (const auto why = WouldBeLost(seen_.pods->pods, NowS())) return Fail(RemovalResult::kInternal, *why);
    removal_.stage = RemovalStage::kMarking;
    return Ask();
  }

  RemovalOrders Ask() {
    if (removal_.stage == RemovalStage::kMarking) {
      if (!seen_.marked.has_value()) {
        orders_.mark = true;
        return Look(now_ms_, /*node=*/false, /*pods=*/false);
      }
      if (seen_.marked->standing != NodeStanding::kOurs) {
        return Stay(seen_.marked->standing, RemovalResult::kFailedToDelete, seen_.marked->error);
      }
      removal_.stage = RemovalStage::kMarked;
    }
    if (seen_.siblings.not_marked > 0) return Look(now_ms_ + rules_.poll_ms, /*node=*/false, /*pods=*/false);
    removal_.stage = RemovalStage::kAsking;
    orders_.ask = true;
    return Look(now_ms_, /*node=*/false, /*pods=*/false);
  }

  RemovalOrders Answered() {
    if (!seen_.asked.has_value()) return Look(now_ms_ + rules_.poll_ms, /*node=*/false, /*pods=*/false);
    switch (seen_.asked->result) {
      case AskOutcome::Result::kTaken:
        return End({.result = RemovalResult::kDeleted});
      case AskOutcome::Result::kUnknown:  // it may be on its way: no pod is to come to it
        return End(
            {.result = RemovalResult::kFailedToDelete,
             .error = absl::StrCat("nobody knows whether the cloud deletes the node: ", seen_.asked->error)});
      case AskOutcome::Result::kRefused:
        break;
    }
    return Fail(RemovalResult::kFailedToDelete, seen_.asked->error);
  }

  // Ends the removal because the node is not ours any more, or because this is not known.
  RemovalOrders Lost(RemovalResult result) { return Stay(seen_.node->standing, result, seen_.node->error); }

  RemovalOrders Stay(NodeStanding standing, RemovalResult result, const std::string& error) {
    if (standing != NodeStanding::kGone) return Fail(result, error);
    return End({.result = result, .error = error});  // those that go with it have one less to wait for
  }

  RemovalOrders Fail(RemovalResult result, std::string error) {
    return End({.result = result, .error = std::move(error), .give_back = true, .fails_siblings = true});
  }

  RemovalOrders End(RemovalEnd end) {
    removal_.stage = RemovalStage::kEnded;
    orders_.end = std::move(end);
    return std::move(orders_);
  }

  RemovalOrders Look(int64_t due_ms, bool node, bool pods) {
    orders_.due_ms = due_ms;
    orders_.look_at_node = node;
    orders_.look_at_pods = pods;
    return std::move(orders_);
  }

  int64_t NowS() const { return now_ms_ / 1000; }

  const RemovalRules& rules_;
  const RemovalFacts& seen_;
  const int64_t now_ms_;
  Removal& removal_;
  RemovalOrders orders_;
};

}  // namespace

absl::string_view Name(RemovalStage stage) {
  switch (stage) {
    case RemovalStage::kTainted:
      return "tainted";
    case RemovalStage::kDraining:
      return "draining";
    case RemovalStage::kDelayed:
    case RemovalStage::kReady:
      return "waiting";
    case RemovalStage::kMarking:
    case RemovalStage::kMarked:
    case RemovalStage::kAsking:
    case RemovalStage::kEnded:
      return "deleting";
  }
  return "no such stage";
}

RemovalOrders StepRemoval(const RemovalRules& rules, const RemovalFacts& seen, int64_t now_ms,
                          Removal* removal) {
  return RemovalStep(rules, seen, now_ms, removal).Take();
}

}  // namespace loadline
