#include "plugin/service/undo.h"

namespace loadline {

UndoUnlessKept::~UndoUnlessKept() {
  if (kept_) return;
  if (snapshot_ != nullptr) shared_.snapshot.Drop();
  if (!slack_before_.has_value()) return;
  shared_.slack = SlackPlanner();
  shared_.slack.Restore(*slack_before_);
}

Snapshot* UndoUnlessKept::snapshot() {
  if (snapshot_ == nullptr) snapshot_ = shared_.snapshot.For(view_);
  return snapshot_;
}

SlackPlanner* UndoUnlessKept::slack() {
  if (!slack_before_.has_value()) slack_before_ = shared_.slack.State();
  return &shared_.slack;
}

DrainPlanner* UndoUnlessKept::drain() {
  shared_.drain.cluster.reset();  // what it has worked out is of no cluster
  return &shared_.drain.planner;
}

void UndoUnlessKept::Keep() {
  while (snapshot_ != nullptr && snapshot_->Revert()) {
  }
  kept_ = true;
}

}  // namespace loadline
