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

// A pod of which copies are kept free. One for each shape.
struct MirroredPod {
  std::string key;  // of its shape: the same in every view
  PodShape shape;
  CpuMemory size;
  int64_t copies = 0;                // of all sources together; saturates at 2^31
  std::vector<std::string> sources;  // "Deployment shop/web", in order
};

// An annotation, or a workload, that cannot be made sense of; it counts for nothing.
struct WishError {
  std::string source;
  std::string text;
  friend bool operator==(const WishError&, const WishError&) = default;
};

struct SlackWishes {
  std::vector<MirroredPod> pods;  // by key
  std::vector<WishError> errors;  // by source
};

// Reads the annotations of workloads, also of those without replicas, and of pods that no known workload
// owns. A workload speaks for its pods, and a Deployment for its ReplicaSets; of an owner that is not known
// the pods count once, and as many copies as one of them says at most.
// Cost: O(workloads + pods on nodes with such pods).
SlackWishes CollectWishes(const ClusterState& cluster, const SlackRooms& rooms);

// Keys of pod labels that selectors of such workloads refer to.
LabelKeys SlackLabelKeys(const ClusterObjects& objects);

// Whether room for a pod of this size is to be kept by itself when it is one of the biggest: not where it
// opted out, comes with its node, is of a StatefulSet or bound to a volume claim, is critical to the system,
// or is the only one of its owner.
bool IsEligible(const SlackPod& pod, const SlackRooms& rooms, const ClusterObjects& objects);

// The sizes of the eligible pods of a class, each once. Cost: O(shapes of its pods).
std::vector<CpuMemory> EligibleSizes(const SlackClass& of, const SlackRooms& rooms,
                                     const ClusterObjects& objects);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_WISHES_H_
