package harness_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/test/e2e/harness"
)

const stockConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
`

var site = harness.Site{QPS: 5000, NoLeaderElection: true}

func TestMain(m *testing.M) {
	if scenario := os.Getenv(scenarioVariable); scenario != "" {
		playScenario(scenario)
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T, ctx context.Context, options harness.Options) *harness.Cluster {
	t.Helper()
	options.Log = t.Logf
	cluster, err := harness.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.Logs())
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

func newNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1.NodeStatus{Capacity: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
			v1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

func newPod(name, cpu string) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "app", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{Requests: requests},
		}}},
	}
}

// One control plane for what needs no controllers: placing, counting what does not fit, rights, errors.
func TestControlPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster := start(t, ctx, harness.Options{})
	scheduler, err := cluster.StartScheduler(ctx,
		harness.SchedulerOptions{Name: "stock", Config: []byte(stockConfig), Site: site})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("ReportsItsVersion", func(t *testing.T) {
		version, err := cluster.Client.Discovery().ServerVersion()
		if err != nil || !strings.HasPrefix(version.GitVersion, "v"+harness.Minor()+".") {
			t.Errorf("version %v, error %v; want v%s.x", version, err, harness.Minor())
		}
	})
	t.Run("PlacesPods", func(t *testing.T) { placesPods(t, ctx, cluster, scheduler) })
	t.Run("GrantsOnlyWhatIsGranted", func(t *testing.T) { grantsOnlyWhatIsGranted(t, ctx, cluster) })
	t.Run("SaysWhyAComponentDoesNotStart", func(t *testing.T) { saysWhy(t, ctx, cluster) })
}

func placesPods(t *testing.T, ctx context.Context, cluster *harness.Cluster, scheduler *harness.Scheduler) {
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if err := cluster.CreateNodes(ctx, []*v1.Node{newNode("a"), newNode("b")}); err != nil {
		t.Fatal(err)
	}
	// Two nodes of 8 cores take four pods of 3 cores; the fifth fits nowhere.
	pods := []*v1.Pod{newPod("p1", "3"), newPod("p2", "3"), newPod("p3", "3"), newPod("p4", "3"), newPod("p5", "3")}
	if err := cluster.CreatePodsInOrder(ctx, pods); err != nil {
		t.Fatal(err)
	}
	if err := watch.WaitSettled(ctx, len(pods), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got, want := watch.Progress(), (harness.Progress{Bound: 4, Unschedulable: 1, Total: 5}); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	metrics, err := scheduler.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := metrics.Sum("scheduler_schedule_attempts_total", harness.Labels{"result": "scheduled"}); got != 4 {
		t.Errorf("the scheduler counts %v scheduled pods, want 4", got)
	}
	if attempts := metrics.Histogram("scheduler_scheduling_attempt_duration_seconds", nil); attempts.Count < 5 {
		t.Errorf("the scheduler measured %d attempts, want at least 5", attempts.Count)
	}
	if err := cluster.DeletePod(ctx, "default", "p1"); err != nil {
		t.Fatal(err)
	}
	if err := watch.WaitBound(ctx, 4); err != nil { // p5 takes the place of p1
		t.Error(err)
	}
}

// A service account without any binding may not list nodes, and the user kube-scheduler may, but not secrets.
func grantsOnlyWhatIsGranted(t *testing.T, ctx context.Context, cluster *harness.Cluster) {
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody", Namespace: "default"}}
	if _, err := cluster.Client.CoreV1().ServiceAccounts("default").Create(ctx, account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nobody := clientFor(t, func() (string, error) { return cluster.ServiceAccountKubeconfig(ctx, "default", "nobody") })
	if _, err := nobody.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a service account without rights lists nodes: error %v", err)
	}
	scheduler := clientFor(t, func() (string, error) { return cluster.UserKubeconfig("system:kube-scheduler") })
	if _, err := scheduler.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("system:kube-scheduler lists nodes: %v", err)
	}
	if _, err := scheduler.CoreV1().Secrets("kube-system").List(ctx,
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("system:kube-scheduler lists secrets: error %v", err)
	}
}

func clientFor(t *testing.T, kubeconfig func() (string, error)) kubernetes.Interface {
	t.Helper()
	file, err := kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func saysWhy(t *testing.T, ctx context.Context, cluster *harness.Cluster) {
	_, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{
		Name: "typo", Config: []byte(stockConfig + "profilez: []\n"), Site: site})
	if err == nil {
		t.Fatal("a scheduler with a misspelt field started")
	}
	for _, want := range []string{"typo ended before it was ready", "exit status 1", `unknown field \"profilez\"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}

func TestControllersAndKubelets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster := start(t, ctx, harness.Options{ControllerManager: true, Kubelet: true})
	if _, err := cluster.StartScheduler(ctx,
		harness.SchedulerOptions{Name: "stock", Config: []byte(stockConfig), Site: site}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.CreateNodes(ctx, []*v1.Node{newNode("a")}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	template := newPod("", "1").Spec
	deployments := cluster.Client.AppsV1().Deployments("default")
	_, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, "3 ready replicas", func() error {
		deployment, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && deployment.Status.ReadyReplicas != 3 {
			err = fmt.Errorf("%d are ready", deployment.Status.ReadyReplicas)
		}
		return err
	})
	t.Log("ready")
	background := metav1.DeletePropagationBackground
	if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, "no pods", func() error {
		pods, err := cluster.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return err
	})
}

func eventually(t *testing.T, ctx context.Context, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
