package scheduler

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

func TestLoadLineNamesEvents(t *testing.T) {
	f := newFixture(t, `{"maxLimitsOverAllocatable": {"cpu": 1}, "lineNodeLabelPrefix": "lines.example.com"}`)
	events, err := f.plugin.EventsToRegister(t.Context())
	if err != nil || len(events) != 2 || events[0].Event.Resource != fwk.Pod ||
		events[0].Event.ActionType != fwk.Delete|fwk.Update ||
		events[1].Event.ActionType != fwk.Add|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel {
		t.Fatalf("got %v, error %v", events, err)
	}
}

// spec returns a pod on a node, with containers that limit and request amounts; "" is none.
func spec(name string, containers ...[2]v1.ResourceList) *v1.Pod {
	p := uid(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}, 0)
	p.UID = "uid-" + p.UID
	p.Spec.NodeName = "node-0"
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "c" + string(rune('0'+len(p.Spec.Containers))),
			Resources: v1.ResourceRequirements{Limits: c[0], Requests: c[1]}})
	}
	return p
}

func amounts(entries ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i+1 < len(entries); i += 2 {
		list[v1.ResourceName(entries[i])] = resource.MustParse(entries[i+1])
	}
	return list
}

// granted says that the node still grants a pod's first container limits.
func granted(p *v1.Pod, limits v1.ResourceList) *v1.Pod {
	p = p.DeepCopy()
	p.Status.ContainerStatuses = []v1.ContainerStatus{
		{Name: p.Spec.Containers[0].Name, Resources: &v1.ResourceRequirements{Limits: limits}}}
	return p
}

// The line is for cpu, of which a missing limit counts as the request, and for memory, of which it counts as the node.
func TestPodsAreTriedAgainWhereItMayHelp(t *testing.T) {
	f := newLineFixture(t, enginetest.Address(t), `"maxLimitsOverAllocatable": {"cpu": 1, "memory": 1}`,
		nodeinfo.New(1, cores("node1", 8)))
	both := func(cpu, memory string) [2]v1.ResourceList {
		return [2]v1.ResourceList{amounts("cpu", cpu, "memory", memory)}
	}
	waiting := spec("waiting", both("1", "1Gi"))
	waiting.UID, waiting.Spec.NodeName = "waiting", ""
	cpuOnly := spec("cpu only", [2]v1.ResourceList{amounts("cpu", "1", "memory", "0")})
	cpuOnly.UID, cpuOnly.Spec.NodeName = "waiting", ""
	unbound, nominated := spec("a", both("1", "1Gi")), spec("a", both("1", "1Gi"))
	unbound.Spec.NodeName, nominated.Spec.NodeName, nominated.Status.NominatedNodeName = "", "", "node-0"
	labeled := spec("a", both("1", "1Gi"))
	labeled.Labels = map[string]string{"a": "b"}
	bounded := func(memory string) *v1.Pod { // counts by its memory alone
		return spec("a", [2]v1.ResourceList{amounts("memory", memory)})
	}
	for name, c := range map[string]struct {
		waiting, before, after *v1.Pod
		want                   fwk.QueueingHint
	}{
		"it goes":                    {waiting, spec("a", both("1", "1Gi")), nil, fwk.Queue},
		"its last object is unbound": {waiting, unbound, nil, fwk.Queue},
		"its nomination goes":        {waiting, nominated, nil, fwk.Queue},
		"a limit is lowered":         {waiting, spec("a", both("1", "8Gi")), spec("a", both("1", "1Gi")), fwk.Queue},
		"a limit is raised":          {waiting, spec("a", both("1", "1Gi")), spec("a", both("1", "8Gi")), fwk.QueueSkip},
		"labels change":              {waiting, spec("a", both("1", "1Gi")), labeled, fwk.QueueSkip},
		"one falls, another rises":   {waiting, spec("a", both("1", "8Gi")), spec("a", both("2", "1Gi")), fwk.Queue},
		"it is lowered where nothing is": {waiting, spec("a", both("1", "8Gi")),
			granted(spec("a", both("1", "1Gi")), amounts("cpu", "1", "memory", "8Gi")), fwk.QueueSkip},
		"the node grants less": {waiting, granted(spec("a", both("1", "1Gi")), amounts("cpu", "1", "memory", "8Gi")),
			granted(spec("a", both("1", "1Gi")), amounts("cpu", "1", "memory", "1Gi")), fwk.Queue},
		"a limit takes the place of none": {waiting, spec("a", [2]v1.ResourceList{amounts("cpu", "1")}),
			spec("a", both("1", "1Gi")), fwk.Queue},
		"a request is lowered beside a limit": {waiting,
			spec("a", [2]v1.ResourceList{amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "1")}),
			spec("a", [2]v1.ResourceList{amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "100m")}), fwk.QueueSkip},
		"a request is lowered that counts": {waiting,
			spec("a", [2]v1.ResourceList{amounts("memory", "1Gi"), amounts("cpu", "1")}),
			spec("a", [2]v1.ResourceList{amounts("memory", "1Gi"), amounts("cpu", "100m")}), fwk.Queue},
		"memory goes where cpu is wanted":  {cpuOnly, bounded("1Gi"), nil, fwk.Queue}, // without a limit it wants memory too
		"it is lowered itself":             {waiting, waiting, renamed(spec("waiting", both("500m", "1Gi"))), fwk.Queue},
		"it is raised itself":              {waiting, waiting, renamed(spec("waiting", both("2", "1Gi"))), fwk.QueueSkip},
		"of no limit, a container is left": {waiting, spec("a", [2]v1.ResourceList{}), nil, fwk.Queue},
	} {
		f.filter(&cycleState{}, limited("new", 1)) // the engine has said how it counts
		var after any
		if c.after != nil {
			after = c.after
		}
		if got, err := f.plugin.afterPod(klog.Background(), c.waiting, c.before, after); got != c.want || err != nil {
			t.Errorf("%s: got %v, error %v, want %v", name, got, err, c.want)
		}
	}
}

func renamed(p *v1.Pod) *v1.Pod {
	p.UID, p.Spec.NodeName = "waiting", ""
	return p
}

// Nobody waits for the end of a pod that counts as nothing; before the engine has said how it counts, all may count.
func TestPodsThatCountAsNothingWakeNobody(t *testing.T) {
	f := newLineFixture(t, enginetest.Address(t), `"maxLimitsOverAllocatable": {"memory": 1}, "missingLimits": [
		{"pods": "BestEffort", "resource": "memory", "rule": "Zero"},
		{"pods": "Others", "resource": "memory", "rule": "Request"}]`, nodeinfo.New(1, cores("node1", 8)))
	waiting := spec("waiting", [2]v1.ResourceList{amounts("memory", "1Gi")})
	waiting.UID = "waiting"
	free := spec("free", [2]v1.ResourceList{})
	expect := func(p, waits *v1.Pod, want fwk.QueueingHint) {
		t.Helper()
		if got, err := f.plugin.afterPod(klog.Background(), waits, p, nil); got != want || err != nil {
			t.Errorf("got %v, error %v, want %v", got, err, want)
		}
	}
	expect(free, waiting, fwk.Queue)
	f.filter(&cycleState{}, limited("new", 1))
	expect(free, waiting, fwk.QueueSkip)
	expect(spec("a", [2]v1.ResourceList{amounts("cpu", "1")}), waiting, fwk.QueueSkip)
	expect(spec("a", [2]v1.ResourceList{nil, amounts("memory", "1")}), waiting, fwk.Queue)
	expect(waiting.DeepCopy(), free, fwk.QueueSkip)
}

func TestNodesArePassedOnWhereTheyMayHelp(t *testing.T) {
	f := newFixture(t, `{"maxLimitsOverAllocatable": {"cpu": 1}, "lineNodeLabelPrefix": "lines.example.com"}`)
	offers := func(cpu, line string) *v1.Node {
		n := node(0)
		n.Status.Allocatable["cpu"] = resource.MustParse(cpu)
		if line != "" {
			n.Labels = map[string]string{"lines.example.com/cpu": line, "other": cpu + line}
		}
		return n
	}
	moreMemory := offers("4", "")
	moreMemory.Status.Allocatable["memory"] = resource.MustParse("1Ti")
	for name, c := range map[string]struct {
		before, after *v1.Node
		want          fwk.QueueingHint
	}{
		"comes":                   {nil, offers("4", ""), fwk.Queue},
		"comes without cpu":       {nil, offers("0", ""), fwk.QueueSkip},
		"offers more":             {offers("4", ""), offers("5", ""), fwk.Queue},
		"offers less":             {offers("4", ""), offers("3", ""), fwk.QueueSkip},
		"offers none":             {offers("4", ""), offers("0", ""), fwk.Queue},
		"offers more of others":   {offers("4", ""), moreMemory, fwk.QueueSkip},
		"has a line of its own":   {offers("4", ""), offers("4", "2"), fwk.Queue},
		"has a higher line":       {offers("4", "2"), offers("4", "10"), fwk.Queue},
		"has a lower line":        {offers("4", "10"), offers("4", "2"), fwk.QueueSkip},
		"has no line of its own":  {offers("4", "0.5"), offers("4", ""), fwk.Queue},
		"has what is no line now": {offers("4", "0.5"), offers("4", "x"), fwk.Queue},
	} {
		var before any
		if c.before != nil {
			before = c.before
		}
		if got, err := f.plugin.afterNode(klog.Background(), pod(), before, c.after); got != c.want || err != nil {
			t.Errorf("%s: got %v, error %v, want %v", name, got, err, c.want)
		}
	}
}
