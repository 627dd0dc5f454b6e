// The cluster that a question is about.
#ifndef LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_
#define LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// Applies the changes that a question carries, as Sync would; a full list must be complete.
absl::StatusOr<LockedView> ApplyChanges(const v1::Changes& changes, const Deadline& deadline, Views* views);

// The same, for a question that only reads.
absl::StatusOr<ReadView> ReadChanges(const v1::Changes& changes, const Deadline& deadline, Views* views);

// A view that this thread has to itself, or a cluster that came with the question.
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

  SharedView& shared() { return own_ != nullptr ? *own_ : *locked_->operator->(); }

 private:
  static absl::StatusOr<QuestionCluster> OfView(const v1::Changes& changes, const Deadline& deadline,
                                                Views* views);
  static absl::StatusOr<QuestionCluster> Own(const v1::Changes& own, Views* views);

  std::optional<LockedView> locked_;
  std::unique_ptr<SharedView> own_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_QUESTION_CLUSTER_H_
