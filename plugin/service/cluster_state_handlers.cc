#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/pod_traits.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/convert/api_descriptors.h"
#include "plugin/convert/changes.h"
#include "plugin/convert/describe.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/slots.h"
#include "plugin/convert/startup_taints.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"
#include "plugin/service/handlers.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// The most bytes of nodes in one answer, so that all of it stays below 4 MiB.
constexpr size_t kMaxPageBytes = size_t{3} << 20;

// Pods of one question that are judged by their annotations.
constexpr int kMaxJudgedPods = 100'000;

absl::Status CheckDescribe(const v1::DescribeRequest& request) {
  absl::Status status = CheckNotNegative("first_slot", request.first_slot());
  status.Update(CheckNotNegative("now_s", request.now_s()));
  status.Update(CheckSize("pods", request.pods_size(), kMaxJudgedPods));
  if (!status.ok()) return status;
  if (request.first_slot() > 0 && !request.slots().empty()) {
    return absl::InvalidArgumentError("first_slot: is allowed with empty slots only");
  }
  if (!request.view().empty()) return CheckViewName(request.view());
  if (request.slots().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("slots: require the name of a view");
}

// Tells which of the pods in a question their annotations protect.
absl::Status JudgePods(const v1::DescribeRequest& request, v1::DescribeResponse* response) {
  k8s::v1::Pod pod;
  for (int i = 0; i < request.pods_size(); ++i) {
    absl::Status status = CheckObjectSize(request.pods(i));
    if (status.ok()) status = ParseObject(request.pods(i), "k8s.io.api.core.v1.Pod", &pod);
    if (!status.ok()) return Annotate(status, absl::StrCat("pods[", i, "]"));
    const PodTraits traits = ReadPodTraits(pod);
    response->add_protected_pods(traits.safe_to_evict == SafeToEvict::kNo ||
                                 IsDisruptionForbidden(traits, request.now_s()));
  }
  return absl::OkStatus();
}

// Adds nodes to an answer until it is full.
class NodePage {
 public:
  NodePage(const ClusterState& cluster, bool include_pods, StartupTaints startup_taints,
           v1::DescribeResponse* response)
      : cluster_(cluster),
        include_pods_(include_pods),
        startup_taints_(std::move(startup_taints)),
        response_(response) {}

  // False when the node does not fit any more. kResourceExhausted when it never would.
  absl::StatusOr<bool> Add(Slot slot) {
    std::optional<v1::NodeState> node = EncodeNode(cluster_, slot, include_pods_, kMaxPageBytes);
    if (!node.has_value()) {
      return absl::ResourceExhaustedError(absl::StrCat("node ", Quoted(cluster_.name(slot)), " (slot ",
                                                       static_cast<int32_t>(slot), ") and its pods outgrow ",
                                                       kMaxPageBytes, " bytes; ask without include_pods"));
    }
    AddStartupTaints(slot, &*node);
    const size_t bytes = node->ByteSizeLong() + kEntryOverhead;
    if (bytes_ > 0 && bytes_ + bytes > kMaxPageBytes) return false;
    bytes_ += bytes;
    *response_->add_nodes() = *std::move(node);
    return true;
  }

 private:
  void AddStartupTaints(Slot slot, v1::NodeState* node) const {
    if (!IsReady(cluster_, slot)) return;
    for (const Taint& taint : cluster_.node_shape(slot).taints) {
      if (KindOfTaint(taint, startup_taints_) == TaintKind::kStartup)
        node->add_startup_taints(Printable(taint.key));
    }
  }

  const ClusterState& cluster_;
  bool include_pods_;
  StartupTaints startup_taints_;
  v1::DescribeResponse* response_;
  size_t bytes_ = 0;
};

absl::Status DescribeSlots(const std::vector<Slot>& slots, const ClusterState& cluster, NodePage* page) {
  for (const Slot slot : slots) {
    if (!cluster.Occupied(slot)) continue;
    const absl::StatusOr<bool> added = page->Add(slot);
    if (!added.ok()) return added.status();
    if (!*added) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "slots: the answer for ", slots.size(), " slots outgrows ", kMaxPageBytes, " bytes; name fewer"));
    }
  }
  return absl::OkStatus();
}

absl::Status DescribeFrom(int32_t first_slot, const ClusterState& cluster, NodePage* page,
                          v1::DescribeResponse* response) {
  for (int32_t slot = first_slot; slot < cluster.slot_end(); ++slot) {
    if (!cluster.Occupied(Slot{slot})) continue;
    const absl::StatusOr<bool> added = page->Add(Slot{slot});
    if (!added.ok()) return added.status();
    if (!*added) {
      response->set_next_slot(slot);  // not 0: the page has a node before it
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::SyncResponse> AnswerSync(const v1::SyncRequest& request, const Deadline& deadline,
                                            Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: required");
  const absl::StatusOr<Applied> applied = views->Apply(request.changes(), deadline);
  if (!applied.ok()) return applied.status();
  v1::SyncResponse response;
  response.set_epoch(applied->view.view().revision().epoch);
  response.set_revision(applied->view.view().revision().revision);
  response.set_clamped_amounts(applied->clamped_amounts);
  TellLeftOut(applied->view->LeftOut(applied->view.view()), &response);
  return response;
}

absl::StatusOr<v1::DescribeResponse> AnswerDescribe(const v1::DescribeRequest& request,
                                                    const Deadline& deadline, Views* views) {
  if (absl::Status status = CheckDescribe(request); !status.ok()) return status;
  v1::DescribeResponse response;
  response.set_engine_version(LOADLINE_VERSION);
  response.set_failed_checks(views->failed_checks());
  for (const absl::string_view name : GpuResources()) response.add_gpu_resources(std::string(name));
  if (request.include_api()) response.set_api(std::string(ApiDescriptors()));
  if (absl::Status status = JudgePods(request, &response); !status.ok()) return status;
  if ((request.include_api() || request.pods_size() > 0) && request.view().empty()) return response;
  if (request.view().empty()) {
    for (const auto& [name, shared] : views->All()) {
      const absl::StatusOr<ReadView> view = ReadView::Wait(shared, deadline);
      if (!view.ok()) return Annotate(view.status(), absl::StrCat("view ", Quoted(name)));
      if (absl::Status status = deadline.Check(); !status.ok()) return status;
      *response.add_views() = EncodeView(name, view->view());
    }
    return response;
  }
  const absl::StatusOr<std::vector<Slot>> slots =
      DecodeDescribed(request.slots(), views->limits().view.nodes);
  if (!slots.ok()) return slots.status();
  absl::StatusOr<StartupTaints> startup_taints = DecodeStartupTaints(request.startup_taints());
  if (!startup_taints.ok()) return startup_taints.status();
  const absl::StatusOr<ReadView> view = views->Read(request.view(), deadline);
  if (!view.ok()) return view.status();
  *response.add_views() = EncodeView(request.view(), view->view());
  const ClusterState& cluster = view->view().cluster();
  NodePage page(cluster, request.include_pods(), *std::move(startup_taints), &response);
  const absl::Status status = slots->empty() ? DescribeFrom(request.first_slot(), cluster, &page, &response)
                                             : DescribeSlots(*slots, cluster, &page);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::DropResponse> AnswerDrop(const v1::DropRequest& request, const Deadline&, Views* views) {
  if (absl::Status status = CheckViewName(request.view()); !status.ok()) return status;
  if (absl::Status status = views->Drop(request.view()); !status.ok()) return status;
  return v1::DropResponse();
}

}  // namespace loadline
