package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

// generate-load makes what its dry run prints, waits until it runs, and takes away exactly that.
func TestGenerateLoad(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true})
	slackNodes(t, ctx, cluster, "a", "b")
	if _, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{Name: "stock", Config: []byte(
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
			"leaderElection: {leaderElect: false}\n")}); err != nil {
		t.Fatal(err)
	}
	other := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	if err := cluster.CreatePods(ctx, []*v1.Pod{other}); err != nil {
		t.Fatal(err)
	}
	load := []string{"generate-load", "--name=burst", "--pods=12", "--deployments=3", "--cpu=50m-150m",
		"--memory=64Mi-128Mi", "--limit-factor=1-4", "--max-unavailable=1", "--seed=7"}
	run := func(more ...string) string {
		t.Helper()
		out, err := cluster.CLI(ctx, append(load, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	printed, err := harness.Objects([]byte(strings.TrimPrefix(run("--namespace=default", "--dry-run"), "---\n")))
	if err != nil || len(printed) != 6 {
		t.Fatalf("%d objects, error %v", len(printed), err)
	}
	if out := run("--over=3s"); !strings.Contains(out,
		"12 pods: 12 running, 0 starting, 0 waiting for a node, 0 ending; had a node after") {
		t.Errorf("it says %s", out)
	}
	if count, err := running(ctx, cluster, "loadline.dev/generated-load=burst"); err != nil || count != 12 {
		t.Errorf("%d pods run, error %v", count, err)
	}
	applyObjects(t, ctx, cluster, printed) // strict: no field that the API server does not know
	for _, object := range printed {
		if object.GetKind() != "Deployment" {
			continue
		}
		made, err := cluster.Client.AppsV1().Deployments("default").Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil || made.Generation > 5 || *made.Spec.Replicas != 4 {
			t.Errorf("Deployment %s: %+v, error %v", object.GetName(), made, err)
		}
	}
	run("--remove")
	for _, selector := range []string{"loadline.dev/generated-load", ""} {
		pods, err := cluster.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
			metav1.ListOptions{LabelSelector: selector})
		if want := map[string]int{"": 1}[selector]; err != nil || len(pods.Items) != want {
			t.Errorf("selector %q: %d pods are left, want %d, error %v", selector, len(pods.Items), want, err)
		}
	}
	budgets, err := cluster.Client.PolicyV1().PodDisruptionBudgets("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(budgets.Items) > 0 {
		t.Errorf("%d budgets are left, error %v", len(budgets.Items), err)
	}
}
