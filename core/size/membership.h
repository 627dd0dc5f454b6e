// Tells which pods are the demand of which node group.
#ifndef LOADLINE_CORE_SIZE_MEMBERSHIP_H_
#define LOADLINE_CORE_SIZE_MEMBERSHIP_H_

#include "core/cluster/labels.h"
#include "core/cluster/pod_rules.h"

namespace loadline {

// The rule by which a group selects its pods.
struct GroupSelector {
  // The labels of a group. Its pods ask for one of these labels in their node selector, or in a required term
  // of their node affinity by an In that lists the value; and do not ask for another value of one of these
  // labels in the same place.
  Labels labels;
  // Selects the pods without node selector and affinity instead: the group that Escalator calls default.
  bool catch_all = false;
};

// The properties of a pod that decide where it belongs.
struct Applicant {
  const PodRules* rules = nullptr;  // nullptr: a plain pod
  bool of_daemon_set = false;
  bool static_pod = false;       // the kubelet's own
  bool states_affinity = false;  // any part of spec.affinity, also preferred terms
};

// DaemonSet and static pods are in no group. With one label this is Escalator's rule: other conditions of a
// term play no part, and a pod may be in several groups. Escalator counts a static pod of a labelled group
// that carries its selector; no kubelet makes such pods.
// Cost: O(labels + terms of the pod). Source: atlassian/escalator 043bb1b,
// pkg/controller/node_group.go:286-345.
bool IsMember(const Applicant& pod, const GroupSelector& group);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_MEMBERSHIP_H_
