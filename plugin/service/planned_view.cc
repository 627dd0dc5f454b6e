#include "plugin/service/planned_view.h"

#include "core/base/check.h"

namespace loadline {

void PlannedView::Show(std::vector<ShownNode> nodes) {
  for (ShownNode& node : nodes) {
    former_.push_back({node.slot, view_->cluster().node_shape(node.slot)});
    view_->ShowNode(node.slot, std::move(node.shape));
  }
}

void PlannedView::Lend() {
  LOADLINE_CHECK(locked_.has_value()) << "the view is lent already";
  shared().Lend(former_);
  locked_.reset();
}

void PlannedView::ShowAsTheyAre() {
  for (ShownNode& node : former_) view_->ShowNode(node.slot, std::move(node.shape));
}

bool PlannedView::TakeBack() {
  absl::StatusOr<Turn::Lock> turn = shared().turn.Take(Deadline());
  while (!turn.ok()) turn = shared().turn.Take(Deadline());
  if (!shared().EndLoan()) return false;
  ShowAsTheyAre();
  return true;
}

PlannedView::~PlannedView() {
  try {
    if (locked_.has_value()) {
      ShowAsTheyAre();
    } else if (TakeBack()) {
      shared().DropLargeTables();
    } else {
      shared().ForgetCluster();  // it ends with this
    }
  } catch (const CheckFailed&) {  // a view that stays half applied is dropped
  }
}

}  // namespace loadline
