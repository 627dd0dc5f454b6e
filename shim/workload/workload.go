// Package workload names the workload that a pod belongs to, and the template that it was made from: what a profile of
// expected use is found by. It is the one place that does; a collector of profiles and views of the engine both ask it.
package workload

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation is the annotation by which a pod that is sent to the engine states its workload and its template. No pod
// of a cluster is asked for it.
const Annotation = "loadline.dev/workload"

// Workload is what a pod belongs to. Its namespace is that of the pod.
type Workload struct {
	Kind string
	Name string
}

// String returns "KIND/NAME", the name of a profile in a view.
func (w Workload) String() string { return w.Kind + "/" + w.Name }

// jobMinutes is the number of digits that end the name of a CronJob's Job: the minutes since 1970, until 2160.
const jobMinutes = 8

// Of returns the topmost workload of a pod; false: the pod has none, and no profile. proto/loadline/v1/usage.proto
// states the rules.
func Of(pod *v1.Pod) (Workload, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "Node" || !nameable(owner.Kind) || !nameable(owner.Name) {
		return Workload{}, false
	}
	switch owner.Kind {
	case "ReplicaSet":
		hash := pod.Labels["pod-template-hash"]
		if name, found := strings.CutSuffix(owner.Name, "-"+hash); found && hash != "" && name != "" {
			return Workload{Kind: "Deployment", Name: name}, true
		}
	case "Job":
		if name, found := ofCronJob(owner.Name); found {
			return Workload{Kind: "CronJob", Name: name}, true
		}
	}
	return Workload{Kind: owner.Kind, Name: owner.Name}, true
}

// nameable says whether a profile may have this kind or name. An API server takes any text in an owner reference.
func nameable(text string) bool {
	return text != "" && len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '/' || r == '@'
	})
}

// ofCronJob returns the name of the CronJob that has made a Job of this name.
func ofCronJob(job string) (string, bool) {
	at := len(job) - jobMinutes
	if at < 2 || job[at-1] != '-' || strings.Trim(job[at:], "0123456789") != "" {
		return "", false
	}
	return job[:at-1], true
}

// Template returns a number that is the same for pods whose containers have the same images and the same requests and
// limits of CPU and memory; never 0. It changes with a release, a vertical scaling and a resize in place.
func Template(pod *v1.Pod) uint64 {
	sum := fnv.New64a()
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			// Names of images hold no NUL.
			fmt.Fprintf(sum, "%s\x00", c.Image)
			addAmounts(sum, c.Resources.Requests)
			addAmounts(sum, c.Resources.Limits)
		}
		sum.Write([]byte{1}) // the end of a list
	}
	if resources := pod.Spec.Resources; resources != nil {
		addAmounts(sum, resources.Requests)
		addAmounts(sum, resources.Limits)
	}
	return max(sum.Sum64(), 1)
}

func addAmounts(sum hash.Hash64, list v1.ResourceList) {
	var amounts [16]byte
	binary.LittleEndian.PutUint64(amounts[:8], uint64(list.Cpu().MilliValue()))
	binary.LittleEndian.PutUint64(amounts[8:], uint64(list.Memory().Value()))
	sum.Write(amounts[:])
}

// AnnotationOf returns the value of Annotation for a pod; empty: it gets none.
func AnnotationOf(pod *v1.Pod) string {
	w, found := Of(pod)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s@%016x", w, Template(pod))
}
