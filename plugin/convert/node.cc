#include "plugin/convert/node.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"

namespace loadline {

absl::StatusOr<DecodedNode> NodeDecoder::Decode(absl::string_view bytes) {
  if (bytes.size() > kMaxObjectBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes, at most ", kMaxObjectBytes, " are allowed"));
  }
  if (absl::Status status = Parse(bytes, "k8s.io.api.core.v1.Node", &message_); !status.ok()) return status;
  const std::string& name = message_.metadata().name();
  if (name.empty()) return absl::InvalidArgumentError("has an empty metadata.name");
  if (absl::Status status = CheckName(name); !status.ok()) return Annotate(status, "metadata.name");
  const k8s::v1::NodeStatus& node_status = message_.status();
  const bool has_allocatable = !node_status.allocatable().empty();
  ResourceList offered;
  absl::Status status = has_allocatable
                            ? resources_->Read(node_status.allocatable(), "status.allocatable", &offered)
                            : resources_->Read(node_status.capacity(), "status.capacity", &offered);
  if (!status.ok()) return Annotate(status, absl::StrCat("(", Quoted(name), ")"));
  Labels labels = ReadLabels(message_.metadata().labels());
  std::optional<std::string> hostname = labels.Take(kHostnameLabel);
  std::vector<Taint> taints;
  for (const k8s::v1::Taint& taint : message_.spec().taints()) {
    taints.push_back({taint.key(), taint.value(), taint.effect()});
  }
  return DecodedNode{name,
                     MakeNodeShape(ToAmounts(offered), resources_->names(), std::move(labels),
                                   std::move(taints), message_.spec().unschedulable()),
                     std::move(hostname), ReadNodeTraits(message_)};
}

}  // namespace loadline
