// The cluster that a question is about.
#ifndef LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_
#define LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/view.h"
#include "plugin/service/deadline.h"
#include "plugin/service/planned_view.h"
#include "plugin/service/views.h"

namespace loadline {

// Applies the changes that a question carries which only reads; a full list must be complete.
absl::StatusOr<ReadView> ReadChanges(const v1::Changes& changes, const Deadline& deadline, Views* views);

// The cluster of a question that plans: a view, or one that came with the question.
class QuestionCluster {
 public:
  // `question` has either `changes` or `own`; see ScaleUpProblem.
  // Errors: kInvalidArgument  it has neither, or names the field; those of ApplyChanges()
  template <typename Question>
  static absl::StatusOr<QuestionCluster> Of(const Question& question, const Deadline& deadline,
                                            Views* views) {
    if (question.has_changes()) return OfView(question.changes(), deadline, views);
    if (question.has_own()) return Own(question.own(), views);
    return absl::InvalidArgumentError("has neither changes nor a cluster of its own");
  }

  // The same of a view alone. Errors: those of Views::Plan(); a full list must be complete
  static absl::StatusOr<QuestionCluster> OfView(const v1::Changes& changes, const Deadline& deadline,
                                                Views* views);

  // The data that are kept for the next question about it.
  SharedView& shared() { return own_ != nullptr ? *own_ : planned_->shared(); }
  // Nobody changes it after Lend().
  View& view() { return own_ != nullptr ? *own_->Current() : planned_->view(); }

  // Shows nodes otherwise than they are, as long as this lives. To be called once, before Lend().
  void Show(std::vector<ShownNode> nodes);
  // Lets others read and change the cluster, which stays for this question as it is now. To be called once,
  // as soon as the question is decoded.
  void Lend();

 private:
  static absl::StatusOr<QuestionCluster> Own(const v1::Changes& own, Views* views);

  std::unique_ptr<PlannedView> planned_;
  std::unique_ptr<SharedView> own_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_
