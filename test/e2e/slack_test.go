package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/test/e2e/harness"
)

// slackNodes creates nodes of 2 cpus and 4Gi.
func slackNodes(t *testing.T, ctx context.Context, cluster *harness.Cluster, names ...string) {
	t.Helper()
	var nodes []*v1.Node
	for _, name := range names {
		nodes = append(nodes, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: "a"}},
			Status: v1.NodeStatus{Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"),
				v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("110")}},
		})
	}
	if err := cluster.CreateNodes(ctx, nodes); err != nil {
		t.Fatal(err)
	}
}

// slackDeployment creates a Deployment of pods that request cpu only.
func slackDeployment(t *testing.T, ctx context.Context, cluster *harness.Cluster, name, cpu string, replicas int32,
	annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{Containers: []v1.Container{
					{Name: "app", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
						Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}},
			}},
	}
	if _, err := cluster.Client.AppsV1().Deployments("default").Create(ctx, deployment,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// slackPlan is what the tests read of `loadline slack -o json`.
type slackPlan struct {
	Placeholders []struct{ Count, Placed int }
	Nodes        []struct{ Nodes int }
	Classes      []struct{ Status string }
}

func (p slackPlan) sums() (count, placed, nodes int) {
	for _, s := range p.Placeholders {
		count, placed = count+s.Count, placed+s.Placed
	}
	for _, n := range p.Nodes {
		nodes += n.Nodes
	}
	return count, placed, nodes
}

func planSlack(t *testing.T, ctx context.Context, cluster *harness.Cluster, args ...string) slackPlan {
	t.Helper()
	out, err := cluster.CLI(ctx, append([]string{"slack", "-o", "json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var plan slackPlan
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// applySlack applies what `slack` prints.
func applySlack(t *testing.T, ctx context.Context, cluster *harness.Cluster, args ...string) {
	t.Helper()
	out, err := cluster.CLI(ctx, append([]string{"slack"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := harness.Objects([]byte(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	applyObjects(t, ctx, cluster, objects)
}

// eventually waits until a condition holds, and says how long that took.
func eventually(t *testing.T, ctx context.Context, what string, holds func() (bool, error)) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		ok, err := holds()
		if ok {
			return time.Since(start)
		}
		if time.Since(start) > 2*time.Minute || ctx.Err() != nil {
			t.Fatalf("%s: not so after %v, error %v", what, time.Since(start), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// running counts pods that are bound and Running.
func running(ctx context.Context, cluster *harness.Cluster, selector string) (int, error) {
	pods, err := cluster.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	count := 0
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
			count++
		}
	}
	return count, nil
}

// The API server accepts what `slack -o capacitybuffer` and `-o deployments` print, without a field that it does not
// know.
func TestSlackManifestsApply(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	slackNodes(t, ctx, cluster, "a", "b", "c")
	slackDeployment(t, ctx, cluster, "burst", "500m", 0, map[string]string{"loadline.dev/slack-copies": "2"})
	allow := []byte(`{"metadata": {"labels": {"loadline.dev/slack-copies": "allowed"}}}`)
	if _, err := cluster.Client.CoreV1().Namespaces().Patch(ctx, "default", types.MergePatchType, allow,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("testdata/capacitybuffers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition, err := harness.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	applyObjects(t, ctx, cluster, definition)
	eventually(t, ctx, "the kind CapacityBuffer is served", func() (bool, error) {
		resources, err := cluster.Client.Discovery().ServerResourcesForGroupVersion("autoscaling.x-k8s.io/v1beta1")
		return err == nil && len(resources.APIResources) > 0, err
	})
	for _, form := range []string{"capacitybuffer", "deployments"} {
		args := []string{"-o", form, "--slack-basis", "capacity", "--extra-capacity-min-rate", "50%"}
		applySlack(t, ctx, cluster, args...)
		applySlack(t, ctx, cluster, args...)
	}
	raw, err := cluster.Client.Discovery().RESTClient().Get().
		AbsPath("/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var buffers struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				PodTemplateRef struct{ Name string }
				Replicas       int
			}
		}
	}
	if err := json.Unmarshal(raw, &buffers); err != nil {
		t.Fatal(err)
	}
	// Half of 6 cpus and 12Gi: two copies of the pod keep 1000m, and 6Gi take eight pieces of at most 0.8Gi.
	replicas := map[string]int{}
	for _, buffer := range buffers.Items {
		replicas[buffer.Metadata.Namespace] = buffer.Spec.Replicas
		if _, err := cluster.Client.CoreV1().PodTemplates(buffer.Metadata.Namespace).Get(ctx,
			buffer.Spec.PodTemplateRef.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if len(buffers.Items) != 2 || replicas["default"] != 2 || replicas["loadline-slack"] != 8 {
		t.Errorf("buffers %v", replicas)
	}
	deployments, err := cluster.Client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{LabelSelector: "loadline.dev/slack-shape"})
	if err != nil || len(deployments.Items) != 2 {
		t.Errorf("%d deployments, error %v", len(deployments.Items), err)
	}
}

// Placeholders that run as pods give way to real pods at once; the next plan asks for nodes, and has its slack again
// when they are there.
func TestPlaceholdersGiveWay(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true})
	slackNodes(t, ctx, cluster, "a", "b")
	if _, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{Name: "stock", Config: []byte(
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
			"leaderElection: {leaderElect: false}\n")}); err != nil {
		t.Fatal(err)
	}
	slackDeployment(t, ctx, cluster, "base", "500m", 2, nil)
	expect := func(what, selector string, want int) time.Duration {
		t.Helper()
		return eventually(t, ctx, what, func() (bool, error) {
			count, err := running(ctx, cluster, selector)
			if err == nil && count != want {
				err = fmt.Errorf("%d are, want %d", count, want)
			}
			return err == nil, err
		})
	}
	expect("base pods run", "app=base", 2)

	// The same amount as the 1000m that are requested: three pieces of 334m, since 400m is the largest.
	const everything = "--extra-capacity-min-rate=100%"
	if count, placed, nodes := planSlack(t, ctx, cluster, everything).sums(); count != 3 || placed != 3 || nodes != 0 {
		t.Fatalf("%d placeholders, %d fit, %d nodes", count, placed, nodes)
	}
	applySlack(t, ctx, cluster, everything, "-o", "deployments")
	expect("placeholders run", "loadline.dev/placeholder", 3)
	// Placeholders that run are none that count: the plan stays as it is.
	if count, placed, _ := planSlack(t, ctx, cluster, everything).sums(); count != 3 || placed != 3 {
		t.Errorf("with placeholders running: %d placeholders, %d fit", count, placed)
	}

	// Four pods of 700m: two a node, which have 1500m beside the base pods and placeholders.
	slackDeployment(t, ctx, cluster, "burst", "700m", 4, nil)
	t.Logf("real pods ran after %v", expect("real pods run", "app=burst", 4))
	expect("placeholders gave way", "loadline.dev/placeholder", 0)

	// 3800m: ten pieces of 380m, five of which fit a node of 2000m.
	plan := planSlack(t, ctx, cluster, everything)
	if count, placed, nodes := plan.sums(); count != 10 || placed != 0 || nodes != 2 ||
		plan.Classes[0].Status != "missing" {
		t.Fatalf("%d placeholders, %d fit, %d nodes: %+v", count, placed, nodes, plan)
	}
	slackNodes(t, ctx, cluster, "c", "d")
	if err := cluster.Client.AppsV1().Deployments("loadline-slack").DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	applySlack(t, ctx, cluster, everything, "-o", "deployments")
	expect("slack is restored", "loadline.dev/placeholder", 10)
	plan = planSlack(t, ctx, cluster, everything)
	if count, placed, nodes := plan.sums(); count != 10 || placed != 10 || nodes != 0 ||
		plan.Classes[0].Status != "ready" {
		t.Errorf("%d placeholders, %d fit, %d nodes: %+v", count, placed, nodes, plan)
	}
	page, err := cluster.CLI(ctx, "slack", everything, "-o", "html")
	if err != nil || !strings.Contains(page, "10 of 10 placeholders fit now") {
		t.Errorf("error %v, page %.200s", err, page)
	}
}
