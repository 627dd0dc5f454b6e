#include "plugin/service/question_cluster.h"

#include <utility>

#include "plugin/convert/changes.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

absl::Status ReadOwnCluster(const v1::Changes& changes, SharedView* shared) {
  if (!changes.view().empty() || changes.epoch() != 0 || changes.revision() != 0 ||
      changes.base_revision() != 0 || changes.has_full_list() || changes.removed_slots_size() > 0 ||
      changes.removed_objects_size() > 0) {
    return absl::InvalidArgumentError("states a view, epoch, revision, chunk or something removed");
  }
  absl::StatusOr<DecodedBatch> decoded = DecodeBatch(changes, ResourceNames(), shared->OptionsOfBatch());
  if (!decoded.ok()) return decoded.status();
  Batch& batch = decoded->batch;
  batch.epoch = batch.revision = 1;
  batch.full_list = FullListChunk{0, true};
  return shared->Current()->Apply(batch);
}

absl::Status CheckComplete(const v1::Changes& changes) {
  const v1::FullListChunk& chunk = changes.full_list();
  if (!changes.has_full_list() || (chunk.index() == 0 && chunk.last())) return absl::OkStatus();
  return absl::InvalidArgumentError("changes: the full list of a question must be complete");
}

}  // namespace

absl::StatusOr<ReadView> ReadChanges(const v1::Changes& changes, const Deadline& deadline, Views* views) {
  if (absl::Status status = CheckComplete(changes); !status.ok()) return status;
  return views->Read(changes, deadline);
}

absl::StatusOr<QuestionCluster> QuestionCluster::OfView(const v1::Changes& changes, const Deadline& deadline,
                                                        Views* views) {
  if (absl::Status status = CheckComplete(changes); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<PlannedView>> planned = views->Plan(changes, deadline);
  if (!planned.ok()) return planned.status();
  QuestionCluster cluster;
  cluster.planned_ = *std::move(planned);
  return cluster;
}

void QuestionCluster::Show(std::vector<ShownNode> nodes) {
  if (planned_ != nullptr) {
    planned_->Show(std::move(nodes));
    return;
  }
  for (ShownNode& node : nodes) view().ShowNode(node.slot, std::move(node.shape));
}

void QuestionCluster::Lend() {
  if (planned_ != nullptr) planned_->Lend();
}

absl::StatusOr<QuestionCluster> QuestionCluster::Own(const v1::Changes& own, Views* views) {
  QuestionCluster cluster;
  cluster.own_ = std::make_unique<SharedView>(views->limits());
  if (absl::Status status = ReadOwnCluster(own, cluster.own_.get()); !status.ok())
    return Annotate(status, "own");
  return cluster;
}

}  // namespace loadline
