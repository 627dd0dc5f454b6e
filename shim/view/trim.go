package view

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
)

// Field numbers of k8s.io/api/core/v1, for the fields in proto/loadline/k8s/v1/core.proto. Written out by hand
// because v1.Pod's own marshaller writes a tag for every empty string: three times the bytes and the time.
const (
	objectMetadata = 1 // of Pod and Node
	podSpec        = 2
	podStatus      = 3
	nodeStatus     = 3

	metaName      = 1
	metaNamespace = 3
	metaUID       = 5

	specContainers     = 2
	specInitContainers = 20
	specOverhead       = 32
	specResources      = 40

	containerName          = 1
	containerResources     = 8
	containerRestartPolicy = 24

	requirementsLimits   = 1
	requirementsRequests = 2

	statusPhase                 = 1
	statusConditions            = 2
	statusStartTime             = 7
	statusContainerStatuses     = 8
	statusInitContainerStatuses = 10
	statusAllocatedResources    = 19
	statusResources             = 20

	conditionType   = 1
	conditionStatus = 2
	conditionReason = 5

	containerStatusName               = 1
	containerStatusAllocatedResources = 10
	containerStatusResources          = 11

	nodeStatusCapacity    = 1
	nodeStatusAllocatable = 2

	entryKey       = 1
	entryValue     = 2
	quantityString = 1
)

// detail says what a trimmed pod holds beside what scores read of its spec.
type detail struct {
	names    bool // of containers
	identity bool // name, UID and node
	filters  bool // what filters read
	planning bool // what planners read
	priority bool
	status   bool
}

// TrimPod returns a pod as a plain protobuf v1.Pod that holds what scores read of it, but for name, UID and
// node: pods that differ in nothing else give equal bytes.
func TrimPod(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, status: true})
}

// TrimIncomingPod is TrimPod for a pod that is to be placed: without its status, which does not count then.
func TrimIncomingPod(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true})
}

// SignPod returns bytes that are equal for two pods if, and but for the order of their containers only if, no
// score can tell them apart when they are to be placed.
func SignPod(pod *v1.Pod) []byte {
	return appendSpec(make([]byte, 0, 128), &pod.Spec, detail{})
}

// TrimNode returns a node as a plain protobuf v1.Node that holds what scores read of it.
func TrimNode(node *v1.Node) []byte {
	return trimNode(node, detail{})
}

// lineLabels returns the labels by which a node may state a load line of its own, whatever prefix they have.
func lineLabels(labels map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range labels {
		_, resource, _ := strings.Cut(key, "/")
		if resource != "cpu" && resource != "memory" && resource != "ephemeral-storage" {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// placeholderLabel is on pods that may be placeholders of slack.
const placeholderLabel = "loadline.dev/placeholder"

// mayBePlaceholder says whether the engine, which also knows the namespace, may count a pod as a placeholder: at most
// as what it requests.
func mayBePlaceholder(pod *v1.Pod) bool {
	_, labelled := pod.Labels[placeholderLabel]
	return labelled && pod.Spec.Priority != nil && *pod.Spec.Priority < 0
}

func trimPod(pod *v1.Pod, with detail) []byte {
	placeholder := mayBePlaceholder(pod)
	with.priority = with.planning || placeholder
	b := appendMessage(make([]byte, 0, 256), objectMetadata, func(b []byte) []byte {
		if with.identity {
			b = appendString(b, metaName, pod.Name)
		}
		b = appendString(b, metaNamespace, pod.Namespace)
		if with.identity {
			b = appendString(b, metaUID, string(pod.UID))
		}
		if with.planning && pod.DeletionTimestamp != nil {
			b = appendObject(b, metaDeletionTimestamp, pod.DeletionTimestamp)
		} else if with.filters {
			b = appendDeletion(b, pod)
		}
		if with.filters {
			b = appendLabels(b, metaLabels, pod.Labels)
		} else if placeholder {
			b = appendLabels(b, metaLabels, map[string]string{placeholderLabel: ""})
		}
		if with.planning {
			b = appendPlanningMeta(b, pod)
		} else if with.filters {
			b = appendUnknownFields(b, pod)
		}
		if with.planning || placeholder {
			b = appendController(b, pod)
		}
		return b
	})
	b = appendSpec(b, &pod.Spec, with)
	if !with.status {
		return b
	}
	return appendMessage(b, podStatus, func(b []byte) []byte {
		b = appendPodStatus(b, &pod.Status)
		if with.planning {
			b = appendPending(b, pod)
			b = appendReady(b, &pod.Status)
			if start := protectedSince(pod); start != nil {
				b = appendObject(b, statusStartTime, start)
			}
		}
		return b
	})
}

func trimNode(node *v1.Node, with detail) []byte {
	b := appendMessage(make([]byte, 0, 384), objectMetadata, func(b []byte) []byte {
		b = appendString(appendString(b, metaName, node.Name), metaUID, string(node.UID))
		if with.filters {
			b = appendLabels(b, metaLabels, node.Labels)
		} else {
			b = appendLabels(b, metaLabels, lineLabels(node.Labels))
		}
		if with.planning {
			b = appendPlanningNodeMeta(b, node)
		}
		if with.filters {
			b = appendUnknownFields(b, node)
		}
		return b
	})
	if with.filters {
		b = appendNodeSpec(b, node, with)
	}
	return appendMessage(b, nodeStatus, func(b []byte) []byte {
		b = appendResources(b, nodeStatusCapacity, node.Status.Capacity)
		b = appendResources(b, nodeStatusAllocatable, node.Status.Allocatable)
		if with.planning {
			b = appendNodeConditions(b, &node.Status)
		}
		if with.filters {
			for _, feature := range node.Status.DeclaredFeatures {
				b = appendString(b, nodeStatusDeclaredFeatures, feature)
			}
		}
		return b
	})
}

func appendSpec(b []byte, spec *v1.PodSpec, with detail) []byte {
	return appendMessage(b, podSpec, func(b []byte) []byte {
		for i := range spec.Containers {
			b = appendContainer(b, specContainers, &spec.Containers[i], with)
		}
		for i := range spec.InitContainers {
			b = appendContainer(b, specInitContainers, &spec.InitContainers[i], with)
		}
		if with.identity {
			b = appendString(b, specNodeName, spec.NodeName)
		}
		if with.filters {
			b = appendFilterSpec(b, spec)
		}
		if with.planning {
			b = appendPlanningSpec(b, spec)
		}
		if with.priority && spec.Priority != nil && *spec.Priority != 0 {
			b = appendVarint(b, specPriority, uint64(int64(*spec.Priority)))
		}
		b = appendResources(b, specOverhead, spec.Overhead)
		return appendRequirements(b, specResources, spec.Resources)
	})
}

func appendContainer(b []byte, number protowire.Number, c *v1.Container, with detail) []byte {
	return appendMessage(b, number, func(b []byte) []byte {
		if with.names {
			b = appendString(b, containerName, c.Name)
		}
		if with.filters {
			b = appendPorts(b, c.Ports)
		}
		b = appendRequirements(b, containerResources, &c.Resources)
		if c.RestartPolicy != nil {
			b = appendString(b, containerRestartPolicy, string(*c.RestartPolicy))
		}
		if with.filters {
			b = appendMountOptions(b, c.VolumeMounts)
			b = appendRestartRules(b, c.RestartPolicyRules)
		}
		return b
	})
}

func appendPodStatus(b []byte, status *v1.PodStatus) []byte {
	// Finished is all that a phase means to a score. Leaving the others out keeps pods that start up equal to those
	// that run.
	if status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed {
		b = appendString(b, statusPhase, string(status.Phase))
	}
	for i := range status.Conditions {
		b = appendCondition(b, &status.Conditions[i])
	}
	if reportsResources(status.ContainerStatuses) || reportsResources(status.InitContainerStatuses) {
		b = appendContainerStatuses(b, statusContainerStatuses, status.ContainerStatuses)
		b = appendContainerStatuses(b, statusInitContainerStatuses, status.InitContainerStatuses)
	}
	b = appendResources(b, statusAllocatedResources, status.AllocatedResources)
	return appendRequirements(b, statusResources, status.Resources)
}

// appendCondition leaves out all conditions but the one that a resize hangs on: the others change often and mean
// nothing here.
func appendCondition(b []byte, c *v1.PodCondition) []byte {
	if c.Type != v1.PodResizePending {
		return b
	}
	return appendMessage(b, statusConditions, func(b []byte) []byte {
		b = appendString(b, conditionType, string(c.Type))
		b = appendString(b, conditionStatus, string(c.Status))
		return appendString(b, conditionReason, c.Reason)
	})
}

func reportsResources(statuses []v1.ContainerStatus) bool {
	return slices.ContainsFunc(statuses, func(s v1.ContainerStatus) bool {
		return s.Resources != nil || len(s.AllocatedResources) > 0
	})
}

func appendContainerStatuses(b []byte, number protowire.Number, statuses []v1.ContainerStatus) []byte {
	for i := range statuses {
		s := &statuses[i]
		b = appendMessage(b, number, func(b []byte) []byte {
			b = appendString(b, containerStatusName, s.Name)
			b = appendResources(b, containerStatusAllocatedResources, s.AllocatedResources)
			return appendRequirements(b, containerStatusResources, s.Resources)
		})
	}
	return b
}

// appendRequirements keeps empty requirements apart from none: a status that reports no resources at all and one
// that reports an empty list count differently.
func appendRequirements(b []byte, number protowire.Number, r *v1.ResourceRequirements) []byte {
	if r == nil {
		return b
	}
	return appendMessage(b, number, func(b []byte) []byte {
		b = appendResources(b, requirementsLimits, r.Limits)
		return appendResources(b, requirementsRequests, r.Requests)
	})
}

// appendResources writes a map as entries in name order.
func appendResources(b []byte, number protowire.Number, list v1.ResourceList) []byte {
	var few [8]string
	names := few[:0]
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		quantity := list[v1.ResourceName(name)]
		b = appendMessage(b, number, func(b []byte) []byte {
			b = appendString(b, entryKey, name)
			return appendMessage(b, entryValue, func(b []byte) []byte {
				return appendString(b, quantityString, quantity.String())
			})
		})
	}
	return b
}

func appendString(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

func appendMessage(b []byte, number protowire.Number, body func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	start := len(b)
	b = body(append(b, 0)) // most messages here are shorter than 128 bytes: a length of one byte
	size := len(b) - start - 1
	if wider := protowire.SizeVarint(uint64(size)) - 1; wider > 0 {
		b = append(b, make([]byte, wider)...)
		copy(b[start+1+wider:], b[start+1:start+1+size])
	}
	protowire.AppendVarint(b[:start], uint64(size))
	return b
}
