package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/nodeinfo"
	"loadline.dev/shim/usage/profile"
)

// usageEngine takes all batches and keeps profiles and pods.
type usageEngine struct {
	grpc.ClientConnInterface
	mu    sync.Mutex
	held  map[string]*loadlinev1.WorkloadUsage
	pods  []string // the pod shapes, as text
	times []int64
	sizes []int // of batches with profiles
}

func (e *usageEngine) Invoke(_ context.Context, _ string, args, _ any, _ ...grpc.CallOption) error {
	return e.take(args.(*loadlinev1.SyncRequest).GetChanges())
}

func (e *usageEngine) take(c *loadlinev1.Changes) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held == nil || c.GetFullList().GetIndex() == 0 && c.FullList != nil {
		e.held = map[string]*loadlinev1.WorkloadUsage{}
	}
	e.times = append(e.times, c.GetTimeS())
	for _, shape := range c.GetPodShapes() {
		e.pods = append(e.pods, string(shape.GetPod()))
	}
	for _, key := range c.GetRemovedObjects() {
		delete(e.held, key.GetNamespace()+"/"+key.GetName())
	}
	if len(c.GetObjects()) > 0 {
		e.sizes = append(e.sizes, proto.Size(c))
	}
	for _, o := range c.GetObjects() {
		var usage loadlinev1.WorkloadUsage
		if err := proto.Unmarshal(o.GetObject(), &usage); err != nil || o.GetKind() != loadlinev1.ObjectKind_WORKLOAD_USAGE {
			return fmt.Errorf("%v: %w", o.GetKind(), err)
		}
		e.held[usage.GetNamespace()+"/"+usage.GetKind()+"/"+usage.GetName()] = &usage
	}
	return nil
}

// names returns the workloads of which the engine holds a profile.
func (e *usageEngine) names() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(e.held)), " ")
}

func used(name string, cpu int64) profile.Profile {
	p := profile.Profile{Workload: profile.Workload{Namespace: "shop", Kind: "Deployment", Name: name}, Samples: 9, Days: 3,
		First: 1_795_000_000, Last: 1_795_003_600, Limits: [profile.Resources]int64{500, 1 << 30}}
	for hour := range profile.Hours {
		p.Day[profile.CPU][hour], p.Day[profile.Memory][hour] = cpu, profile.Unknown
	}
	p.Day[profile.CPU][0], p.Day[profile.CPU][1] = 0, profile.Unknown
	return p
}

func TestProfilesAreObjectsOfAView(t *testing.T) {
	e := &usageEngine{}
	v := New(e, "v")
	sync := func() {
		t.Helper()
		if err := v.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	v.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	sync()
	if e.times[0] != 0 {
		t.Error("a view without profiles tells the time")
	}
	v.SetUsage([]profile.Profile{used("web", 50), used("db", 7)})
	sync()
	want := &loadlinev1.WorkloadUsage{Namespace: "shop", Kind: "Deployment", Name: "web", Days: 3, Samples: 9,
		OldestS: 1_795_000_000, NewestS: 1_795_003_600, CpuLimitMilli: 500, MemoryLimitBytes: 1 << 30,
		CpuMilli: slices.Repeat([]int64{50}, 24)}
	want.CpuMilli[0], want.CpuMilli[1] = 1, 0 // nothing counts as one, and what is not known as 0
	if diff := cmp.Diff(want, e.held["shop/Deployment/web"], protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if now := time.Now().Unix(); e.times[1] < now-60 || e.times[1] > now {
		t.Errorf("the time is %d", e.times[1])
	}
	v.SetUsage([]profile.Profile{used("web", 50)})
	sync()
	if got := e.names(); got != "shop/Deployment/web" {
		t.Errorf("held are %q", got)
	}
	if batches := len(e.times); true {
		v.SetUsage([]profile.Profile{used("web", 50)})
		if sync(); len(e.times) != batches {
			t.Error("profiles that have not changed are sent again")
		}
	}
	v.restart()
	sync()
	if got := e.names(); got != "shop/Deployment/web" {
		t.Errorf("held are %q in another epoch", got)
	}
	if err := v.Ask(t.Context(), func(at *loadlinev1.Changes) error {
		if at.GetTimeS() == 0 {
			t.Error("a question does not tell the time")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestProfilesOfCycles(t *testing.T) {
	e := &usageEngine{}
	c := newCycles(e, "v", Events{})
	t.Cleanup(c.Close)
	c.TellWorkloads()
	controls := true
	pod := fullPod()
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: &controls}}
	nodes := []fwk.NodeInfo{nodeinfo.New(1, named("a"), pod)}
	asked := 0
	cycle := func() {
		t.Helper()
		for attempt := 0; ; attempt++ {
			_, err := c.RawScores(cycleOf(nodes, nodes), Kind{Pod: "k"}, func(changes *loadlinev1.Changes, slots []int32) ([]int64, error) {
				asked++
				return make([]int64, len(slots)), e.take(changes)
			})
			if err == nil {
				return
			}
			if err != ErrSyncing || attempt == 5 {
				t.Fatal(err)
			}
			c.Wait()
		}
	}
	cycle()
	cycle()
	if asked != 1 || !strings.Contains(e.pods[0], "loadline.dev/workload") || !strings.Contains(e.pods[0], "StatefulSet/db@") {
		t.Errorf("asked %d times; the pod is sent as %q", asked, e.pods)
	}
	var many []profile.Profile
	for i := range 10_000 {
		many = append(many, used(fmt.Sprintf("w%05d", i), 1_000_000))
	}
	c.SetUsage(many)
	c.Wait()
	if len(e.held) != len(many) || slices.Max(e.sizes) > 2<<20 {
		t.Errorf("%d profiles are held, the largest message has %d bytes", len(e.held), slices.Max(e.sizes))
	}
	cycle()
	if asked != 2 {
		t.Errorf("asked %d times: raw scores of former profiles are remembered", asked)
	}
	c.SetUsage(many[:1])
	c.Wait()
	if got := e.names(); got != "shop/Deployment/w00000" {
		t.Errorf("%d are held", len(e.held))
	}
	c.mu.Lock()
	c.reset() // as after a panic
	c.mu.Unlock()
	e.held = nil
	cycle()
	if got := e.names(); got != "shop/Deployment/w00000" {
		t.Errorf("held are %q after a panic", got)
	}
}
