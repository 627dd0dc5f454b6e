package race

import (
	"math"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
)

// Two types at one dollar: the first has more cpu, the second more memory.
var twoTypes = []Type{
	{Name: "cpu", MilliCPU: 4000, MemoryMiB: 4096, USDPerHour: 1},
	{Name: "memory", MilliCPU: 1000, MemoryMiB: 8192, USDPerHour: 1},
	{Name: "spot", MilliCPU: 4000, MemoryMiB: 4096, USDPerHour: 0.5, Spot: true},
	{Name: "gpu", MilliCPU: 4000, MemoryMiB: 4096, GPUs: 1, USDPerHour: 3},
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		name     string
		types    []Type
		requests []Request
		want     float64
	}{
		{"nothing", twoTypes, nil, 0},
		{"cpu alone: two nodes of the first type", twoTypes[:2], []Request{{MilliCPU: 8000}}, 2},
		// x nodes of the first and y of the second: 4x + y = 5 cores and 4x + 8y = 12 GiB, so y = 1 and x = 1.
		{"both short", twoTypes[:2], []Request{{MilliCPU: 5000, MemoryMiB: 12 * 1024}}, 2},
		{"a part of a node", twoTypes[:1], []Request{{MilliCPU: 1000, MemoryMiB: 1024}}, 0.25},
		{"spot is cheaper", twoTypes, []Request{{MilliCPU: 4000}}, 0.5},
		{"not on spot", twoTypes, []Request{{MilliCPU: 4000, OnDemand: true}, {MilliCPU: 4000}}, 1.5},
		{"a GPU, whose node has room for the rest", twoTypes, []Request{{MilliCPU: 4000, GPUs: 1}}, 3},
		{"nobody has it", twoTypes[:2], []Request{{GPUs: 1}}, math.Inf(1)},
	} {
		var asked amounts
		for _, request := range c.requests {
			for r, amount := range request.amounts() {
				asked[r] += amount
			}
		}
		if got := (bound{c.types}).usdPerHour(asked); math.Abs(got-c.want) > 1e-9 && got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestScenariosAreDrawnBySeed(t *testing.T) {
	for _, name := range Names() {
		a, err := Draw(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Draw(name, 1)
		other, _ := Draw(name, 2)
		if !reflect.DeepEqual(a, again) {
			t.Errorf("%s: the same seed gives another load", name)
		}
		if name != Smoke && reflect.DeepEqual(a.Services, other.Services) {
			t.Errorf("%s: another seed gives the same load", name)
		}
	}
	if _, err := Draw("none", 1); err == nil {
		t.Error("there is a scenario without a name")
	}
}

func TestWrongScenariosAreRefused(t *testing.T) {
	ok := func() *Scenario {
		return &Scenario{Types: twoTypes, Services: []Service{{Name: "a", Request: Request{MilliCPU: 1, MemoryMiB: 1},
			Steps: []Step{{0, 1}, {loadStep, 2}}}}}
	}
	if err := ok().Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Scenario){
		"workload a: occurs twice":    func(s *Scenario) { s.Services = append(s.Services, s.Services[0]) },
		"workload a: no type":         func(s *Scenario) { s.Services[0].MilliCPU = 5000 },
		"workload a: 1s is not":       func(s *Scenario) { s.Services[0].Steps[1].At = time.Second },
		"workload a: its steps":       func(s *Scenario) { s.Services[0].Steps[0].At = 2 * loadStep },
		"no type may have on-demand ": func(s *Scenario) { s.Types, s.Services[0].OnDemand = twoTypes[2:3], true },
	} {
		s := ok()
		change(s)
		if s.Check() == nil {
			t.Errorf("%s: is taken", want)
		}
	}
}

// The load of a service in the simulator follows its steps at each time.
func TestTheSimulatorPlaysTheSameLoad(t *testing.T) {
	for _, name := range []string{Services, Day, Smoke} {
		s, err := Draw(name, 3)
		if err != nil {
			t.Fatal(err)
		}
		simulated, err := s.SimulatedScenario(&loadlinev1.SimulatedSettings{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Services {
			of := simulated.GetWorkloads()[i]
			for at := time.Duration(0); at < s.Duration; at += loadStep {
				got := of.GetReplicas()
				for _, b := range of.GetBursts() {
					if since := seconds(at) - b.GetAtSeconds(); since >= 0 && since < b.GetForSeconds() {
						got += b.GetReplicas()
					}
				}
				if want := s.Services[i].Replicas(at); got != int64(want) {
					t.Fatalf("%s: %s wants %d pods after %v, the simulator plays %d", name, of.GetName(), want, at, got)
				}
			}
		}
		if got, want := len(simulated.GetWorkloads()), len(s.Services)+len(s.Jobs); got != want {
			t.Errorf("%s: %d workloads, want %d", name, got, want)
		}
	}
	s, err := Draw(Batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SimulatedScenario(nil); err != ErrNotSimulated {
		t.Errorf("pods that may not be on spot machines are simulated: %v", err)
	}
}

// A node that is there for an hour, a pod that waits and is evicted.
func TestWatcherMeasures(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w := &watcher{bound: bound{twoTypes}, prices: map[string]float64{"cpu/on-demand": 1}, nodeStart: 36 * time.Second,
		requests: map[string]amounts{"a": {1000, 1024}}, nodes: map[string]seenNode{}, pods: map[types.UID]*seenPod{},
		stop: func() {}, now: func() time.Time { return now }, clock: now}
	w.begin()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Labels: map[string]string{v1.LabelInstanceTypeStable: "cpu", capacityTypeLabel: "on-demand"}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", Labels: map[string]string{"app": "a"}}}
	w.setNode(node)
	w.setNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "of nobody"}})
	w.setPod(pod)
	w.setPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "2", Labels: map[string]string{"app": "a"}}}) // waits for ever
	now = now.Add(6 * time.Second)
	pod.Spec.NodeName = "n"
	w.setPod(pod)
	w.setPod(pod)
	now = now.Add(time.Hour - 6*time.Second)
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Reason: "EvictionByEvictionAPI"}}
	w.setPod(pod)
	w.dropPod(pod)
	w.dropNode(node)
	now = now.Add(time.Hour)
	m := w.end()
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("USD", m.USD, 1)
	near("USD with starts", m.USDWithStarts, 1.01)
	near("bound: a quarter of a spot node for 3594 s", m.BoundUSD, 0.125*3594/3600)
	near("wait", m.Waits.Max, 6)
	near("seconds", m.Series[0].Seconds, 7200)
	if m.Evictions != 1 || m.NodesAdded != 1 || m.NodesRemoved != 1 || m.LeftWaiting != 1 || m.Waits.Pods != 1 {
		t.Errorf("measured %+v", m)
	}
}

// A node of 8 GiB: a pod that may use 6 GiB is seen before it, one of 12 GiB counts as all of it, and one of 4 GiB has
// ended before that is bound.
func TestWatcherSeesLimitsOverMemory(t *testing.T) {
	w := &watcher{bound: bound{twoTypes}, prices: map[string]float64{"cpu/on-demand": 1},
		requests: map[string]amounts{"a": {1000, 1024}}, nodes: map[string]seenNode{}, pods: map[types.UID]*seenPod{},
		stop: func() {}, now: time.Now}
	pod := func(uid types.UID, limit string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Labels: map[string]string{"app": "a"}},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(limit)}}}}}}
	}
	w.setPod(pod("first", "6Gi"))
	w.setNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Labels: map[string]string{v1.LabelInstanceTypeStable: "cpu", capacityTypeLabel: "on-demand"}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi")}}})
	ended := pod("ended", "4Gi")
	w.setPod(ended)
	if got := w.loaded; got != 1.25 {
		t.Errorf("two pods load it to %v, want 1.25", got)
	}
	ended.Status.Phase = v1.PodSucceeded
	w.setPod(ended)
	w.setPod(pod("large", "12Gi"))
	if got := w.end().MemoryLimitsMost; got != 1.75 {
		t.Errorf("at most %v, want 1.75", got)
	}
}

// The fifth of ten waits of 1 s to 10 s is the median, and 95 % are at most the tenth.
func TestWaitsAreByNearestRank(t *testing.T) {
	var waited []time.Duration
	for i := 10; i > 0; i-- {
		waited = append(waited, time.Duration(i)*time.Second)
	}
	if got, want := waitsOf(waited), (Waits{Pods: 10, Mean: 5.5, P50: 5, P95: 10, Max: 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
