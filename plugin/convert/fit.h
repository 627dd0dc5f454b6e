// Questions of Fit: message to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_FIT_H_
#define LOADLINE_PLUGIN_CONVERT_FIT_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/left_out.h"
#include "core/cluster/snapshot.h"
#include "core/cluster/view.h"
#include "core/fit/node_filter.h"
#include "core/fit/verdict.h"
#include "loadline/v1/fit.pb.h"
#include "plugin/convert/fit_options.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Pods of one question, and moves.
inline constexpr int kMaxIncomingPods = 1'000;
inline constexpr int kMaxMoves = 100'000;

// A pod of a question as it was sent: its labels are not selected yet.
struct DecodedPod {
  IncomingPod pod;
  Labels labels;
  std::string scheduler = {};   // that it names; empty: the default one
  std::string unreadable = {};  // why the pod cannot be judged; empty: it can be
};
// With `decoder`, which tells more of the pod until it decodes the next one.
absl::StatusOr<DecodedPod> DecodeIncomingPod(const v1::IncomingPod& message, const v1::FitOptions& options,
                                             PodDecoder* decoder);

// A move with its objects decoded.
struct DecodedMove {
  const v1::Move* message;
  PodShape pod;  // place_pod with a pod: the shape without labels
  Labels labels;
  std::string name;
  std::string uid;
  NewNode node;  // add_node
};
absl::StatusOr<std::vector<DecodedMove>> DecodeMoves(const v1::FitRequest& request,
                                                     ResourceReader* resources);

// Keys of labels that the selectors of a pod refer to. `pod` outlives the result.
SelectorKeys SelectorKeysOf(const IncomingPod& pod);

// Makes the view tell pods apart by what the selectors of a question refer to. Pods for whose selectors there
// is no room cannot be judged; those that moves bring are taken without them.
void SelectLabels(View* view, std::vector<DecodedPod>* pods, std::vector<DecodedMove>* moves,
                  LeftOutList* left_out);

// Makes the moves on a snapshot of the view.
// Errors: kInvalidArgument  names the move: a slot that holds no node or one already, a pod or shape that
//                           is not there, Commit or Revert without Fork
absl::Status ApplyMoves(const std::vector<DecodedMove>& moves, const View& view, Snapshot* snapshot);

// Candidates after the moves: those asked for, or all nodes that pods may go to, in slot order.
// Errors: kInvalidArgument  names the position and the slot
absl::StatusOr<std::vector<NodeIndex>> DecodeFitCandidates(const v1::FitRequest& request,
                                                           const Snapshot& snapshot);

// A verdict without the slots that it holds for. Reasons are made printable.
v1::VerdictGroup EncodeVerdict(const Verdict& verdict);

// Groups the verdicts about one pod as they come, so that of equal ones each is kept once.
class PodFitGroups {
 public:
  // `snapshot` outlives the object.
  explicit PodFitGroups(const Snapshot* snapshot) : snapshot_(*snapshot) {}

  void Add(const Verdict& verdict, NodeIndex candidate);
  // About the size of the message.
  size_t bytes() const { return bytes_; }
  v1::PodFit Take() && { return std::move(message_); }

 private:
  using Key = std::tuple<Judgement, FilterName, StatusClass, std::vector<std::string>>;

  const Snapshot& snapshot_;
  std::map<Key, int> groups_;  // where they are in the message
  v1::PodFit message_;
  size_t bytes_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_FIT_H_
