#include "core/drain/brakes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/texts.h"
#include "core/drain/eligibility.h"

namespace loadline {
namespace {

absl::string_view PluralOf(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kNamespace:
      return "namespaces";
    case ObjectKind::kPersistentVolume:
      return "persistent volumes";
    case ObjectKind::kPersistentVolumeClaim:
      return "persistent volume claims";
    case ObjectKind::kStorageClass:
      return "storage classes";
    case ObjectKind::kCsiNode:
      return "CSI nodes";
    case ObjectKind::kDisruptionBudget:
      return "pod disruption budgets";
    case ObjectKind::kReplicationController:
      return "replication controllers";
    case ObjectKind::kReplicaSet:
      return "replica sets";
    case ObjectKind::kStatefulSet:
      return "stateful sets";
    case ObjectKind::kDaemonSet:
      return "daemon sets";
    case ObjectKind::kJob:
      return "jobs";
    case ObjectKind::kDeployment:
      return "deployments";
    case ObjectKind::kCsiDriver:
      return "CSI drivers";
    case ObjectKind::kDeviceClass:
      return "device classes";
    case ObjectKind::kWorkloadUsage:
      return "profiles of expected use";
  }
  return "objects";
}

}  // namespace

std::string WhatIsNotKnown(const ClusterObjects& objects, const BrakeOptions& options, int64_t seen_s,
                           int64_t now_s) {
  for (const ObjectKind kind : options.needed) {
    if (!objects.complete(kind)) {
      return absl::StrCat("the view does not hold all ", PluralOf(kind), " for sure");
    }
  }
  if (now_s - seen_s > options.max_view_age_s) {
    return absl::StrCat("the cluster was last seen ", DurationText((now_s - seen_s) * 1000),
                        " ago, more than ", DurationText(options.max_view_age_s * 1000));
  }
  return "";
}

std::string WhatIsUnhealthy(const ClusterState& state, const BrakeOptions& options) {
  int64_t unready = 0;
  for (int32_t i = 0; i < state.slot_end(); ++i) {
    if (state.Occupied(Slot{i}) && !IsReady(state, Slot{i})) ++unready;
  }
  if (unready <= options.ok_total_unready_count ||
      unready * 100 <= state.node_count() * options.max_total_unready_percentage) {
    return "";
  }
  return absl::StrCat(unready, " of ", state.node_count(), state.node_count() == 1 ? " node" : " nodes",
                      unready == 1 ? " is not ready" : " are not ready");
}

}  // namespace loadline
