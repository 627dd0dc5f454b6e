package e2e

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A pairLoad is a ReplicaSet or a DaemonSet of a pair, whose pods have a limit as large as their request unless it says
// otherwise.
type pairLoad struct {
	name       string
	bound      []string // the nodes of pods that run at the start
	waiting    int      // further pods, which the scheduler places
	late       int      // pods that `then` adds to them
	cpu, limit string
	priority   string // class
	zone       string // the zone of the volume of its only pod; empty: it has none
	daemon     bool
	lingers    bool   // a bare pod that ends only when its finalizer is removed
	endsOn     string // the node on which one of its pods has to be in the end
}

const lingering = "example.com/lingers"

// load creates the pods of a load that are bound, and what owns them and makes the others.
func (s *scaled) load(p pair, l pairLoad) {
	s.t.Helper()
	template := s.podTemplate(p, l)
	var pods []*v1.Pod
	for i, node := range l.bound {
		pod := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Namespace, pod.Name, pod.Spec.NodeName = "default", fmt.Sprintf("%s-%d", l.name, i), node
		if l.lingers {
			pod.Finalizers = []string{lingering}
		}
		pods = append(pods, pod)
	}
	if err := s.cluster.CreatePods(s.ctx, pods); err != nil || l.lingers {
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
	meta, selector := metav1.ObjectMeta{Namespace: "default", Name: l.name},
		&metav1.LabelSelector{MatchLabels: template.Labels}
	var err error
	if l.daemon {
		_, err = s.cluster.Client.AppsV1().DaemonSets("default").Create(s.ctx, &appsv1.DaemonSet{ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	} else {
		_, err = s.cluster.Client.AppsV1().ReplicaSets("default").Create(s.ctx, &appsv1.ReplicaSet{ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(len(l.bound) + l.waiting)), Selector: selector,
				Template: template}}, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// podTemplate returns the pods of a load, and creates the volume of one.
func (s *scaled) podTemplate(p pair, l pairLoad) v1.PodTemplateSpec {
	s.t.Helper()
	if l.limit == "" {
		l.limit = l.cpu
	}
	amounts := func(cpu string) v1.ResourceList {
		return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Mi")}
	}
	// A pod that selected a group would have slack kept on the nodes of this group alone.
	ofPair := v1.NodeSelectorRequirement{Key: "pair", Operator: v1.NodeSelectorOpIn, Values: []string{p.name}}
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": l.name}},
		Spec: v1.PodSpec{Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: oneOf(ofPair)}}, PriorityClassName: l.priority,
			Containers: []v1.Container{{Name: "c", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
				Requests: amounts(l.cpu), Limits: amounts(l.limit)}}}}}
	if l.zone != "" {
		s.createVolume(l.name, l.zone)
		template.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: l.name}}}}
	}
	return template
}

// oneOf selects nodes by one label.
func oneOf(label v1.NodeSelectorRequirement) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: []v1.NodeSelectorRequirement{label}}}}
}

// createVolume creates a claim and the volume of a zone that it is bound to.
func (s *scaled) createVolume(name, zone string) {
	s.t.Helper()
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	claim, err := s.cluster.Client.CoreV1().PersistentVolumeClaims("default").Create(s.ctx, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: v1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: new(""), VolumeName: name,
			Resources: v1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	reached := v1.NodeSelectorRequirement{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}
	if _, err := s.cluster.Client.CoreV1().PersistentVolumes().Create(s.ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}},
		Spec: v1.PersistentVolumeSpec{Capacity: size, AccessModes: modes,
			ClaimRef: &v1.ObjectReference{Namespace: "default", Name: name, UID: claim.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: "disk.example.com", VolumeHandle: name}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: oneOf(reached)}}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity = v1.ClaimBound, modes, size
	if _, err := s.cluster.Client.CoreV1().PersistentVolumeClaims("default").UpdateStatus(s.ctx, claim,
		metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// replicas makes a ReplicaSet have another number of pods.
func (s *scaled) replicas(set string, number int) {
	s.t.Helper()
	if _, err := s.cluster.Client.AppsV1().ReplicaSets("default").Patch(s.ctx, set, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, number), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// letEnd takes the finalizer off a pod that lingers.
func (s *scaled) letEnd(pod string) {
	s.t.Helper()
	if _, err := s.cluster.Client.CoreV1().Pods("default").Patch(s.ctx, pod, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}
