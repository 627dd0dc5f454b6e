// Changes of a client to a batch for its view.
#ifndef LOADLINE_PLUGIN_CONVERT_CHANGES_H_
#define LOADLINE_PLUGIN_CONVERT_CHANGES_H_

#include <deque>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/view.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// kInvalidArgument unless `name` is 1 to 63 characters of [a-z0-9/-].
absl::Status CheckViewName(absl::string_view name);

// The part of a full list that `changes` is, if any.
std::optional<FullListChunk> ChunkOf(const v1::Changes& changes);

// Returns whether `changes` names the state that the view is in, whichever that is.
bool NamesPresentState(const v1::Changes& changes);

// Checks all of `changes` but its content: the view's name, epoch, revisions and the index of a full list.
// Errors: kInvalidArgument  names the field
absl::Status CheckHeader(const v1::Changes& changes);

// A batch with the text that it refers to and that is not part of the message.
struct DecodedBatch {
  Batch batch;
  std::deque<std::string> names;  // never moves what it holds
};

// Decodes `changes`, whose header is in order and which outlives the result. `names` are those that the view
// has for it, View::names_for().
// If a pod, node or object cannot be taken in full, the rest of it is taken, and View::LeftOut() names it.
// Errors: kInvalidArgument  what the client itself did wrong: a shape or object that occurs twice, a
//                           node or object without a name
absl::StatusOr<DecodedBatch> DecodeBatch(const v1::Changes& changes, ResourceNames names,
                                         const ReadOptions& options = {});

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_CHANGES_H_
