// Undoes what a question changes of the data that a view keeps.
#ifndef LOADLINE_PLUGIN_SERVICE_UNDO_H_
#define LOADLINE_PLUGIN_SERVICE_UNDO_H_

#include <optional>

#include "core/cluster/snapshot.h"
#include "core/drain/planner.h"
#include "core/slack/slack_planner.h"
#include "plugin/service/shared_view.h"

namespace loadline {

// Lends the snapshot and the planners of a view to one question. If it is destroyed before Keep(), because of
// an error or an exception, they may be left half done, and it restores them: the snapshot is dropped, to be
// built anew, and a planner starts again from the state that its last answer left. `shared` outlives it, and
// nobody else has its `planner` meanwhile.
class UndoUnlessKept {
 public:
  // `view` is that of `shared` which the question reads.
  UndoUnlessKept(SharedView* shared, View* view) : shared_(*shared), view_(*view) {}
  UndoUnlessKept(const UndoUnlessKept&) = delete;
  UndoUnlessKept& operator=(const UndoUnlessKept&) = delete;
  ~UndoUnlessKept();

  SharedView& shared() { return shared_; }
  View& view() { return view_; }

  // The snapshot at the state that the view had at the first call.
  Snapshot* snapshot();
  SlackPlanner* slack();
  // Without DrainTurn::Keep() the next question sets the state of this one anew.
  DrainPlanner* drain();

  // Takes back what was tried on the snapshot, and keeps the rest.
  void Keep();

 private:
  SharedView& shared_;
  View& view_;
  Snapshot* snapshot_ = nullptr;
  std::optional<SlackState> slack_before_;
  bool kept_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_UNDO_H_
