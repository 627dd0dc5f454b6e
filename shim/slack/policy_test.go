package slack

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
)

func TestRulesOfClassesAndGroups(t *testing.T) {
	p := DefaultPolicy()
	p.Classes = []string{"topology.kubernetes.io/zone=a;disk=ssd;off", "disk=hdd;max-cpu=1500m;max-memory=2Gi"}
	p.Groups = []string{"gpu;off", "spot;max-nodes=5"}
	p.MaxExtraCPU, p.BoundByPods = "64", "false"
	got, err := p.Proto()
	if err != nil {
		t.Fatal(err)
	}
	if c := got.GetClassRules(); len(c) != 2 || !c[0].GetOff() || len(c[0].GetLabels()) != 2 ||
		c[0].GetLabels()[1].GetValue() != "ssd" ||
		c[1].GetOff() || c[1].GetMaxExtraMilliCpu() != 1500 || c[1].GetMaxExtraMemoryBytes() != 2<<30 {
		t.Errorf("classes %v", c)
	}
	if g := got.GetGroupRules(); len(g) != 2 || g[0].GetNodeGroup() != "gpu" || !g[0].GetOff() ||
		g[1].GetMaxNodes() != 5 {
		t.Errorf("groups %v", g)
	}
	if got.GetMaxExtraMilliCpu() != 64_000 || got.MaxExtraMemoryBytes != nil || got.BoundByPods == nil ||
		got.GetBoundByPods() ||
		got.GetSizeTolerance() != 0.25 || got.GetMaxCopiesMilliCpuPerNamespace() != 64_000 ||
		got.GetMaxCopiesMemoryBytesPerNamespace() != 256<<30 {
		t.Errorf("policy %v", got)
	}
	for text, want := range map[string]string{"disk=ssd": "neither off", "off;disk": "a key and a value",
		"a=b;max-cpu=-1": "an amount"} {
		if _, err := ParseClassRule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{";off": "no node group", "g": "must say", "g;max-nodes=x": "no number"} {
		if _, err := ParseGroupRule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The objects say of a class what the engine does: a type only where pods select nodes by it.
func TestPlaceholdersNeedWhatTheEngineSays(t *testing.T) {
	class := &loadlinev1.ClassSlack{Labels: []*loadlinev1.ClassSlack_NodeLabel{
		{Key: "node.kubernetes.io/instance-type", Value: "m5"}, {Key: "zone", Value: "a"}},
		NeededLabels: []*loadlinev1.ClassSlack_NodeLabel{{Key: "zone", Value: "a"}}, AbsentLabels: []string{"workload"}}
	pod := standardPod(class, &loadlinev1.CpuAndMemory{MilliCpu: 100})
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(pod.Spec.NodeSelector) != 1 || pod.Spec.NodeSelector["zone"] != "a" || len(terms) != 1 ||
		terms[0].MatchExpressions[0].Key != "workload" ||
		terms[0].MatchExpressions[0].Operator != v1.NodeSelectorOpDoesNotExist {
		t.Errorf("%+v", pod.Spec)
	}
}

// Placeholders and copies limit what they request, and nothing else: so they count as no more in scores and at the load
// line. A limit without a request is what the API server requests.
func TestPlaceholdersLimitWhatTheyRequest(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	standard := standardPod(&loadlinev1.ClassSlack{}, &loadlinev1.CpuAndMemory{MilliCpu: 250, MemoryBytes: 1 << 29})
	mine := copyPod(&v1.PodTemplateSpec{Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list("1", ""),
			Limits: list("4", "2Gi")}}},
		InitContainers: []v1.Container{{Name: "i", Resources: v1.ResourceRequirements{Requests: list("", "1Gi")}}}}})
	for _, c := range []struct {
		got  v1.Container
		want v1.ResourceList
	}{
		{standard.Spec.Containers[0], list("250m", "512Mi")},
		{mine.Spec.Containers[0], list("1", "2Gi")},
		{mine.Spec.InitContainers[0], list("", "1Gi")},
	} {
		if r := c.got.Resources; !equality.Semantic.DeepEqual(r.Requests, c.want) ||
			!equality.Semantic.DeepEqual(r.Limits, c.want) {
			t.Errorf("%s: requests %v, limits %v, both must be %v", c.got.Name, r.Requests, r.Limits, c.want)
		}
	}
}

// A pod of a tenant gets no port, network or scheduler in our namespace, and no rights.
func TestCopiesHaveNoRights(t *testing.T) {
	from := &v1.PodTemplateSpec{Spec: v1.PodSpec{HostNetwork: true, SchedulerName: "mine",
		Containers: []v1.Container{{Name: "c",
			Ports: []v1.ContainerPort{{HostPort: 443}}, SecurityContext: &v1.SecurityContext{Privileged: new(true)}}}}}
	shape := Shape{Name: "slack-1", Namespace: "n", Replicas: 1, Pod: copyPod(from), Copy: true}
	if pod := shape.Pod.Spec; pod.HostNetwork || pod.SchedulerName != "" || len(pod.Containers[0].Ports) != 0 ||
		pod.Containers[0].SecurityContext != nil {
		t.Errorf("%+v", pod)
	}
	yaml, err := YAML(Deployments([]Shape{shape}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"runAsNonRoot: true", "allowPrivilegeEscalation: false",
		"type: RuntimeDefault", "- ALL"} {
		if !strings.Contains(string(yaml), want) {
			t.Errorf("%q is not in %s", want, yaml)
		}
	}
}
