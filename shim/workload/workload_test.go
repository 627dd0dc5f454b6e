package workload

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ownedBy(kind, name, hash string) *v1.Pod {
	yes := true
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "no-controller"},
			{Kind: kind, Name: name, Controller: &yes}}
	}
	if hash != "" {
		pod.Labels = map[string]string{"pod-template-hash": hash}
	}
	return pod
}

func TestOfNamesTheTopmostWorkload(t *testing.T) {
	for _, c := range []struct{ kind, name, hash, want string }{
		{"ReplicaSet", "web-7d9f8c6b5", "7d9f8c6b5", "Deployment/web"},
		{"ReplicaSet", "web-a-7d9f8c6b5", "7d9f8c6b5", "Deployment/web-a"},
		{"ReplicaSet", "web-7d9f8c6b5", "", "ReplicaSet/web-7d9f8c6b5"},
		{"ReplicaSet", "web-7d9f8c6b5", "5", "ReplicaSet/web-7d9f8c6b5"},
		{"ReplicaSet", "-5", "5", "ReplicaSet/-5"},
		{"Job", "report-29384756", "", "CronJob/report"},
		{"Job", "report-2938475", "", "Job/report-2938475"},
		{"Job", "report-2938475x", "", "Job/report-2938475x"},
		{"Job", "-29384756", "", "Job/-29384756"},
		{"Job", "29384756", "", "Job/29384756"},
		{"StatefulSet", "db", "", "StatefulSet/db"},
		{"DaemonSet", "agent", "7d9f8c6b5", "DaemonSet/agent"},
		{"Node", "node-1", "", ""},
		{"", "", "", ""},
		{"StatefulSet", "a/b", "", ""},
		{"StatefulSet", "a@b", "", ""},
		{"StatefulSet", "a\x1b[2J", "", ""},
		{"StatefulSet", "", "", ""},
	} {
		w, found := Of(ownedBy(c.kind, c.name, c.hash))
		got := ""
		if found {
			got = w.String()
		}
		if got != c.want {
			t.Errorf("%s %q of template %q: %q, want %q", c.kind, c.name, c.hash, got, c.want)
		}
	}
}

func withContainer(image, cpu, memory string) *v1.Pod {
	pod := ownedBy("StatefulSet", "db", "")
	pod.Spec.Containers = []v1.Container{{Name: "c", Image: image, Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
		Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}}}
	return pod
}

func TestTemplateFollowsImagesAndAmounts(t *testing.T) {
	base := withContainer("db:1", "500m", "1Gi")
	if got, want := Template(withContainer("db:1", "0.5", "1024Mi")), Template(base); got != want {
		t.Errorf("the same amounts in other words: %x, want %x", got, want)
	}
	others := map[string]*v1.Pod{"image": withContainer("db:2", "500m", "1Gi"),
		"request": withContainer("db:1", "501m", "1Gi"), "limit": withContainer("db:1", "500m", "2Gi")}
	moved := withContainer("db:1", "500m", "1Gi")
	moved.Spec.InitContainers, moved.Spec.Containers = moved.Spec.Containers, nil
	others["init container"] = moved
	level := withContainer("db:1", "500m", "1Gi")
	level.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	others["pod level"] = level
	for what, pod := range others {
		if Template(pod) == Template(base) {
			t.Errorf("another %s, and the same template", what)
		}
	}
	other := withContainer("db:1", "500m", "1Gi")
	other.Name, other.Spec.NodeName, other.Spec.Containers[0].Env = "q", "n", []v1.EnvVar{{Name: "A", Value: "b"}}
	if Template(other) != Template(base) {
		t.Error("name, node and environment change the template")
	}
}

func TestAnnotationOf(t *testing.T) {
	pod := ownedBy("Job", "report-29384756", "")
	// FNV-1a of the bytes 1, 1: two lists of containers, both empty.
	if got, want := AnnotationOf(pod), "CronJob/report@082f2307b4e88e77"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := AnnotationOf(ownedBy("", "", "")); got != "" {
		t.Errorf("a bare pod: %q", got)
	}
}
