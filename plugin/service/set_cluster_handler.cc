#include <memory>
#include <utility>

#include "loadline/v1/set_cluster.pb.h"
#include "plugin/convert/changes.h"
#include "plugin/convert/given_cluster.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/text.h"
#include "plugin/service/cluster_books.h"
#include "plugin/service/handlers.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// Another call may change the view between the look at it and the batch: then all is worked out anew.
constexpr int kMostTries = 3;

// A batch that makes a view what a cluster is.
struct SettingBatch {
  std::shared_ptr<SharedView> shared;  // the view that was there; before the turn, which it outlives
  Turn::Lock setter;                   // nobody else sets it until the batch is applied
  v1::Changes changes;
  ClusterBooks books;  // of the view after the batch
  ClusterBooks::Changed changed;
};

absl::Status Prepare(const v1::SetClusterRequest& request, const GivenCluster& cluster,
                     const Deadline& deadline, Views* views, SettingBatch* batch) {
  v1::Changes& changes = batch->changes;
  changes.set_view(request.view());
  changes.set_time_s(request.time_s());
  changes.set_kubernetes_minor(request.kubernetes_minor());
  Revision now;
  batch->shared = views->Find(request.view());
  if (batch->shared != nullptr) {
    absl::StatusOr<Turn::Lock> setter = batch->shared->setter.Take(deadline);
    if (!setter.ok()) return setter.status();
    batch->setter = *std::move(setter);
    const absl::StatusOr<LockedView> view = LockedView::Wait(batch->shared, deadline);
    if (!view.ok()) return view.status();
    now = view->view().revision();
    if ((*view)->books.CanGoOn(now, request)) batch->books = (*view)->books;
  }
  if (batch->books.CanGoOn(now, request)) {
    changes.set_epoch(now.epoch);
    changes.set_base_revision(now.revision);
    changes.set_revision(now.revision + 1);
  } else {
    changes.set_epoch(now.epoch + 1);
    changes.set_revision(1);
    changes.mutable_full_list()->set_last(true);
  }
  batch->changed = batch->books.Set(request, cluster, &changes);
  return absl::OkStatus();
}

void Encode(const GivenCluster& cluster, const ClusterBooks::Changed& changed, const Applied& applied,
            v1::SetClusterResponse* response) {
  const Revision revision = applied.view.view().revision();
  response->set_epoch(revision.epoch);
  response->set_revision(revision.revision);
  response->mutable_slots()->Add(changed.slots.begin(), changed.slots.end());
  response->set_changed_nodes(changed.nodes);
  response->set_changed_objects(changed.objects);
  response->set_removed(changed.removed);
  response->set_pods_without_node(cluster.pods_without_node);
  response->set_pods_of_unknown_nodes(cluster.pods_of_unknown_nodes);
  response->set_clamped_amounts(applied.clamped_amounts);
  TellLeftOut(applied.view->LeftOut(applied.view.view()), response);
}

}  // namespace

absl::StatusOr<v1::SetClusterResponse> AnswerSetCluster(const v1::SetClusterRequest& request,
                                                        const Deadline& deadline, Views* views) {
  if (absl::Status status = CheckViewName(request.view()); !status.ok()) return status;
  if (!request.last()) return absl::InvalidArgumentError("last: is not set: the call broke off");
  const absl::StatusOr<GivenCluster> cluster = ReadGivenCluster(request);
  if (!cluster.ok()) return cluster.status();
  for (int tries = 1;; ++tries) {
    SettingBatch batch;
    if (absl::Status status = Prepare(request, *cluster, deadline, views, &batch); !status.ok()) {
      return status;
    }
    absl::StatusOr<Applied> applied = views->Apply(batch.changes, deadline);
    if (absl::IsFailedPrecondition(applied.status()) && tries < kMostTries) continue;
    if (!applied.ok()) return applied.status();
    applied->view->books = std::move(batch.books);
    v1::SetClusterResponse response;
    Encode(*cluster, batch.changed, *applied, &response);
    return response;
  }
}

}  // namespace loadline
