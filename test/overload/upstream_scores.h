// Scores of others, to compare ours with: kube-scheduler's default profile, and Trimaran of
// scheduler-plugins.
#ifndef LOADLINE_TEST_OVERLOAD_UPSTREAM_SCORES_H_
#define LOADLINE_TEST_OVERLOAD_UPSTREAM_SCORES_H_

#include <array>
#include <cstdint>

namespace loadline {

// CPU in millicores, and memory in bytes.
struct Load {
  double cpu = 0;
  double memory = 0;
};

// NodeResourcesFit with LeastAllocated plus NodeResourcesBalancedAllocation, each of weight 1, as of
// Kubernetes 1.36: [0, 200]. Requests on the node without and with the pod.
int64_t DefaultProfileScore(const Load& before, const Load& after, const Load& allocatable);

// The facts that Trimaran has of a node: averages and standard deviations are those of the use of its pods.
struct TrimaranNode {
  Load allocatable;
  Load requests;  // of the pods there
  Load limits;
  Load average;
  Load deviation;
};

// LowRiskOverCommitment with its defaults: weight 0.5 for the risk by limits, window of 5 samples. [0, 100].
int64_t LowRiskScore(const TrimaranNode& node, const Load& pod_request, const Load& pod_limit);

// LoadVariationRiskBalancing with its defaults: margin 1, sensitivity 1. [0, 100].
int64_t LoadVariationScore(const TrimaranNode& node, const Load& pod_request);

// The regularized incomplete beta function, a, b > 0, x in [0, 1].
double IncompleteBeta(double a, double b, double x);

}  // namespace loadline

#endif  // LOADLINE_TEST_OVERLOAD_UPSTREAM_SCORES_H_
