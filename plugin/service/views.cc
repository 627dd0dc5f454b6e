#include "plugin/service/views.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "plugin/base/free_memory.h"
#include "plugin/convert/changes.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

std::string NameOf(absl::string_view name) { return absl::StrCat("view ", Quoted(name)); }

// Frees a view, and what the allocator keeps of it: another view may never come.
void Free(std::shared_ptr<SharedView> view) {
  view.reset();
  ReturnFreeMemory();
}

}  // namespace

thread_local bool Views::has_applied = false;

absl::StatusOr<Applied> Views::Apply(const v1::Changes& changes, const Deadline& deadline,
                                     PlannerTurn* planner) {
  if (absl::Status status = CheckHeader(changes); !status.ok()) return Annotate(status, "changes");
  if (const std::shared_ptr<SharedView> shared = Find(changes.view()); shared != nullptr) {
    return ApplyTo(shared, changes, deadline, planner);
  }
  if (!changes.has_full_list() || changes.full_list().index() != 0) {
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat(NameOf(changes.view()), " is not known; send a full list")),
                      kUnknownView);
  }
  // Nobody else sees the view before it has accepted the batch: one that is refused leaves no view behind.
  const auto fresh = std::make_shared<SharedView>(limits_);
  absl::StatusOr<Applied> applied = ApplyTo(fresh, changes, deadline, planner);
  if (!applied.ok()) return applied;
  if (absl::Status status = Add(changes.view(), fresh); !status.ok()) {
    has_applied = false;
    return status;
  }
  return applied;
}

absl::StatusOr<Applied> Views::ApplyTo(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                       const Deadline& deadline, PlannerTurn* planner) {
  if (planner != nullptr) {
    absl::StatusOr<Turn::Lock> turn = shared->planner.Take(deadline);
    if (!turn.ok()) return Annotate(turn.status(), NameOf(changes.view()));
    planner->shared = shared;
    planner->lock = *std::move(turn);
  }
  absl::StatusOr<Applied> applied = changes.base_revision() == changes.revision()
                                        ? CheckState(shared, changes, deadline)
                                        : Update(shared, changes, deadline);
  // The texts of the core do not name the view.
  if (!applied.ok()) return Annotate(applied.status(), NameOf(changes.view()));
  has_applied = true;
  return applied;
}

// A batch that only names a state changes nothing, and does not wait for one that does.
absl::StatusOr<Applied> Views::CheckState(const std::shared_ptr<SharedView>& shared,
                                          const v1::Changes& changes, const Deadline& deadline) {
  absl::StatusOr<LockedView> view = Lock(changes.view(), shared, deadline);
  if (!view.ok()) return view.status();
  if (NamesPresentState(changes)) {
    view->view().AdvanceTime(changes.time_s());
    return Applied{*std::move(view), 0};
  }
  const absl::StatusOr<DecodedBatch> decoded = DecodeBatch(changes, ResourceNames());
  if (!decoded.ok()) return decoded.status();
  if (absl::Status status = view->view().Apply(decoded->batch); !status.ok()) return status;
  return Applied{*std::move(view), 0};
}

absl::StatusOr<Applied> Views::Update(const std::shared_ptr<SharedView>& shared, const v1::Changes& changes,
                                      const Deadline& deadline) {
  const absl::StatusOr<Turn::Lock> writer = shared->writer.Take(deadline);
  if (!writer.ok()) return writer.status();
  const absl::StatusOr<DecodedBatch> decoded =
      DecodeBatch(changes, shared->Current()->names_for(ChunkOf(changes)), shared->OptionsOfBatch());
  if (!decoded.ok()) return decoded.status();
  absl::StatusOr<LockedView> view = Lock(changes.view(), shared, deadline);
  if (!view.ok()) return view.status();
  const absl::Status status = view->view().Apply(decoded->batch);
  if (!status.ok()) return status;
  shared->bytes = view->view().bytes();
  return Applied{*std::move(view), decoded->batch.clamped_amounts};
}

absl::StatusOr<ReadView> Views::Read(const v1::Changes& changes, const Deadline& deadline) {
  if (absl::Status status = CheckHeader(changes); !status.ok()) return Annotate(status, "changes");
  const std::shared_ptr<SharedView> shared = Find(changes.view());
  if (shared != nullptr && changes.base_revision() == changes.revision() && !changes.has_full_list()) {
    absl::StatusOr<ReadView> view = Share(changes.view(), shared, deadline);
    if (!view.ok()) return Annotate(view.status(), NameOf(changes.view()));
    if (!NamesPresentState(changes)) {
      const absl::StatusOr<DecodedBatch> decoded = DecodeBatch(changes, ResourceNames());
      absl::Status status = decoded.status();
      if (status.ok()) status = view->view().CheckState(decoded->batch);
      if (!status.ok()) return Annotate(status, NameOf(changes.view()));
    }
    if (changes.time_s() <= view->view().time_s()) {
      has_applied = true;
      return view;
    }
  }
  absl::StatusOr<Applied> applied = Apply(changes, deadline);
  if (!applied.ok()) return applied.status();
  return std::move(applied->view).Share();
}

absl::StatusOr<std::unique_ptr<PlannedView>> Views::Plan(const v1::Changes& changes,
                                                         const Deadline& deadline) {
  PlannerTurn planner;
  absl::StatusOr<Applied> applied = Apply(changes, deadline, &planner);
  if (!applied.ok()) return applied.status();
  return std::make_unique<PlannedView>(std::move(planner), std::move(applied->view));
}

absl::StatusOr<ReadView> Views::Read(absl::string_view name, const Deadline& deadline) {
  const std::shared_ptr<SharedView> shared = Find(name);
  if (shared == nullptr) return absl::NotFoundError(absl::StrCat(NameOf(name), " is not known"));
  absl::StatusOr<ReadView> view = Share(name, shared, deadline);
  if (!view.ok()) return Annotate(view.status(), NameOf(name));
  return view;
}

absl::StatusOr<LockedView> Views::Lock(absl::string_view name, const Deadline& deadline) {
  const std::shared_ptr<SharedView> shared = Find(name);
  if (shared == nullptr) return absl::NotFoundError(absl::StrCat(NameOf(name), " is not known"));
  absl::StatusOr<LockedView> view = Lock(name, shared, deadline);
  if (!view.ok()) return Annotate(view.status(), NameOf(name));
  return view;
}

absl::StatusOr<ReadView> Views::Share(absl::string_view name, const std::shared_ptr<SharedView>& shared,
                                      const Deadline& deadline) {
  absl::StatusOr<ReadView> view = ReadView::Wait(shared, deadline);
  if (!view.ok()) return view.status();
  if (absl::Status status = CheckWhole(name, *shared, view->view(), deadline); !status.ok()) return status;
  return view;
}

absl::StatusOr<LockedView> Views::Lock(absl::string_view name, const std::shared_ptr<SharedView>& shared,
                                       const Deadline& deadline) {
  absl::StatusOr<LockedView> view = LockedView::Wait(shared, deadline);
  if (!view.ok()) return view.status();
  if (absl::Status status = CheckWhole(name, *shared, view->view(), deadline); !status.ok()) return status;
  return view;
}

// Checks that a call which has waited for its view may go on.
absl::Status Views::CheckWhole(absl::string_view name, const SharedView& shared, const View& view,
                               const Deadline& deadline) {
  if (view.half_applied()) {
    Forget(name, &shared);
    return absl::FailedPreconditionError("was lost when a check failed; send a full list");
  }
  return deadline.Check();
}

std::shared_ptr<SharedView> Views::Find(absl::string_view name) {
  const MutexLock lock(&mutex_);
  const auto found = views_.find(std::string(name));
  if (found == views_.end()) return nullptr;
  found->second.named = Deadline::Clock::now();
  return found->second.shared;
}

Views::ByName::iterator Views::Silent(Deadline::Clock::time_point now) {
  auto oldest = views_.end();
  for (auto at = views_.begin(); at != views_.end(); ++at) {
    // A call that has the view holds a reference as well.
    if (at->second.shared.use_count() > 1 || now - at->second.named < limits_.silent_view) continue;
    if (oldest == views_.end() || at->second.named < oldest->second.named) oldest = at;
  }
  return oldest;
}

absl::Status Views::CheckRoom(absl::string_view name, const SharedView& shared) const {
  if (views_.size() >= static_cast<size_t>(limits_.views)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(NameOf(name), " would be one more than the limit of ", limits_.views, " views"));
  }
  int64_t bytes = shared.bytes;
  if (bytes == 0) return absl::OkStatus();
  for (const auto& [other, entry] : views_) bytes += entry.shared->bytes;
  const int64_t most = kFullViews * limits_.view.bytes;
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(NameOf(name), " would have all views take ", bytes,
                                                   " bytes; the limit is ", kFullViews,
                                                   " times max_view_bytes, ", most));
}

absl::Status Views::Add(absl::string_view name, std::shared_ptr<SharedView> shared) {
  Silenced silenced;
  absl::Status status = AddLocked(name, std::move(shared), &silenced);
  for (std::shared_ptr<SharedView>& view : silenced) Free(std::move(view));
  return status;
}

absl::Status Views::AddLocked(absl::string_view name, std::shared_ptr<SharedView> shared,
                              Silenced* silenced) {
  const Deadline::Clock::time_point now = Deadline::Clock::now();
  const MutexLock lock(&mutex_);
  absl::Status room = CheckRoom(name, *shared);
  for (; !room.ok(); room = CheckRoom(name, *shared)) {
    const auto silent = Silent(now);
    if (silent == views_.end()) return room;
    silenced->push_back(std::move(silent->second.shared));
    views_.erase(silent);
  }
  if (views_.emplace(std::string(name), Entry{std::move(shared), now}).second) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(NameOf(name), " was created by another call at the same time; send a full list"));
}

absl::Status Views::Drop(absl::string_view name) {
  std::shared_ptr<SharedView> dropped;
  {
    const MutexLock lock(&mutex_);
    const auto found = views_.find(std::string(name));
    if (found == views_.end()) return absl::NotFoundError(absl::StrCat(NameOf(name), " is not known"));
    dropped = std::move(found->second.shared);
    views_.erase(found);
  }
  Free(std::move(dropped));
  return absl::OkStatus();
}

void Views::Forget(absl::string_view name, const SharedView* shared) {
  const MutexLock lock(&mutex_);
  const auto found = views_.find(std::string(name));
  // Another one may have taken its name.
  if (found != views_.end() && found->second.shared.get() == shared) views_.erase(found);
}

std::vector<std::pair<std::string, std::shared_ptr<SharedView>>> Views::All() const {
  std::vector<std::pair<std::string, std::shared_ptr<SharedView>>> all;
  const MutexLock lock(&mutex_);
  for (const auto& [name, entry] : views_) all.emplace_back(name, entry.shared);
  return all;
}

void Views::CheckConsistent() const {
  for (const auto& [name, shared] : All()) {
    const absl::StatusOr<Turn::Lock> planner = shared->planner.Take(Deadline());
    if (!planner.ok()) continue;
    const absl::StatusOr<LockedView> view = LockedView::Wait(shared, Deadline());
    if (view.ok()) (*view)->CheckConsistent();
  }
}

}  // namespace loadline
