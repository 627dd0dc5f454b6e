package watch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/reference"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/internal/testing/randompod"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/view"
)

// podReaders is what Go code reads of pods, beside what the engine gets.
func podReaders() map[string]func(*v1.Pod) any {
	now := time.Unix(1_500_000_000, 0)
	return map[string]func(*v1.Pod) any{
		"facts":       func(pod *v1.Pod) any { return fmt.Sprint(factsOf(pod, now)) },
		"priority":    func(pod *v1.Pod) any { return corev1helpers.PodPriority(pod) },
		"since":       func(pod *v1.Pod) any { return pod.CreationTimestamp },
		"nominated":   func(pod *v1.Pod) any { return pod.Status.NominatedNodeName },
		"labels":      func(pod *v1.Pod) any { return pod.Labels },
		"ends":        func(pod *v1.Pod) any { return pod.DeletionTimestamp },
		"grace":       func(pod *v1.Pod) any { return pod.Spec.TerminationGracePeriodSeconds },
		"controller":  func(pod *v1.Pod) any { return metav1.GetControllerOf(pod) },
		"annotations": func(pod *v1.Pod) any { return view.PodAnnotations(pod.Annotations) },
		"deletion cost": func(pod *v1.Pod) any {
			return fmt.Sprint(pod.Annotations[view.DeletionCostMark], view.HasOurDeletionCost(pod.Annotations))
		},
		"placeholder": func(pod *v1.Pod) any { return slack.IsPlaceholder(pod, pod.Namespace) },
		"reference": func(pod *v1.Pod) any {
			of, err := reference.GetReference(scheme.Scheme, pod)
			return fmt.Sprint(of, err)
		},
		"waiting": func(pod *v1.Pod) any {
			pods := scaleup.NewPods()
			pods.AddPod(pod)
			pods.AddPod(pod)
			if set, claims := scaleup.DaemonSetOf(pod); claims {
				pods.AddObject(&appsv1.DaemonSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, UID: set.UID}})
			}
			return fmt.Sprint(pods.Pending(), pods.DaemonPods())
		},
		"sized": func(pod *v1.Pod) any {
			pods := sizing.New()
			pods.AddPod(pod)
			return fmt.Sprint(pods.Pods())
		},
		"copies": copiesOf,
	}
}

// copiesOf returns the placeholders that stand for copies of a pod.
func copiesOf(pod *v1.Pod) any {
	source := fmt.Sprintf("Pod %s/%s", pod.Namespace, pod.Name)
	if owner := metav1.GetControllerOf(pod); owner != nil {
		source = fmt.Sprintf("%s %s/%s", owner.Kind, pod.Namespace, owner.Name)
	}
	known := slack.NewGatherer()
	known.AddPod(pod)
	shapes, _ := known.Shapes(&loadlinev1.PlanSlackResponse{
		Mirrored: []*loadlinev1.MirroredSlack{{Key: "k", Sources: []string{source}}},
		Shapes:   []*loadlinev1.ShapeSlack{{Owner: "k", Kind: loadlinev1.Placeholder_MIRRORED, Count: 1}}}, "slack")
	return shapes
}

// All that is read of a pod is still there when an informer has reduced it, whatever fields the pod has.
func TestReducedPodsAreReadAsWholeOnes(t *testing.T) {
	keeper, fill, readers := view.NewKeeper(), randompod.Filler(3), podReaders()
	for i := range 2000 {
		pod := &v1.Pod{}
		fill.Fill(pod)
		pod.TypeMeta = metav1.TypeMeta{} // informers leave it out
		if i%3 > 0 {
			pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.DeletionTimestamp = "", nil, nil
		}
		if i%4 == 0 {
			pod.Spec.SchedulerName = "other"
		}
		if i%4 == 1 {
			pod.Labels = map[string]string{slack.PlaceholderLabel: "true"}
		}
		kept, err := keeper.Reduce(pod)
		if err != nil {
			t.Fatal(err)
		}
		for what, read := range readers {
			if got, want := read(kept.(*v1.Pod)), read(pod); !equality.Semantic.DeepEqual(got, want) {
				t.Fatalf("pod %d, %s: %v of the reduced pod, want %v", i, what, got, want)
			}
		}
	}
}

// The same is true of nodes, and of DaemonSets of which there is no pod yet.
func TestReducedNodesAndDaemonSetsAreReadAsWholeOnes(t *testing.T) {
	keeper, fill := view.NewKeeper(), randompod.Filler(4)
	for range 500 {
		node, set := &v1.Node{}, &appsv1.DaemonSet{}
		fill.Fill(node)
		fill.Fill(set)
		object, _ := keeper.Reduce(node)
		kept := object.(*v1.Node)
		for what, read := range map[string]func(*v1.Node) any{
			"told": func(node *v1.Node) any { return view.TrimNodeForPlanning(node) },
			"meta": func(node *v1.Node) any {
				return []any{node.UID, node.ResourceVersion, node.CreationTimestamp, node.Annotations, node.Labels}
			},
			"spec": func(node *v1.Node) any {
				return []any{node.Spec.ProviderID, node.Spec.Unschedulable, node.Spec.Taints}
			},
			"mark": func(node *v1.Node) any {
				mark, ours := drain.MarkOf(node)
				return []any{mark, ours}
			},
		} {
			if got, want := read(kept), read(node); !equality.Semantic.DeepEqual(got, want) {
				t.Fatalf("%s: %v of the reduced node, want %v", what, got, want)
			}
		}
		object, _ = keeper.Reduce(set)
		keptSet := object.(*appsv1.DaemonSet)
		if scaleup.IdentityOf(keptSet) != scaleup.IdentityOf(set) {
			t.Fatalf("the DaemonSet became %v", scaleup.IdentityOf(keptSet))
		}
		got := view.TrimIncomingPodForPlanning(scaleup.PodOf(keptSet))
		want := view.TrimIncomingPodForPlanning(scaleup.PodOf(set))
		if string(got) != string(want) {
			t.Fatalf("a pod of the reduced DaemonSet is told as\n%q, want\n%q", got, want)
		}
	}
}

// ordinaryPod returns a pod as a cluster in use has them: one of a ReplicaSet of 100, with two containers, as the API
// server answers. Its text is made new, as by a decoder.
func ordinaryPod(number int) *v1.Pod {
	text := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	set := text("checkout-%d-6f9d8b7c5d", number/100)
	container := func(name string) v1.Container {
		c := v1.Container{Name: text("%s", name), Image: text("registry.example/shop/%s:1.4.2", name),
			ImagePullPolicy: v1.PullIfNotPresent, TerminationMessagePath: text("/dev/termination-log"),
			Ports: []v1.ContainerPort{{Name: text("http"), ContainerPort: 8080, Protocol: v1.ProtocolTCP}},
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("150m"), "memory": resource.MustParse("256Mi")},
				Limits:   v1.ResourceList{"memory": resource.MustParse("512Mi")}},
			ReadinessProbe: probe(), LivenessProbe: probe()}
		for i := range 12 {
			c.Env = append(c.Env, v1.EnvVar{Name: text("SETTING_%d", i), Value: text("a value of some length %d", i)})
		}
		for i := range 4 {
			c.VolumeMounts = append(c.VolumeMounts,
				v1.VolumeMount{Name: text("volume-%d", i), MountPath: text("/etc/checkout/%d", i)})
		}
		return c
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: text("team-%02d", number%20),
		Name: text("%s-%05d", set, number), UID: types.UID(text("0d7a2a52-0000-4000-8000-%012d", number)),
		ResourceVersion: text("%d", 1_000_000+number), CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		Labels: map[string]string{text("app.kubernetes.io/name"): text("checkout"),
			text("pod-template-hash"): text("6f9d8b7c5d"), text("app.kubernetes.io/version"): text("1.4.2")},
		Annotations: map[string]string{text("prometheus.io/scrape"): text("true"),
			text("checksum/config"): text("%064d", number)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: text("apps/v1"), Kind: text("ReplicaSet"), Name: set,
			UID: types.UID(text("1c7a2a52-0000-4000-8000-%012d", number/100)), Controller: new(true),
			BlockOwnerDeletion: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: text("kube-controller-manager"), FieldsV1: metav1.NewFieldsV1(string(make([]byte, 1500)))},
			{Manager: text("kubelet"), FieldsV1: metav1.NewFieldsV1(string(make([]byte, 900)))}}},
		Spec: v1.PodSpec{NodeName: text("ip-10-16-%d-%d.eu-central-1.compute.internal", number/250, number%250),
			RestartPolicy: v1.RestartPolicyAlways, SchedulerName: text("default-scheduler"), Priority: new(int32(0)),
			TerminationGracePeriodSeconds: new(int64(30)), ServiceAccountName: text("checkout"),
			Containers: []v1.Container{container("app"), container("proxy")},
			Tolerations: []v1.Toleration{
				{Key: text(v1.TaintNodeNotReady), Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))},
				{Key: text(v1.TaintNodeUnreachable), Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, HostIP: text("10.16.0.1"), PodIP: text("10.17.0.%d", number%250)}}
	for i := range 3 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: text("volume-%d", i), VolumeSource: v1.VolumeSource{
			Secret: &v1.SecretVolumeSource{SecretName: text("checkout-secret-%d", i)}}})
	}
	addOrdinaryStatus(pod)
	return pod
}

func probe() *v1.Probe {
	return &v1.Probe{PeriodSeconds: 10, ProbeHandler: v1.ProbeHandler{
		HTTPGet: &v1.HTTPGetAction{Path: strings.Clone("/healthz"), Port: intstr.FromInt32(8080), Scheme: v1.URISchemeHTTP}}}
}

// addOrdinaryStatus writes what a kubelet reports of a pod that runs.
func addOrdinaryStatus(pod *v1.Pod) {
	for _, condition := range []v1.PodConditionType{"PodReadyToStartContainers", v1.PodInitialized, v1.PodReady,
		v1.ContainersReady, v1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: condition,
			Status: v1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_010, 0)})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{Name: c.Name, Ready: true,
			Image: c.Image, ImageID: fmt.Sprintf("%s@sha256:%064d", c.Image, 1),
			ContainerID: fmt.Sprintf("containerd://%064d", 2), Started: new(true),
			State:              v1.ContainerState{Running: &v1.ContainerStateRunning{}},
			AllocatedResources: c.Resources.Requests.DeepCopy(), Resources: c.Resources.DeepCopy()})
	}
}

// heapOfStore returns the bytes of heap that a store of an informer takes for each of so many ordinary pods.
func heapOfStore(pods int, reduce cache.TransformFunc) float64 {
	live := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := live()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for i := range pods {
		object, _ := reduce(ordinaryPod(i))
		_ = store.Add(object)
	}
	after := live()
	runtime.KeepAlive(store)
	return float64(after-before) / float64(pods)
}

// 80,000 pods are to fit into 500 MiB with all else, of which a collector of garbage leaves half to what lives: so many
// bytes may one have.
const mostBytesOfPod = 2048

func TestAReducedPodIsSmall(t *testing.T) {
	if got := heapOfStore(8000, view.NewKeeper().Reduce); got > mostBytesOfPod {
		t.Errorf("a pod takes %.0f bytes, at most %d are to be", got, mostBytesOfPod)
	}
}

// The memory of 80,000 pods in the store of an informer, whole and reduced.
func BenchmarkStoreOfPods(b *testing.B) {
	for name, reduce := range map[string]cache.TransformFunc{
		"whole": func(object any) (any, error) { return object, nil }, "reduced": view.NewKeeper().Reduce} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(heapOfStore(80_000, reduce), "B/pod")
			}
		})
	}
}
