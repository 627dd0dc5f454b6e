// Package slack turns a plan of slack into objects of Kubernetes that keep it: CapacityBuffers, or Deployments of pods
// that give way to all others.
package slack

import (
	"fmt"
	"hash/fnv"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// Labels of what is made here.
const (
	// PlaceholderLabel is on pods that are placeholders: the engine does not count them.
	PlaceholderLabel = "loadline.dev/placeholder"
	// ShapeLabel tells the shapes of placeholders apart.
	ShapeLabel = "loadline.dev/slack-shape"
)

// DefaultNamespace is where placeholders that stand for no pod in particular are put.
const DefaultNamespace = "loadline-slack"

// workloads are pod templates by who asks for copies, as the engine names them: "Deployment shop/web".
type workloads map[string]template

type template struct {
	namespace string
	pod       *v1.PodTemplateSpec
}

// Gatherer keeps the pod templates that copies are made from. It gets each object of the cluster once.
type Gatherer struct{ known workloads }

// NewGatherer returns one that knows none.
func NewGatherer() *Gatherer { return &Gatherer{workloads{}} }

// AddObject takes note of a workload; of other objects it takes none.
func (g *Gatherer) AddObject(object any) {
	if kind, meta, pod := templateOf(object); pod != nil {
		g.known[fmt.Sprintf("%s %s/%s", kind, meta.Namespace, meta.Name)] = template{meta.Namespace, pod}
	}
}

func templateOf(object any) (kind string, meta *metav1.ObjectMeta, pod *v1.PodTemplateSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return "Deployment", &o.ObjectMeta, &o.Spec.Template
	case *appsv1.ReplicaSet:
		return "ReplicaSet", &o.ObjectMeta, &o.Spec.Template
	case *appsv1.StatefulSet:
		return "StatefulSet", &o.ObjectMeta, &o.Spec.Template
	case *batchv1.Job:
		return "Job", &o.ObjectMeta, &o.Spec.Template
	case *v1.ReplicationController:
		return "ReplicationController", &o.ObjectMeta, o.Spec.Template
	}
	return "", nil, nil
}

// copies is the annotation by which pods, and workloads for theirs, ask for copies.
const copies = "loadline.dev/slack-copies"

// AsksForCopies says whether a pod or a workload asks for copies of its pods.
func AsksForCopies(object any) bool {
	if pod, ok := object.(*v1.Pod); ok {
		return pod.Annotations[copies] != ""
	}
	_, meta, pod := templateOf(object)
	return pod != nil && (meta.Annotations[copies] != "" || pod.Annotations[copies] != "")
}

// AddPod takes note of a pod that asks for copies of itself, or of its owner.
func (g *Gatherer) AddPod(pod *v1.Pod) {
	if !AsksForCopies(pod) {
		return
	}
	name := fmt.Sprintf("Pod %s/%s", pod.Namespace, pod.Name)
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name = fmt.Sprintf("%s %s/%s", owner.Kind, pod.Namespace, owner.Name)
	}
	if _, known := g.known[name]; !known {
		g.known[name] = template{pod.Namespace,
			&v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}}
	}
}

// Shape is one kind of placeholder, with the pod in its place.
type Shape struct {
	// Name is a valid name of an object: equal shapes have equal names.
	Name, Namespace string
	Replicas        int32
	// Pod requests what the placeholder keeps, and may run where that is kept. Of a copy it is the pod that is copied.
	Pod  v1.PodTemplateSpec
	Copy bool
}

// In returns the shape for another namespace. Its pod affinity terms still refer to pods of the namespace that it had.
func (s Shape) In(namespace string) Shape {
	if s.Namespace == namespace {
		return s
	}
	pod := *s.Pod.DeepCopy()
	pin := func(term *v1.PodAffinityTerm) {
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			term.Namespaces = []string{s.Namespace}
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for i := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			pin(&a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			pin(&a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			pin(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			pin(&a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
	s.Pod, s.Namespace = pod, namespace
	return s
}

// Shapes returns the shapes of a plan, in its order. Those that keep nothing, or whose pod is not known, are left out;
// warnings name the latter.
func (g *Gatherer) Shapes(plan *loadlinev1.PlanSlackResponse, namespace string) (shapes []Shape, warnings []string) {
	classes := map[string]*loadlinev1.ClassSlack{}
	for _, class := range plan.GetClasses() {
		classes[class.GetName()] = class
	}
	sources := map[string][]string{}
	for _, mirrored := range plan.GetMirrored() {
		sources[mirrored.GetKey()] = mirrored.GetSources()
	}
	for _, s := range plan.GetShapes() {
		shape := Shape{Name: shapeName(s), Namespace: namespace, Replicas: int32(s.GetCount())}
		if class := classes[s.GetOwner()]; s.GetKind() != loadlinev1.Placeholder_MIRRORED {
			if class == nil || s.GetSize().GetMilliCpu() == 0 && s.GetSize().GetMemoryBytes() == 0 {
				continue
			}
			shape.Pod = standardPod(class, s.GetSize())
		} else {
			from, known := g.find(sources[s.GetOwner()])
			if !known {
				warnings = append(warnings,
					fmt.Sprintf("the pod of %v is not known: no copies of it", sources[s.GetOwner()]))
				continue
			}
			shape.Namespace, shape.Pod, shape.Copy = from.namespace, copyPod(from.pod), true
		}
		shapes = append(shapes, shape)
	}
	return shapes, warnings
}

func (g *Gatherer) find(sources []string) (template, bool) {
	for _, source := range sources {
		if found, ok := g.known[source]; ok {
			return found, true
		}
	}
	return template{}, false
}

func shapeName(s *loadlinev1.ShapeSlack) string {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %d %d %d", s.GetOwner(), s.GetKind(), s.GetSize().GetMilliCpu(), s.GetSize().GetMemoryBytes())
	return fmt.Sprintf("slack-%016x", hash.Sum64())
}

// without keeps pods off nodes that have any of these labels.
func without(keys []string) *v1.Affinity {
	if len(keys) == 0 {
		return nil
	}
	var absent []v1.NodeSelectorRequirement
	for _, key := range keys {
		absent = append(absent, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpDoesNotExist})
	}
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: absent}}}}}
}

// standardPod returns a pod that runs where the engine has placeholders of the class, and nowhere else.
func standardPod(class *loadlinev1.ClassSlack, size *loadlinev1.CpuAndMemory) v1.PodTemplateSpec {
	requests := v1.ResourceList{}
	if size.GetMilliCpu() > 0 {
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity(size.GetMilliCpu(), resource.DecimalSI)
	}
	if size.GetMemoryBytes() > 0 {
		requests[v1.ResourceMemory] = *resource.NewQuantity(size.GetMemoryBytes(), resource.BinarySI)
	}
	pod := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{pause("placeholder", requests)}}}
	for _, label := range class.GetNeededLabels() {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[label.GetKey()] = label.GetValue()
	}
	pod.Spec.Affinity = without(class.GetAbsentLabels())
	for _, taint := range class.GetTaints() {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: taint.GetKey(),
			Operator: v1.TolerationOpEqual, Value: taint.GetValue(), Effect: v1.TaintEffect(taint.GetEffect())})
	}
	return pod
}

// copyPod returns what decides where a pod runs, and nothing of what it does. Ports of the node, the host's network and
// a scheduler of the tenant's are left out: the copy runs in our namespace, and with our rights.
func copyPod(from *v1.PodTemplateSpec) v1.PodTemplateSpec {
	spec := from.Spec.DeepCopy()
	pod := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(from.Labels)}, Spec: v1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints}}
	for _, c := range spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, pause(c.Name, requestsOf(c)))
	}
	// An init container that ends asks for room as well, at the start; what it asks for beyond the others is kept too.
	for _, c := range spec.InitContainers {
		p := pause(c.Name, requestsOf(c))
		p.RestartPolicy = c.RestartPolicy
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, p)
	}
	return pod
}

// requestsOf returns what the API server makes of the container: what it limits without a request, it requests.
func requestsOf(c v1.Container) v1.ResourceList {
	requests := maps.Clone(c.Resources.Limits)
	if requests == nil {
		requests = v1.ResourceList{}
	}
	maps.Copy(requests, c.Resources.Requests)
	return requests
}

// pauseImage is a container that does nothing.
const pauseImage = "registry.k8s.io/pause:3.10"

// pause returns a container that keeps room free. Its limits are its requests: without limits it would count as all of
// its node in scores and at the load line, though it uses nothing.
func pause(name string, requests v1.ResourceList) v1.Container {
	return v1.Container{Name: name, Image: pauseImage,
		Resources: v1.ResourceRequirements{Requests: requests, Limits: requests}}
}
