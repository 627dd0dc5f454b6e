// The cluster that everybody shares, and the questions about it.
#ifndef LOADLINE_TEST_HOSTILE_SHARED_CLUSTER_H_
#define LOADLINE_TEST_HOSTILE_SHARED_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "loadline/v1/slack.pb.h"
#include "test/hostile/mischief.h"

namespace loadline {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr int32_t kSharedNodes = 1'000;
inline constexpr int kPodsPerSharedNode = 20;
inline constexpr int kInnocents = 50;  // entries of one pod each, the first of every question
// The time that a question may take; sanitizers make it ten times as slow. Twice as much CPU is a finding.
inline constexpr int32_t kMaxMilliseconds = kSanitized ? 50'000 : 5'000;

// Answers a call: an engine in this process, or one behind a socket.
using Caller =
    std::function<absl::StatusOr<std::string>(absl::string_view method, const std::string& request)>;

// 1,000 nodes with 20 pods each, of which 20 nodes are nearly empty; 50 pods that wait, of which ten fit only
// a new node of the group "big"; and the node "victim" in slot 1,000, full with a pod that nothing may move.
class SharedCluster {
 public:
  SharedCluster();

  // The full list, as requests of Sync.
  const std::vector<std::string>& full_list() const { return full_list_; }
  // Returns what `mischief` adds to it in the state `revision`, as requests of Sync. Pods that another
  // mischief had bound are gone after that, if this one binds any.
  std::vector<std::string> Deltas(const Mischief& mischief, int64_t revision = 1) const;

  // One question of each method, in the state after so many deltas, each as method and request. The pods,
  // daemon pods and groups of `mischief` come after those of the cluster.
  struct Question {
    std::string method;
    std::string request;
  };
  std::vector<Question> Questions(const Mischief& mischief, int64_t revision) const;
  // Score and Explain of the first waiting pod of `mischief`: its own problem, which must be answered or
  // refused.
  std::vector<Question> OwnQuestions(const Mischief& mischief, int64_t revision) const;

 private:
  std::vector<std::string> full_list_;
  v1::NodeRecord victim_;
  v1::PlanLoopRequest loop_;  // all other questions are parts of it
  std::vector<std::string> innocents_;
};

// Returns what an answer says about the innocents, as far as objects of this effect may not change it.
std::string AnswerOf(absl::string_view method, const std::string& response, Effect effect);
// The objects that an answer leaves out.
std::vector<v1::LeftOut> LeftOutOf(absl::string_view method, const std::string& response);

}  // namespace loadline

#endif  // LOADLINE_TEST_HOSTILE_SHARED_CLUSTER_H_
