// One turn of a view's slack planner.
#ifndef LOADLINE_PLUGIN_SERVICE_SLACK_TURN_H_
#define LOADLINE_PLUGIN_SERVICE_SLACK_TURN_H_

#include "core/slack/slack_planner.h"
#include "plugin/service/views.h"

namespace loadline {

// Forgets what a plan left half done when an error or exception ends it; what the last plan left is kept.
class SlackTurn {
 public:
  explicit SlackTurn(SharedView* shared) : shared_(*shared), before_(shared->slack.State()) {}
  SlackTurn(const SlackTurn&) = delete;
  SlackTurn& operator=(const SlackTurn&) = delete;
  ~SlackTurn() {
    if (complete_) return;
    shared_.snapshot.Drop();
    shared_.slack = SlackPlanner();
    shared_.slack.Restore(before_);
  }
  void Complete() { complete_ = true; }

 private:
  SharedView& shared_;
  const SlackState before_;
  bool complete_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SLACK_TURN_H_
