package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/autoscaler/act"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/providers"
	"loadline.dev/shim/slack"
)

// kept remembers the shapes of the last loop.
type kept struct {
	shapes []slack.Shape
	calls  int
	fails  error
}

func (k *kept) Keep(_ context.Context, shapes []slack.Shape) error {
	k.shapes = shapes
	k.calls++
	return k.fails
}

func (k *kept) replicas() (sum int) {
	for _, s := range k.shapes {
		sum += int(s.Replicas)
	}
	return sum
}

// slacking is a cluster of one node of 4 cpu of which 3 are requested, and of a group of such nodes. It keeps as much
// free as is requested.
func slacking(t *testing.T, change func(*config.Configuration)) (*bench, *kept) {
	b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, func(c *config.Configuration) {
		c.Decisions = []string{config.ScaleUpDecision, config.SlackDecision, config.ScaleDownDecision}
		c.Slack.ExtraCapacityMinRate = "100%"
		if change != nil {
			change(c)
		}
	})
	k := &kept{}
	b.actor.Keeper = k
	return b, k
}

// addStanding adds a placeholder that is a pod, as the Deployment of a shape makes it.
func (b *bench) addStanding(name, node string, s slack.Shape) {
	b.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{slack.PlaceholderLabel: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.Name, UID: "rs",
			Controller: new(true)}}}, Spec: *s.Pod.Spec.DeepCopy(),
		Status: v1.PodStatus{Phase: v1.PodRunning}}
	pod.Spec.NodeName, pod.Spec.Priority = node, new(int32(-10))
	if node == "" {
		pod.Status = v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}}
	}
	if _, err := b.client.CoreV1().Pods(s.Namespace).Create(b.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// Slack makes a group grow once, is kept by objects, and pods that stand for it count as nothing: neither do they wait,
// nor do they take room from what they stand for.
func TestSlackIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, k := slacking(t, nil)
		b.run(30 * time.Second)
		// 3 cpus more: four pieces of 750m, of which one fits beside the pod; one more node takes the others.
		if got := fmt.Sprint(b.sky.requests()); got != "[g+1]" || k.replicas() != 4 {
			t.Fatalf("asked for %s, %d replicas of %+v", got, k.replicas(), k.shapes)
		}
		s := b.readStatus().ClusterWide.Slack
		if s == nil || s.Wanted != 4 || s.Placed != 1 || s.Missing != 3 || s.Keep != config.SlackDeployments ||
			s.Status != "missing" {
			t.Errorf("status %+v", s)
		}
		b.addStanding("s1", "fixed", k.shapes[0])
		b.addStanding("s2", "", k.shapes[0])
		b.run(time.Minute)
		b.addStanding("s3", "g1", k.shapes[0])
		b.run(20 * time.Minute)
		s = b.readStatus().ClusterWide.Slack
		if got := fmt.Sprint(b.sky.requests()); got != "[g+1]" || k.replicas() != 4 || s.Status != "ready" ||
			s.Placed != 4 || s.Running != 2 {
			t.Errorf("asked for %s, %d replicas, status %+v", got, k.replicas(), s)
		}
		if up := b.readStatus().ClusterWide.ScaleUp; up.PendingPods != 0 {
			t.Errorf("%d pods wait", up.PendingPods)
		}
		b.end()
	})
}

// With the decision left to somebody else, or to be reported only, no object is kept; an object that cannot be kept is
// reported, and keeps nothing else from happening.
func TestSlackIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Configuration)
		keeper bool
	}{
		"ByDeployments": {nil, true},
		"Reported":      {func(c *config.Configuration) { c.Slack.Keep = config.SlackReport }, false},
		"Elsewhere":     {func(c *config.Configuration) { c.Decisions = []string{config.ScaleUpDecision} }, false},
		"Observed":      {func(c *config.Configuration) { c.Mode = config.Observe }, false},
	} {
		o := config.Default()
		o.Mode = config.Act
		if c.change != nil {
			c.change(&o)
		}
		if got := act.KeeperOf(&o, nil); (got != nil) != c.keeper {
			t.Errorf("%s: keeper %v", name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b, k := slacking(t, nil)
		k.fails = errors.New("no such namespace")
		b.run(30 * time.Second)
		s := b.readStatus()
		if s.Message != "" || s.ClusterWide.Slack.Problem != "no such namespace" ||
			fmt.Sprint(b.sky.requests()) != "[g+1]" {
			t.Errorf("status %+v", s.ClusterWide)
		}
		b.end()
	})
}

// Without a cloud provider room is kept on the nodes that are there, whose groups come from the nodes alone; nothing
// else is written, and the status tells which part has no room.
func TestSlackWithoutACloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, closeAsked, err := providers.Open(&providers.Options{Kind: providers.None}, providers.Cluster{})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAsked()
		b := growing(t, nil, func(c *config.Configuration) {
			c.CloudProvider.Kind, c.Decisions = providers.None, []string{config.SlackDecision}
			c.Slack.ExtraCapacityMinRate = "100%"
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		})
		k := &kept{}
		b.leader = newLeader(b.planner, b.teller, b.client, asked, systemClock())
		b.actor.Keeper = k
		b.addNode("further")
		made := b.writes()
		b.run(30 * time.Second)
		// 3 cpus more, in four pieces of 750m. Nodes of 4 cpus, one with 3 in use: all fit.
		s := b.readStatus()
		if kept := s.ClusterWide.Slack; k.replicas() != 4 || kept == nil || kept.Placed != 4 || kept.Missing != 0 ||
			kept.Status != "ready" || kept.Keep != config.SlackDeployments {
			t.Fatalf("%d replicas of %+v, status %+v", k.replicas(), k.shapes, s)
		}
		if writes := b.writes(); len(writes) != len(made) {
			t.Errorf("wrote %v, before it was %v", writes, made)
		}
		b.addPod("more", "further", "3", nil)
		synctest.Wait()
		b.run(30 * time.Second)
		s = b.readStatus()
		// 6 cpus are wanted now, and 2 are free.
		if kept := s.ClusterWide.Slack; k.replicas() != 8 || kept.Placed != 2 || kept.Missing != 6 ||
			kept.Status != "limited" {
			t.Errorf("%d replicas of %+v, status %+v", k.replicas(), k.shapes, s)
		}
		if s.Message != "" || len(s.Warnings) != 0 {
			t.Errorf("message %q, warnings %q", s.Message, s.Warnings)
		}
		b.end()
	})
}

// Copies are made of a workload that asks for them, and not any more when it is gone.
func TestSlackCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, k := slacking(t, func(c *config.Configuration) { c.Slack.ExtraCapacityMinRate = "0" })
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d",
			Annotations: map[string]string{"loadline.dev/slack-copies": "2"}},
			Spec: appsv1.DeploymentSpec{
				Template: v1.PodTemplateSpec{
					Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
						Requests: v1.ResourceList{"cpu": b.sky.size("2")["cpu"]}}}}}}}}
		allowed := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default",
			Labels: map[string]string{"loadline.dev/slack-copies": "allowed"}}}
		if _, err := b.client.CoreV1().Namespaces().Create(t.Context(), allowed, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.AppsV1().Deployments("default").Create(t.Context(), d,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.run(20 * time.Second)
		if k.replicas() != 2 || !k.shapes[0].Copy || fmt.Sprint(b.sky.requests()) != "[g+1]" {
			t.Errorf("kept %+v, asked for %v", k.shapes, b.sky.requests())
		}
		if err := b.client.AppsV1().Deployments("default").Delete(t.Context(),
			"web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.run(20 * time.Minute)
		if k.replicas() != 0 || len(b.cluster.Asking) != 0 {
			t.Errorf("kept %+v", k.shapes)
		}
		b.end()
	})
}

// A node is removed with the placeholders on it: they are evicted, whatever the plan says of them.
func TestPlaceholdersGoWithTheirNode(t *testing.T) {
	for _, decided := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 3, func(c *config.Configuration) {
				if decided {
					c.Decisions = append(c.Decisions, config.SlackDecision)
					c.Slack.ExtraCapacityMinRate = "0"
				}
			})
			b.addController()
			b.addPod("p2", "n2", "2500m", nil)
			b.addPod("p3", "n3", "2500m", nil)
			s := slack.Shape{Name: "slack-1", Namespace: slack.DefaultNamespace,
				Pod: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c",
					Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": (&sky{}).size("1")["cpu"]}}}}}}}
			b.addStanding("s1", "n1", s)
			b.run(3 * time.Minute)
			if fmt.Sprint(b.deleted) != "[n1]" {
				t.Errorf("decided here %v: deleted %v, status %+v",
					decided, b.deleted, b.readStatus().ClusterWide.ScaleDown)
			}
			b.end()
		})
	}
}

// forge labels a pod as a placeholder, as anybody can.
func (b *bench) forge(namespace, name string) {
	b.t.Helper()
	pod, err := b.client.CoreV1().Pods(namespace).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	pod.Labels = map[string]string{slack.PlaceholderLabel: "true"}
	if _, err := b.client.CoreV1().Pods(namespace).Update(b.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// The label of a placeholder on a pod of anybody's is only a label: the pod waits for a node.
func TestForgedPlaceholdersArePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := slacking(t, func(c *config.Configuration) { c.Decisions = []string{config.ScaleUpDecision} })
		b.addPending("forged", 1, "2")
		b.forge("default", "forged-0")
		b.run(time.Minute)
		if s := b.readStatus().ClusterWide.ScaleUp; s.PendingPods != 1 || b.sky.groups["g"].target == 0 {
			t.Errorf("nothing grows for a pod with the label: %+v", s)
		}
		b.end()
	})
}
