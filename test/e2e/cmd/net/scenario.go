package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
	"loadline.dev/test/e2e/fit"
)

// owners is how many ReplicaSets the pods of a cluster belong to.
const owners = 5

// scenario is a random cluster of the differential test of filters, with what planners read beside: owners, budgets,
// groups and pods that wait.
type scenario struct {
	seed    uint64
	cluster *fit.Cluster
	objects []any
	pending []*loadlinev1.PendingPods
	random  *rand.Rand
	options *loadlinev1.DrainOptions
	limits  *loadlinev1.ScaleUpProblem // its limits only
}

func newScenario(seed uint64) *scenario {
	s := &scenario{seed: seed, cluster: fit.Generate(seed), random: rand.New(rand.NewPCG(seed, 2))}
	s.addOwners()
	s.addBudgets()
	for range 1 + s.random.IntN(4) {
		other := fit.Generate(seed ^ s.random.Uint64()).Pod
		s.pending = append(s.pending, &loadlinev1.PendingPods{Count: int32(1 + s.random.IntN(6)),
			Pod: &loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForPlanning(other)}})
	}
	s.options = &loadlinev1.DrainOptions{ScaleDownUnneededTimeS: new(int32(300 * s.random.IntN(2))),
		ScaleDownUtilizationThreshold: new(0.9),
		Exclusive:                     s.random.IntN(4) == 0, MaxDrainParallelism: new(int32(1 + s.random.IntN(4))),
		MinNodesTotal: int32(s.random.IntN(3))}
	s.limits = &loadlinev1.ScaleUpProblem{MaxNewNodes: int32(s.random.IntN(8)),
		MaxNodesTotal: int32(s.random.IntN(3) * 10)}
	return s
}

// addOwners gives each pod to one of the ReplicaSets of its namespace.
func (s *scenario) addOwners() {
	replicas := map[types.NamespacedName]int32{}
	for i, pod := range s.cluster.Pods {
		owner := types.NamespacedName{Namespace: pod.Namespace, Name: fmt.Sprintf("set-%d", i%owners)}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name,
			UID: types.UID(owner.String()), Controller: new(true)}}
		replicas[owner]++
	}
	for i := range owners {
		for _, namespace := range s.cluster.Namespaces {
			owner := types.NamespacedName{Namespace: namespace.Name, Name: fmt.Sprintf("set-%d", i)}
			s.objects = append(s.objects,
				&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name,
					UID: types.UID(owner.String())}, Spec: appsv1.ReplicaSetSpec{Replicas: new(replicas[owner])}})
		}
	}
}

// addBudgets protects the pods of some labels.
func (s *scenario) addBudgets() {
	for i, pod := range s.cluster.Pods {
		if len(pod.Labels) == 0 || s.random.IntN(6) > 0 {
			continue
		}
		s.objects = append(s.objects, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("budget-%d", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(s.random.IntN(3)), ExpectedPods: 4,
				CurrentHealthy: 4}})
	}
}

// fill tells a view all objects.
func (s *scenario) fill(v *view.View) error {
	c := s.cluster
	for _, o := range c.Namespaces {
		s.objects = append(s.objects, o)
	}
	for _, o := range c.Volumes {
		s.objects = append(s.objects, o)
	}
	for _, o := range c.Claims {
		s.objects = append(s.objects, o)
	}
	for _, o := range c.Classes {
		s.objects = append(s.objects, o)
	}
	for _, o := range c.CSINodes {
		s.objects = append(s.objects, o)
	}
	for _, o := range s.objects {
		if err := v.SetObject(o); err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		v.SetNode(node)
	}
	for _, pod := range c.Pods {
		v.SetPod(pod)
	}
	return nil
}

// remove takes nodes away, and their pods.
func (s *scenario) remove(v *view.View, gone []int32) {
	for _, slot := range gone {
		name, known := v.Node(slot)
		if !known {
			continue
		}
		for _, pod := range s.cluster.Pods {
			if pod.Spec.NodeName == name {
				v.DeletePod(pod)
			}
		}
		v.DeleteNode(name)
	}
}

// scenarioLoops is how often each is asked about. Between two loops the nodes that started to go are gone.
const scenarioLoops = 3

// driveScenario asks all questions about the cluster of a seed. Refusals are answers.
func driveScenario(ctx context.Context, seed uint64, conn grpc.ClientConnInterface) error {
	s := newScenario(seed)
	v := view.NewForPlanning(conn, "net")
	v.Complete(allKinds...)
	if err := s.fill(v); err != nil {
		return err
	}
	for loop := range scenarioLoops {
		if err := v.Sync(ctx); err != nil {
			return err
		}
		var gone []int32
		if err := v.Ask(ctx, func(at *loadlinev1.Changes) error {
			gone = s.ask(ctx, conn, s.questions(v, at, loop))
			return nil
		}); err != nil {
			return err
		}
		s.remove(v, gone)
	}
	return nil
}

// ask asks all questions of one loop, and returns the slots of nodes that start to go.
func (s *scenario) ask(ctx context.Context, conn grpc.ClientConnInterface, q *questions) (gone []int32) {
	planner, scheduler := loadlinev1.NewAutoscalerClient(conn), loadlinev1.NewSchedulerExtenderClient(conn)
	var removals []*loadlinev1.NodeRemoval
	// Stateful questions would take what others remember for their own.
	if s.seed%2 == 0 {
		plan, _ := planner.PlanLoop(ctx, q.loop)
		removals = plan.GetScaleDown().GetRemove()
	} else {
		drain, _ := planner.PlanDrain(ctx, q.drain)
		removals = drain.GetRemove()
		_, _ = planner.PlanSlack(ctx, q.slack)
	}
	_, _ = planner.PlanScaleUp(ctx, q.grow)
	_, _ = planner.EstimateScaleUp(ctx, q.estimate)
	_, _ = scheduler.Fit(ctx, q.fit)
	_, _ = scheduler.Score(ctx, q.score)
	for _, removal := range removals {
		if removal.GetStart() {
			gone = append(gone, removal.GetSlot())
		}
	}
	return gone
}
