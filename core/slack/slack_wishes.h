// For which pods room is kept: those that ask for it by annotations, and the biggest ones.
#ifndef LOADLINE_CORE_SLACK_SLACK_WISHES_H_
#define LOADLINE_CORE_SLACK_SLACK_WISHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/cluster/cluster_state.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// A pod of which copies are kept free: one for each template that workloads have, and for each owner that is
// not known.
struct MirroredPod {
  // Made from what the template says, or from who the owner is: the same in every view, whatever labels
  // selectors ask for, and for all Jobs of a CronJob.
  std::string key;
  PodShape shape;  // takes no ports of the node
  CpuMemory size;
  int64_t copies = 0;                // of all sources together; saturates at 2^31
  std::vector<std::string> sources;  // "Deployment shop/web", in order; the first kMostSources
};

// The most sources of one pod that are reported.
inline constexpr size_t kMostSources = 16;
// Pods of which copies are kept; others are named as errors.
inline constexpr size_t kMostMirrored = 1'000;
// The most errors that are reported; WishErrors beyond them are counted.
inline constexpr size_t kMostWishErrors = 256;

// Copies are kept for pods of a namespace on which an administrator put this label: they cost nodes, and who
// may write a pod is not who pays for them.
inline constexpr char kCopiesLabel[] = "loadline.dev/slack-copies";
inline constexpr char kCopiesAllowed[] = "allowed";
// A Deployment represents a CapacityBuffer if its name begins so, which no name of an API server does.
// The rights of the cluster say who may create CapacityBuffers, so that these need no label. Any other value
// of it than kCopiesAllowed forbids their copies as well.
inline constexpr char kBufferPrefix[] = "capacitybuffer:";

// An annotation, or a workload, that cannot be made sense of; it counts for nothing.
struct WishError {
  std::string source;
  std::string text;
  friend bool operator==(const WishError&, const WishError&) = default;
};

// All requests for copies, and those that cannot be met.
struct SlackWishes {
  std::vector<MirroredPod> pods;  // by key
  std::vector<WishError> errors;  // by source, the first kMostWishErrors
  int64_t errors_total = 0;
};

// Reads the annotations of workloads, also of Deployments without replicas, and of pods. A workload that says
// something speaks for its pods, and a Deployment for its ReplicaSets. Of other ReplicaSets, and of the Jobs
// of one CronJob, the newest speaks, and a ReplicaSet that is to have no pods does not. Of an owner that is
// not known or says nothing the pods count once, and as many copies as one of them says at most. Namespaces
// without kCopiesLabel have none but those of CapacityBuffers.
// Cost: O(workloads + pods on nodes with such pods).
SlackWishes CollectWishes(const ClusterState& cluster, const SlackRooms& rooms);

// Returns whether room for a pod of this size is kept by itself when it is one of the biggest: not if it
// opted out, belongs to its node, is of a StatefulSet or bound to a volume claim, is critical to the system,
// or is the only one of its owner.
bool IsEligible(const SlackPod& pod, const SlackRooms& rooms, const ClusterObjects& objects);

// The sizes of the eligible pods of a class, each once. Cost: O(shapes of its pods).
std::vector<CpuMemory> EligibleSizes(const SlackClass& of, const SlackRooms& rooms,
                                     const ClusterObjects& objects);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_WISHES_H_
