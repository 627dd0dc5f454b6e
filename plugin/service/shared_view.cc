#include "plugin/service/shared_view.h"

#include "plugin/base/free_memory.h"

namespace loadline {

std::shared_ptr<View> SharedView::Current() const {
  const MutexLock lock(&pointer_);
  return current_;
}

void SharedView::Lend(std::vector<ShownNode> former) { lent_ = std::move(former); }

void SharedView::LeaveToPlan() {
  if (!lent_.has_value()) return;
  std::shared_ptr<View> copy = Current()->Fork();
  for (const ShownNode& node : *lent_) copy->ShowNode(node.slot, node.shape);
  lent_.reset();
  const MutexLock lock(&pointer_);
  current_.swap(copy);  // the plan still has the other one
}

bool SharedView::EndLoan() { return std::exchange(lent_, std::nullopt).has_value(); }

void SharedView::ForgetCluster() {
  snapshot.Drop();
  ForgetDrains();
}

void SharedView::ForgetDrains() {
  drain.planner.SetState(drain.last.state);
  drain.cluster.reset();  // the next turn sets it again
}

void SharedView::DropLargeTables() {
  const bool has_dropped = snapshot.DropLarge();
  const bool is_large = drain.planner.count_bytes() > MostCountBytes();
  if (is_large) ForgetDrains();
  if (has_dropped || is_large) ReturnFreeMemory();
}

ReadOptions SharedView::OptionsOfBatch() const {
  ReadOptions options;
  options.names.names = static_cast<size_t>(limits.view.resources);
  options.slack_namespace = limits.slack_namespace;
  return options;
}

ReadOptions SharedView::OptionsOfQuestion(const View& view) const {
  ReadOptions options = loadline::OptionsOfQuestion(view.cluster().resource_names(), limits.slack_namespace);
  options.resize_rule = view.resize_rule();
  return options;
}

LeftOutList SharedView::LeftOut(const View& view) {
  const MutexLock lock(&lists_);
  if (left_out_version_ != view.version()) left_out_ = view.LeftOut();
  left_out_version_ = view.version();
  return left_out_;
}

std::shared_ptr<const ExpectedUse> SharedView::Expected(const View& view,
                                                        const ExpectedUseOptions& options) const {
  const MutexLock lock(&profiles_);
  return expected_.For(options, view.cluster().objects(), view.time_s());
}

void SharedView::UseProfiles(const View& view, LoadLine* line) const {
  line->sums.expected = Expected(view, line->expected_use);
}

void SharedView::UseProfiles(const View& view, FitOptions* options) const {
  UseProfiles(view, &options->load_line);
  for (auto& profile : options->profiles) profile.options.load_line = options->load_line;
}

PolicyColumns::Lease SharedView::Columns(const View& view, const LimitPolicy& policy,
                                         std::shared_ptr<const ExpectedUse> profiles_of_policy) const {
  std::shared_ptr<const DrainBlockers> rule;
  if (policy.blockers_together > 0) {
    const MutexLock lock(&profiles_);
    rule = blockers_.For(view.cluster().objects());
  }
  return columns.For(policy, view.cluster(), std::move(profiles_of_policy), std::move(rule));
}

void SharedView::CheckConsistent() const {
  const std::shared_ptr<const View> view = Current();
  if (view->half_applied()) return;
  view->CheckConsistent();
  snapshot.CheckConsistent(*view);
  if (drain.cluster.has_value()) drain.planner.CheckConsistent();  // else it may be half done
  slack.CheckConsistent();
}

absl::StatusOr<ReadView> ReadView::Wait(const std::shared_ptr<SharedView>& shared, const Deadline& deadline) {
  absl::StatusOr<Turn::Shared> lock = shared->turn.Share(deadline);
  if (!lock.ok()) return lock.status();
  if (!shared->ShowsOtherwise()) return ReadView(shared, *std::move(lock));
  lock->reset();
  absl::StatusOr<LockedView> view = LockedView::Wait(shared, deadline);
  if (!view.ok()) return view.status();
  return std::move(*view).Share();
}

absl::StatusOr<LockedView> LockedView::Wait(std::shared_ptr<SharedView> shared, const Deadline& deadline) {
  absl::StatusOr<Turn::Lock> lock = shared->turn.Take(deadline);
  if (!lock.ok()) return lock.status();
  if (shared->IsLent() && !deadline.may_wait()) return absl::AbortedError("a plan has it");
  shared->LeaveToPlan();
  return LockedView(std::move(shared), *std::move(lock));
}

}  // namespace loadline
