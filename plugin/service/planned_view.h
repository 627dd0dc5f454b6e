// The view of a question that plans.
#ifndef LOADLINE_PLUGIN_SERVICE_PLANNED_VIEW_H_
#define LOADLINE_PLUGIN_SERVICE_PLANNED_VIEW_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/cluster/view.h"
#include "plugin/service/shared_view.h"

namespace loadline {

// A view that a plan has to itself until Lend(), and that stays as it is from then on, while others read and
// change the cluster. Plans of one view come one after the other.
class PlannedView {
 public:
  // `planner`: the turn of plans, of the view that is locked.
  PlannedView(PlannerTurn planner, LockedView locked)
      : planner_(std::move(planner)), view_(planner_.shared->Current()), locked_(std::move(locked)) {}
  PlannedView(const PlannedView&) = delete;
  PlannedView& operator=(const PlannedView&) = delete;
  // Waits for those who read the view, if it was lent.
  ~PlannedView();

  SharedView& shared() { return *planner_.shared; }
  // Nobody changes it after Lend().
  View& view() { return *view_; }

  // Shows nodes to this plan otherwise than they are. To be called once, before Lend().
  void Show(std::vector<ShownNode> nodes);
  // Lets others go on. To be called once.
  void Lend();

 private:
  // Returns whether the view is still the one that was lent; then the nodes of it are shown as they are.
  bool TakeBack();
  void ShowAsTheyAre();

  PlannerTurn planner_;  // before all else, which it outlives
  std::shared_ptr<View> view_;
  std::optional<LockedView> locked_;
  std::vector<ShownNode> former_;  // the nodes that are shown otherwise, as they are
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_PLANNED_VIEW_H_
