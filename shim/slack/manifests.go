package slack

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// PriorityClassName is the class of placeholders that are pods.
const PriorityClassName = "loadline-placeholder"

// placeholderPriority is below that of all pods that state none, and the lowest for which Cluster Autoscaler adds
// nodes.
const placeholderPriority = -10

// IsPlaceholder says whether a pod is one of ours, which only keeps room free and gives way to all others: labelled as
// one, in the namespace of slack, made by a Deployment there, and of a priority as low as ours. Anybody can write the
// label, but who creates Deployments in that namespace is an administrator. The engine has the same rule.
func IsPlaceholder(pod *v1.Pod, namespace string) bool {
	if _, labelled := pod.Labels[PlaceholderLabel]; !labelled || pod.Namespace != namespace {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.APIVersion, "apps/") &&
		pod.Spec.Priority != nil && *pod.Spec.Priority <= placeholderPriority
}

// CapacityBuffers returns the objects that have an autoscaler keep the shapes free: for each a PodTemplate, and a
// CapacityBuffer of as many replicas.
func CapacityBuffers(shapes []Shape) []any {
	out := namespaces(shapes)
	for _, shape := range shapes {
		meta := objectMeta(shape)
		out = append(out,
			&v1.PodTemplate{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"}, ObjectMeta: meta,
				Template: shape.Pod},
			&CapacityBuffer{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling.x-k8s.io/v1beta1",
				Kind: "CapacityBuffer"}, ObjectMeta: meta,
				Spec: CapacityBufferSpec{ProvisioningStrategy: ActiveCapacity,
					PodTemplateRef: &LocalObjectTemplate{Name: shape.Name}, Replicas: &shape.Replicas}})
	}
	return out
}

// Deployments returns the objects that keep the shapes free by pods which give way to all others: one Deployment for
// each, whose pods are of a priority class below zero that preempts nothing, and end at once.
func Deployments(shapes []Shape) []any {
	never := v1.PreemptNever
	out := append(namespaces(shapes), &schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: PriorityClassName}, Value: placeholderPriority, PreemptionPolicy: &never,
		Description: "Pods that keep room free and give way to all others.",
	})
	for _, shape := range shapes {
		own := map[string]string{PlaceholderLabel: "true", ShapeLabel: shape.Name}
		pod := *shape.Pod.DeepCopy()
		// Without the labels of the pod that it is a copy of: Services and budgets are not to count it.
		pod.Labels = own
		pod.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
		apartFromCopies(shape, &pod.Spec)
		pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = PriorityClassName, &never
		restrict(&pod.Spec)
		grace, mount := int64(0), false
		pod.Spec.TerminationGracePeriodSeconds, pod.Spec.AutomountServiceAccountToken = &grace, &mount
		replicas := shape.Replicas
		out = append(out, &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: objectMeta(shape),
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: own},
				Template: pod}})
	}
	return out
}

// restrict gives pods no rights, as the Pod Security standard "restricted" asks of them.
func restrict(spec *v1.PodSpec) {
	no, yes, nobody := false, true, int64(65535)
	spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &nobody, RunAsGroup: &nobody,
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	for _, containers := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			containers[i].SecurityContext = &v1.SecurityContext{AllowPrivilegeEscalation: &no,
				ReadOnlyRootFilesystem: &yes, Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}}
		}
	}
}

// podSecurity are labels of a namespace in which only pods without rights run.
func podSecurity() map[string]string {
	labels := map[string]string{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	return labels
}

// apartFromCopies keeps copies of a pod apart where the pod keeps apart from its like: they lack its labels.
func apartFromCopies(shape Shape, spec *v1.PodSpec) {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return
	}
	anti := spec.Affinity.PodAntiAffinity
	for _, term := range anti.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || !selector.Matches(labels.Set(shape.Pod.Labels)) {
			continue
		}
		anti.RequiredDuringSchedulingIgnoredDuringExecution = append(
			anti.RequiredDuringSchedulingIgnoredDuringExecution, v1.PodAffinityTerm{TopologyKey: term.TopologyKey,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ShapeLabel: shape.Name}}})
	}
}

func objectMeta(shape Shape) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: shape.Name, Namespace: shape.Namespace,
		Labels: map[string]string{ShapeLabel: shape.Name}}
}

// namespaces are those of shapes that are no copies: they may not be there yet.
func namespaces(shapes []Shape) []any {
	names := map[string]bool{}
	for _, shape := range shapes {
		if !shape.Copy {
			names[shape.Namespace] = true
		}
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, &v1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: podSecurity()}})
	}
	return out
}

// YAML writes objects as documents of one file, in order.
func YAML(objects []any) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("%T: %w", object, err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes(), nil
}
