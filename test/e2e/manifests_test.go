package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// The folders of manifests/ that kubectl applies, and the one whose pod the kubelet reads from a file.
var (
	appliedFolders = []string{"second-scheduler", "extender", "expander", "autoscaler"}
	staticPod      = "replacement"
	// Folders that are applied beside another one to let it do more.
	moreRights   = "autoscaler/act"
	nodeRights   = "autoscaler/act-nodes"
	unsafeRights = "autoscaler/act-despite-budgets"
	orderRights  = "autoscaler/act-downscale-order"
	bufferRights = []string{"autoscaler/capacity-buffers", "autoscaler/act-capacity-buffers"}
	quotaRights  = "autoscaler/capacity-quotas"
	slackRights  = []string{"autoscaler/slack", "autoscaler/slack-capacitybuffers"}
	// Folders for the account of Cluster Autoscaler's own manifests, to plan and to act.
	dropInRights = []string{"autoscaler/drop-in", "autoscaler/drop-in-act"}
)

// podObjects returns the pod template of each workload in a folder, as the pod that its controller would create.
func podObjects(t *testing.T, folder string) []*v1.Pod {
	t.Helper()
	objects, err := harness.ManifestObjects(folder)
	if err != nil {
		t.Fatal(err)
	}
	var pods []*v1.Pod
	for _, object := range objects {
		template, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "Pod" {
			template, found = object.Object, true
		}
		if !found {
			continue
		}
		pod := &v1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, pod, true); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		pod.Name, pod.Namespace = object.GetName(), object.GetNamespace()
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		t.Fatalf("manifests/%s has no pods", folder)
	}
	return pods
}

func containersOf(pod *v1.Pod) []v1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// Every container of ours runs without privileges, has as much memory as it asks for, and only the one that talks to
// the API server has a token.
func TestPodsAreHardened(t *testing.T) {
	for _, folder := range append(appliedFolders, staticPod) {
		for _, pod := range podObjects(t, folder) {
			if profile := pod.Spec.SecurityContext.SeccompProfile; profile == nil ||
				profile.Type != v1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: pod %s has not the runtime's seccomp profile", folder, pod.Name)
			}
			if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount {
				t.Errorf("%s: pod %s mounts a token into every container", folder, pod.Name)
			}
			if nonRoot := pod.Spec.SecurityContext.RunAsNonRoot; folder != staticPod && (nonRoot == nil || !*nonRoot) {
				t.Errorf("%s: pod %s may run as root", folder, pod.Name)
			}
			for _, container := range containersOf(pod) {
				for _, problem := range hardening(container) {
					t.Errorf("%s: container %s of pod %s: %s", folder, container.Name, pod.Name, problem)
				}
			}
		}
	}
}

func hardening(container v1.Container) []string {
	var problems []string
	security := container.SecurityContext
	if security == nil || security.Capabilities == nil ||
		!slices.Equal(security.Capabilities.Drop, []v1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0 {
		problems = append(problems, "has capabilities")
	}
	if security == nil || security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation {
		problems = append(problems, "may gain privileges")
	}
	if security == nil || security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
		problems = append(problems, "writes to its image")
	}
	request, limit := container.Resources.Requests[v1.ResourceMemory], container.Resources.Limits[v1.ResourceMemory]
	// The scheduler of a static pod has none, like the one that it replaces: it is not to be killed for its memory.
	if request.Cmp(limit) != 0 {
		problems = append(problems, fmt.Sprintf("requests %s memory and may use %s", request.String(), limit.String()))
	}
	if container.Name == "loadlined" &&
		slices.ContainsFunc(container.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name != "run" }) {
		problems = append(problems, "the engine mounts more than the folder of its socket")
	}
	return problems
}

// The API server accepts every object, without a field that it does not know; a second time changes nothing.
func TestManifestsApply(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	more := []string{moreRights, nodeRights, unsafeRights, orderRights, quotaRights}
	for _, folder := range slices.Concat(appliedFolders, more, bufferRights, slackRights, dropInRights) {
		apply(t, ctx, cluster, folder)
		apply(t, ctx, cluster, folder)
	}
	for _, folder := range append(appliedFolders, staticPod) {
		for _, pod := range podObjects(t, folder) {
			// Pod Security admission judges pods, not their templates. It enforces what the namespace says.
			_, err := cluster.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Errorf("%s: pod %s: %v", folder, pod.Name, err)
			}
		}
	}
	namespace, err := cluster.Client.CoreV1().Namespaces().Get(ctx, "loadline-system", metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the namespace of the second scheduler does not enforce restricted pods: %v, error %v",
			namespace.Labels, err)
	}
}

// apply does what `kubectl apply --server-side -f manifests/FOLDER` does, and refuses unknown fields.
func apply(t *testing.T, ctx context.Context, cluster *harness.Cluster, folder string) {
	t.Helper()
	objects, err := harness.ManifestObjects(folder)
	if err != nil {
		t.Fatal(err)
	}
	applyObjects(t, ctx, cluster, objects)
}

// applyObjects applies objects in order, on the server's side.
func applyObjects(t *testing.T, ctx context.Context, cluster *harness.Cluster, objects []*unstructured.Unstructured) {
	t.Helper()
	if err := cluster.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
}

// loadline-scheduler and loadlined run with the configuration, the arguments and the rights of
// manifests/second-scheduler: leader election included, two of them, and no request is forbidden.
func TestSecondSchedulerRuns(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	apply(t, ctx, cluster, "second-scheduler")
	if err := demo.SetUpExample(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, "loadline-system", "loadline-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	var replicas []*harness.Scheduler
	for _, name := range []string{"first", "second"} {
		options, err := demo.OurOptions(harness.SecondSchedulerConfig, engine.Address)
		if err != nil {
			t.Fatal(err)
		}
		options.Name, options.Args = name, containerOf(t, "second-scheduler", "loadline-scheduler").Args
		options.Site = harness.Site{Kubeconfig: kubeconfig, EngineAddress: engine.Address,
			EngineTimeout: demo.PatientTimeout}
		scheduler, err := cluster.StartScheduler(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, scheduler)
	}
	expectNode(t, ctx, cluster, demo.OurScheduler, "node2")
	lease, err := cluster.Client.CoordinationV1().Leases("loadline-system").Get(ctx, "loadline-scheduler",
		metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("nobody holds the lease: %v, error %v", lease, err)
	}
	if _, err := cluster.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the lease of the cluster's own scheduler was touched: error %v", err)
	}
	for _, replica := range replicas {
		expectNothingForbidden(t, replica.Process)
	}
	if answered := metricsOf(t, ctx, replicas[0]).Sum(demo.CyclesAnswered, nil) +
		metricsOf(t, ctx, replicas[1]).Sum(demo.CyclesAnswered, nil); answered != 1 {
		t.Errorf("the engine scored %v cycles, want 1", answered)
	}
}

// The same with manifests/replacement, as the user of the scheduler that it replaces and with its lease.
func TestReplacementRuns(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	if err := demo.SetUpExample(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.UserKubeconfig("system:kube-scheduler", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	options, err := demo.OurOptions(harness.ReplacementConfig, engine.Address)
	if err != nil {
		t.Fatal(err)
	}
	options.Args = containerOf(t, staticPod, "kube-scheduler").Args
	options.Site = harness.Site{Kubeconfig: kubeconfig, EngineAddress: engine.Address,
		EngineTimeout: demo.PatientTimeout}
	scheduler, err := cluster.StartScheduler(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	expectNode(t, ctx, cluster, demo.StockScheduler, "node2")
	if _, err := cluster.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler",
		metav1.GetOptions{}); err != nil {
		t.Errorf("the lease of the scheduler that it replaces: %v", err)
	}
	expectNothingForbidden(t, scheduler.Process)
}

func expectNode(t *testing.T, ctx context.Context, cluster *harness.Cluster, scheduler, want string) {
	t.Helper()
	node, err := demo.PlaceExamplePod(ctx, cluster, scheduler)
	if err != nil {
		t.Fatal(err)
	}
	if node != want {
		t.Errorf("%s puts pod5 on %s, want %s", scheduler, node, want)
	}
}

// expectNothingForbidden looks for refusals of the API server, which client-go logs and tries again for ever.
func expectNothingForbidden(t *testing.T, process *harness.Process) {
	t.Helper()
	log, err := process.Log()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			t.Errorf("%s: %s", process.Name, line)
		}
	}
}

// The arguments of loadlined and the gateway in the manifests are those that the tests start them with, but for paths
// and ports.
func TestArgumentsOfManifests(t *testing.T) {
	const socket = "/run/loadline/loadlined.sock"
	for _, c := range []struct {
		folder, container string
		want              []string
	}{
		{"second-scheduler", "loadlined", harness.EngineArgs(socket)},
		{"replacement", "loadlined", harness.EngineArgs(socket)},
		{"extender", "loadlined", harness.EngineArgs(socket)},
		{"extender", "gateway", harness.GatewayArgs("127.0.0.1:8888", "unix://"+socket)},
		{"expander", "loadlined", harness.EngineArgs(socket)},
		{"autoscaler", "loadlined", harness.EngineArgs(socket)},
	} {
		if got := containerOf(t, c.folder, c.container).Args; !slices.Equal(got, c.want) {
			t.Errorf("%s: container %s has arguments %q, want %q", c.folder, c.container, got, c.want)
		}
	}
}

// loadlined is asked whether it serves, in each folder by the same command, and is replaced when it does not. Where
// pods are placed without it, nothing waits for its start.
func TestEngineIsProbed(t *testing.T) {
	want := []string{"loadlined", "--check=/run/loadline/loadlined.sock"}
	for _, folder := range append(appliedFolders, staticPod) {
		engine := containerOf(t, folder, "loadlined")
		probes := map[string]*v1.Probe{"liveness": engine.LivenessProbe, "readiness": engine.ReadinessProbe}
		if folder == "autoscaler" {
			probes["startup"] = engine.StartupProbe
		} else if engine.StartupProbe != nil {
			t.Errorf("%s: its start is waited for", folder)
		}
		for name, probe := range probes {
			// --check gives up after 5 s.
			if probe == nil || probe.Exec == nil || !slices.Equal(probe.Exec.Command, want) ||
				probe.TimeoutSeconds <= 5 {
				t.Errorf("%s: %s probe %v, want one that runs %q", folder, name, probe, want)
			}
		}
	}
}

// Connections of our pods lead to places that are named.
func TestEgressNamesDestinations(t *testing.T) {
	for _, folder := range []string{"second-scheduler", "expander", "autoscaler"} {
		objects, err := harness.ManifestObjects(folder)
		if err != nil {
			t.Fatal(err)
		}
		rules := 0
		for _, object := range objects {
			if object.GetKind() != "NetworkPolicy" {
				continue
			}
			egress, _, err := unstructured.NestedSlice(object.Object, "spec", "egress")
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range egress {
				rules++
				if to, ok := rule.(map[string]any)["to"].([]any); !ok || len(to) == 0 {
					t.Errorf("%s: %s lets anything out to ports %v", folder, object.GetName(),
						rule.(map[string]any)["ports"])
				}
			}
		}
		if rules < 2 {
			t.Errorf("%s: %d rules say what may leave", folder, rules)
		}
	}
}

// containerOf returns a container of the one pod in a folder.
func containerOf(t *testing.T, folder, name string) v1.Container {
	t.Helper()
	for _, container := range containersOf(podObjects(t, folder)[0]) {
		if container.Name == name {
			return container
		}
	}
	t.Fatalf("manifests/%s has no container %s", folder, name)
	return v1.Container{}
}

// The rights of the autoscaler are exactly these, by folder: to look, to keep its own objects; to act; and to keep
// slack in one namespace.
func TestRightsOfTheAutoscaler(t *testing.T) {
	for folder, want := range map[string][]string{
		"autoscaler": {"cluster list,watch apps/daemonsets", "cluster list,watch apps/deployments",
			"cluster list,watch apps/replicasets",
			"cluster list,watch apps/statefulsets", "cluster list,watch batch/jobs", "cluster list,watch namespaces",
			"cluster list,watch nodes",
			"cluster list,watch persistentvolumeclaims", "cluster list,watch persistentvolumes",
			"cluster list,watch pods",
			"cluster list,watch policy/poddisruptionbudgets", "cluster list,watch replicationcontrollers",
			"cluster list,watch resource.k8s.io/deviceclasses", "cluster list,watch services",
			"cluster list,watch storage.k8s.io/csidrivers", "cluster list,watch storage.k8s.io/csinodes",
			"cluster list,watch storage.k8s.io/storageclasses",
			"cluster get,list coordination.k8s.io/leases cluster-autoscaler",
			"cluster get configmaps cluster-autoscaler-status",
			"kube-system get configmaps cluster-autoscaler-priority-expander",
			"kube-system get,update configmaps loadline-autoscaler-status",
			"kube-system get,update,list,watch coordination.k8s.io/leases loadline-autoscaler"},
		nodeRights: {"cluster create pods/eviction", "cluster get pods", "cluster get,patch nodes"},
		moreRights: {"cluster create,patch events", "kube-system get configmaps cluster-autoscaler-status",
			"kube-system get coordination.k8s.io/leases cluster-autoscaler",
			"kube-system get,update configmaps loadline-autoscaler-state"},
		bufferRights[1]: {"cluster patch autoscaling.x-k8s.io/capacitybuffers/status"},
		bufferRights[0]: {"cluster list autoscaling.x-k8s.io/capacitybuffers", "cluster get apps/deployments",
			"cluster get apps/replicasets", "cluster get apps/statefulsets", "cluster get podtemplates",
			"cluster get replicationcontrollers", "cluster list resourcequotas"},
		quotaRights:     {"cluster list autoscaling.x-k8s.io/capacityquotas"},
		unsafeRights:    {"cluster delete pods"},
		orderRights:     {"cluster patch pods"},
		dropInRights[0]: {"kube-system get,update,list,watch coordination.k8s.io/leases cluster-autoscaler"},
		dropInRights[1]: {"kube-system get,update configmaps cluster-autoscaler-state"},
		slackRights[0]:  {"loadline-slack list,create,patch,delete apps/deployments"},
		slackRights[1]: {"loadline-slack list,create,delete podtemplates",
			"loadline-slack list,create,patch,delete autoscaling.x-k8s.io/capacitybuffers"},
	} {
		objects, err := harness.ManifestObjects(folder)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, object := range objects {
			if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
				continue
			}
			var role rbacv1.Role
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			where := role.Namespace
			if where == "" {
				where = "cluster"
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					name := strings.TrimPrefix(strings.Join(rule.APIGroups, ",")+"/"+resource, "/")
					got = append(got,
						strings.TrimSpace(fmt.Sprintf("%s %s %s %s", where, strings.Join(rule.Verbs, ","), name,
							strings.Join(rule.ResourceNames, ","))))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s allows\n%s\nwant\n%s", folder, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
