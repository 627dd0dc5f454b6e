package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
)

// sky is a cloud of several groups, whose machines become nodes after a time.
type sky struct {
	b *bench
	// delay from the request to the node; 0: it never registers.
	delay time.Duration

	mu     sync.Mutex
	groups map[string]*skyGroup
	client cloud.Provider // asks it for the leader; nil: the leader asks itself
	keeps  bool           // it takes no node back
	asked  []string       // requests that change something, in order
}

type skyGroup struct {
	min, max, target int
	cpu              string
	price            float64 // 0: it does not tell
	priority         *int64
	atomic           bool
	problem          error // that its options cannot be read
	delay            time.Duration
	fault            *externalgrpc.InstanceErrorInfo // of new machines
	fails            error                           // of requests to grow
	unborn           bool                            // machines are not listed before they are nodes
	lists            bool                            // machines that were deleted stay listed as they were
	machines         map[string]*externalgrpc.Instance
	named            int
	gpus             string        // of each node; empty: none
	gpuDelay         time.Duration // until a node offers its GPUs
}

func machineIn(state externalgrpc.InstanceState, providerID string,
	fault *externalgrpc.InstanceErrorInfo) *externalgrpc.Instance {
	return &externalgrpc.Instance{Id: providerID,
		Status: &externalgrpc.InstanceStatus{InstanceState: state, ErrorInfo: fault}}
}

func (s *sky) Refresh(context.Context) error { return nil }

func (s *sky) Groups(context.Context, *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []cloud.Group
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[id]
		group := cloud.Group{ID: id, Min: g.min, Max: g.max, Target: g.target, Priority: g.priority,
			Options: &externalgrpc.NodeGroupAutoscalingOptions{
				ZeroOrMaxNodeScaling: g.atomic, ScaleDownUtilizationThreshold: 0.5}}
		if g.problem != nil {
			group.Options, group.Problem = nil, g.problem
		}
		for _, machine := range slices.Sorted(maps.Keys(g.machines)) {
			group.Instances = append(group.Instances, g.machines[machine])
		}
		out = append(out, group)
	}
	return out, nil
}

func (s *sky) size(cpu string) v1.ResourceList {
	return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"),
		"pods": resource.MustParse("110")}
}

func (s *sky) TemplateNode(_ context.Context, id string) (*v1.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.size(s.groups[id].cpu)
	if gpus := s.groups[id].gpus; gpus != "" {
		size["nvidia.com/gpu"] = resource.MustParse(gpus)
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template", Labels: map[string]string{"group": id}},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size}}, nil
}

func (s *sky) NodePrice(_ context.Context, node *v1.Node) (*float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if price := s.groups[node.Labels["group"]].price; price > 0 {
		return &price, nil
	}
	return nil, nil
}

func (s *sky) IncreaseSize(_ context.Context, id string, from, delta int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("%s+%d", id, delta))
	g := s.groups[id]
	switch {
	case g.fails != nil:
		return g.fails
	case g.target != from:
		return cloud.ErrChanged
	case g.target+delta > g.max:
		s.b.t.Errorf("group %s of %d was asked for %d more, its maximum is %d", id, g.target, delta, g.max)
	}
	for range delta {
		s.make(id)
	}
	g.target += delta
	return nil
}

// make begins a machine. The caller holds mu.
func (s *sky) make(id string) {
	g := s.groups[id]
	g.named++
	name := fmt.Sprintf("%s%d", id, g.named)
	providerID := "sky://" + name
	delay := g.delay
	if delay == 0 {
		delay = s.delay
	}
	if g.machines == nil {
		g.machines = map[string]*externalgrpc.Instance{}
	}
	if !g.unborn {
		g.machines[providerID] = machineIn(externalgrpc.InstanceState_INSTANCE_CREATING, providerID, g.fault)
	}
	if delay == 0 || g.fault != nil {
		return
	}
	go func() {
		select {
		case <-time.After(delay):
		case <-s.b.ctx.Done():
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, still := g.machines[providerID]; !still && !g.unborn {
			return
		}
		g.machines[providerID] = machineIn(externalgrpc.InstanceState_INSTANCE_RUNNING, providerID, nil)
		s.register(id, name)
	}()
}

// register adds the node of a machine.
func (s *sky) register(id, name string) {
	size := s.size(s.groups[id].cpu)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: metav1.Now(),
		Labels: map[string]string{v1.LabelHostname: name, "group": id, v1.LabelOSStable: "linux",
			v1.LabelArchStable: "amd64"}},
		Spec: v1.NodeSpec{ProviderID: "sky://" + name},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	if _, err := s.b.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{}); err != nil {
		s.b.t.Error(err)
	}
	if gpus := s.groups[id].gpus; gpus != "" {
		time.AfterFunc(s.groups[id].gpuDelay, func() {
			node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(gpus)
			if _, err := s.b.client.CoreV1().Nodes().Update(context.Background(), node, metav1.UpdateOptions{}); err != nil {
				s.b.t.Error(err)
			}
		})
	}
}

func (s *sky) DecreaseTargetSize(_ context.Context, id string, from, delta int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("%s-%d", id, delta))
	g := s.groups[id]
	if s.keeps {
		return errKeeps
	}
	if g.target-delta < g.min || g.target != from {
		s.b.t.Errorf("group %s of %d was asked for %d fewer than %d, its minimum is %d",
			id, g.target, delta, from, g.min)
	}
	g.target -= delta
	return nil
}

func (s *sky) Deleting(context.Context, string) (map[string]bool, error) { return nil, nil }

func (s *sky) DeleteNodes(_ context.Context, id string, nodes []*v1.Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[id]
	for _, node := range nodes {
		s.asked = append(s.asked, fmt.Sprintf("delete %s", node.Spec.ProviderID))
		if _, known := g.machines[node.Spec.ProviderID]; !known {
			return fmt.Errorf("no machine %s", node.Spec.ProviderID)
		}
		if s.keeps {
			return errKeeps
		}
		if !g.lists {
			delete(g.machines, node.Spec.ProviderID)
		}
		g.target--
	}
	if g.target < g.min {
		s.b.t.Errorf("group %s has %d nodes, its minimum is %d", id, g.target, g.min)
	}
	return nil
}

func (s *sky) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// growing is a cluster of one node of 4 cpu without a group, on which one pod runs, and a cloud.
func growing(t *testing.T, groups map[string]*skyGroup, change func(*config.Configuration)) *bench {
	return growingUnder(t, &sky{groups: groups, delay: 40 * time.Second}, change)
}

// growingUnder has a cloud of its own.
func growingUnder(t *testing.T, s *sky, change func(*config.Configuration)) *bench {
	groups := s.groups
	b := newBenchWith(t, s, 0, func(c *config.Configuration) {
		c.Decisions = []string{config.ScaleUpDecision, config.ScaleDownDecision}
		c.ScaleUp.BatchIdle.Duration = 0 // see TestArrivalsAreBoughtTogether
		if change != nil {
			change(c)
		}
	})
	b.addNode("fixed")
	b.addPod("there", "fixed", "3", nil)
	b.addController()
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		s.mu.Lock()
		for i := range groups[id].target {
			name := fmt.Sprintf("%s%d", id, i+1)
			groups[id].named++
			if groups[id].machines == nil {
				groups[id].machines = map[string]*externalgrpc.Instance{}
			}
			groups[id].machines["sky://"+name] = machineIn(externalgrpc.InstanceState_INSTANCE_RUNNING, "sky://"+name, nil)
			s.register(id, name)
		}
		s.mu.Unlock()
	}
	synctest.Wait()
	return b
}

// addPending adds pods that no node takes.
func (b *bench) addPending(name string, count int, cpu string) {
	for i := range count {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i),
			UID:               types.UID(fmt.Sprintf("uid-%s-%d", name, i)),
			CreationTimestamp: metav1.Now(), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: new(true)}}},
			Spec: v1.PodSpec{SchedulerName: "default-scheduler",
				Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
			Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
				{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}}}
		if _, err := b.client.CoreV1().Pods("default").Create(b.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// bind puts pods that wait on nodes, as a scheduler would: one on each node that has not got one of them.
func (b *bench) bind(pod, node string) {
	b.t.Helper()
	p, err := b.client.CoreV1().Pods("default").Get(b.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status = node, v1.PodStatus{Phase: v1.PodRunning}
	if _, err := b.client.CoreV1().Pods("default").Update(b.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// events returns the reasons of the events since the last call, each once, with the text of the last one.
// eventsOfMachines returns the events about machines that did not come, and takes all events out.
func (b *bench) eventsOfMachines() (events []string) {
	for len(b.recorder.Events) > 0 {
		event := <-b.recorder.Events
		if strings.Contains(event, " ScaleUpTimedOut ") || strings.Contains(event, " DeleteUnregistered") {
			events = append(events, event)
		}
	}
	return events
}

func (b *bench) eventsSince() map[string]string {
	out := map[string]string{}
	for {
		select {
		case text := <-b.recorder.Events:
			words := strings.SplitN(text, " ", 3)
			out[words[1]] = words[2]
		default:
			return out
		}
	}
}
