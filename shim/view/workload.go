package view

import (
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/workload"
)

// WithWorkload adds to a trimmed pod, incoming or not, the workload that it belongs to, by which the engine finds its
// profile of expected use: see proto/loadline/v1/usage.proto. What the pod itself says in that annotation does not
// count. A pod without a workload stays as it is.
func WithWorkload(trimmed []byte, pod *v1.Pod) []byte {
	annotation := workload.AnnotationOf(pod)
	if annotation == "" {
		return trimmed
	}
	// A message that occurs twice is merged: these are more metadata of the same pod.
	return appendMessage(trimmed, objectMetadata, func(b []byte) []byte {
		return appendLabels(b, metaAnnotations, map[string]string{workload.Annotation: text.Valid(annotation)})
	})
}

// TellWorkloads has each pod sent to the engine with the workload that it belongs to. Pods of two workloads no longer
// travel as one then. To be called before the first pod.
func (v *View) TellWorkloads() {
	trim := v.trimPod
	v.trimPod = func(pod *v1.Pod) []byte { return WithWorkload(trim(pod), pod) }
}
