#include "plugin/convert/node_marks.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"

namespace loadline {
namespace {

constexpr char kNodeKind[] = "Node";

// Returns `value`, or `instead` if it is impossible, which is reported for `node`.
int64_t TimeOr(int64_t instead, absl::string_view field, int64_t value, absl::string_view node,
               LeftOutList* left_out) {
  const absl::Status status = CheckRange(field, value, 0, kMaxMarkTimeS);
  if (status.ok()) return value;
  left_out->Add(kNodeKind, "", node, absl::StrCat("the mark of its removal: ", ReasonOf(status)));
  return instead;
}

}  // namespace

std::vector<NodeMark> DecodeMarks(const google::protobuf::RepeatedPtrField<v1::NodeMark>& messages,
                                  const ClusterState& cluster, int64_t now_ms, int64_t patience_ms,
                                  LeftOutList* left_out) {
  std::vector<NodeMark> marks;
  absl::flat_hash_set<int32_t> slots;
  for (int i = 0; i < messages.size(); ++i) {
    const v1::NodeMark& message = messages[i];
    if (message.slot() < 0 || !cluster.Occupied(Slot{message.slot()})) {
      left_out->Add(kNodeKind, "", absl::StrCat("marks[", i, "]"),
                    absl::StrCat("slot: there is no node in ", message.slot()));
      continue;
    }
    const absl::string_view name = cluster.name(Slot{message.slot()});
    if (!slots.insert(message.slot()).second) {
      left_out->Add(kNodeKind, "", name, absl::StrCat("marks[", i, "]: the node has a mark already"));
      continue;
    }
    NodeMark& mark = marks.emplace_back();
    mark.slot = Slot{message.slot()};
    mark.since_s = TimeOr(now_ms / 1000, "since_s", message.since_s(), name, left_out);
    const int64_t long_ago_s = std::max<int64_t>(1, (now_ms - patience_ms) / 1000);
    mark.deleting_s = TimeOr(long_ago_s, "deleting_s", message.deleting_s(), name, left_out);
    mark.cordoned = message.cordoned();
    mark.acknowledged = message.acknowledged();
  }
  return marks;
}

}  // namespace loadline
