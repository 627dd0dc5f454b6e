#include "plugin/convert/node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/text.h"

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
  return DecodedNode{name, MakeNodeShape(ToAmounts(offered), resources_->names())};
}

}  // namespace loadline
