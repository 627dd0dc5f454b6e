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
  shared_->Lend(former_);
  locked_.reset();
}

void PlannedView::ShowAsTheyAre() {
  try {
    for (ShownNode& node : former_) view_->ShowNode(node.slot, std::move(node.shape));
  } catch (const CheckFailed&) {  // the view stays half applied, and is dropped
  }
}

PlannedView::~PlannedView() {
  if (locked_.has_value()) {
    ShowAsTheyAre();
    return;
  }
  absl::StatusOr<Turn::Lock> turn = shared_->turn.Take(Deadline());
  while (!turn.ok()) turn = shared_->turn.Take(Deadline());
  if (shared_->EndLoan()) {
    ShowAsTheyAre();
  } else {
    shared_->ForgetCluster();  // it ends with this
  }
}

}  // namespace loadline
