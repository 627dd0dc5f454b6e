package main

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	gpuResource   = "nvidia.com/gpu"
	groupTaint    = "dedicated"
	deletionTaint = "ToBeDeletedByClusterAutoscaler"
	softTaint     = "DeletionCandidateOfClusterAutoscaler"
)

// startupTaints are those that nodes carry until some agent has started.
var startupTaints = []string{"node.cloudprovider.kubernetes.io/uninitialized", "node.cilium.io/agent-not-ready",
	"startup-taint.cluster-autoscaler.kubernetes.io/agent", "ebs.csi.aws.com/agent-not-ready"}

func amounts(milliCPU, mib, gpus int64) v1.ResourceList {
	list := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(mib<<20, resource.BinarySI)}
	if gpus > 0 {
		list[gpuResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

// like returns a node of a machine type.
func like(name, zone string, kind machineType, allocatable [3]int64) *v1.Node {
	arch := "amd64"
	if kind.arm {
		arch = "arm64"
	}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name,
		v1.LabelOSStable: "linux", v1.LabelArchStable: arch, v1.LabelInstanceTypeStable: kind.name,
		v1.LabelTopologyRegion: "r"}}}
	if zone != "" {
		n.Labels[v1.LabelTopologyZone] = "r" + zone
	}
	n.Status.Allocatable = amounts(allocatable[0], allocatable[1], allocatable[2])
	n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("58")
	n.Status.Capacity = amounts(kind.milliCPU, kind.mib, kind.gpus)
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// dress adds labels and taints of a group.
func (g *group) dress(n *v1.Node) {
	n.Labels["eks.amazonaws.com/nodegroup"] = g.name
	n.Labels["eks.amazonaws.com/capacityType"] = "ON_DEMAND"
	if g.spot {
		n.Labels["eks.amazonaws.com/capacityType"] = "SPOT"
	}
	if g.tainted {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: groupTaint, Value: "yes", Effect: v1.TaintEffectNoSchedule})
	}
}

func (g *group) templateNode() *v1.Node {
	n := like("template-of-"+g.name, g.zone, g.kind,
		[3]int64{g.kind.milliCPU - 100, g.kind.mib - g.kind.mib/16, g.kind.gpus})
	g.dress(n)
	return n
}

func (w *world) nodeObject(n *node) *v1.Node {
	zone, kind := "", machineTypes[0]
	if n.group != nil {
		zone, kind = n.group.zone, n.group.kind
	}
	allocatable := n.allocatable
	if n.devices > 0 {
		allocatable[2] = 0
	}
	o := like(n.name, zone, kind, allocatable)
	o.UID, o.CreationTimestamp = types.UID(n.uid), metav1.Unix(n.made, 0)
	if n.group != nil {
		n.group.dress(o)
		o.Spec.ProviderID = n.machine.id
	}
	for key, value := range n.labels {
		o.Labels[key] = value
	}
	o.Spec.Taints = append(o.Spec.Taints, n.taints...)
	o.Spec.Unschedulable = n.cordoned
	if n.notReady {
		o.Status.Conditions[0].Status = v1.ConditionFalse
		o.Status.Conditions[0].LastTransitionTime = metav1.Unix(w.now-60, 0)
		o.Spec.Taints = append(o.Spec.Taints, v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	}
	if n.startup > 0 {
		o.Spec.Taints = append(o.Spec.Taints,
			v1.Taint{Key: startupTaints[n.made%int64(len(startupTaints))], Effect: v1.TaintEffectNoSchedule})
	}
	if n.soft {
		o.Spec.Taints = append(o.Spec.Taints,
			v1.Taint{Key: softTaint, Value: "1", Effect: v1.TaintEffectPreferNoSchedule})
	}
	if n.removal != nil {
		o.Spec.Taints = append(o.Spec.Taints, v1.Taint{Key: deletionTaint, Value: strconv.FormatInt(n.removal.since, 10),
			Effect: v1.TaintEffectNoSchedule})
	}
	if n.kept {
		o.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
	}
	return o
}

var ownerKinds = map[kind]string{deployment: "ReplicaSet", statefulSet: "StatefulSet", job: "Job",
	daemonSet: "DaemonSet"}

func (d *workload) labels() map[string]string { return map[string]string{"app": d.name} }
func (d *workload) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: d.labels()}
}

// podObject returns a pod; without a node it waits.
func (d *workload) podObject(p *pod, n *node) *v1.Pod {
	o := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: p.name(), Labels: d.labels(),
		UID: types.UID(fmt.Sprintf("00000000-0000-4000-9000-%012d", p.number)), CreationTimestamp: metav1.Unix(p.made, 0),
		Annotations: map[string]string{}}}
	if owner := ownerKinds[d.kind]; owner != "" {
		api := "apps/v1"
		if d.kind == job {
			api = "batch/v1"
		}
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: owner, Name: d.name,
			UID: types.UID(d.name), Controller: new(true)}}
	}
	if d.safe != "" {
		o.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = d.safe
	}
	if d.copies > 0 {
		o.Annotations["loadline.dev/slack-copies"] = strconv.Itoa(d.copies)
	}
	c := v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: amounts(d.milliCPU, d.mib, d.gpus)}}
	if d.limits > 0 {
		c.Resources.Limits = amounts(d.milliCPU*d.limits, d.mib*d.limits, d.gpus)
	}
	o.Spec = v1.PodSpec{Containers: []v1.Container{c}, Priority: d.priority, TerminationGracePeriodSeconds: &d.grace,
		RestartPolicy: v1.RestartPolicyAlways}
	d.addRules(o)
	o.Status.Phase = v1.PodPending
	if n != nil {
		o.Spec.NodeName, o.Status.Phase = n.name, v1.PodRunning
		o.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	}
	return o
}

func (d *workload) addRules(o *v1.Pod) {
	selector := map[string]string{}
	if d.zone != "" {
		selector[v1.LabelTopologyZone] = "r" + d.zone
	}
	if d.group != "" {
		selector["eks.amazonaws.com/nodegroup"] = d.group
	}
	if !d.arm {
		selector[v1.LabelArchStable] = "amd64"
	}
	o.Spec.NodeSelector = selector
	if d.tolerates {
		o.Spec.Tolerations = []v1.Toleration{{Key: groupTaint, Operator: v1.TolerationOpExists},
			{Key: "operator", Operator: v1.TolerationOpExists}}
	}
	if d.kind == daemonSet {
		o.Spec.Tolerations = append(o.Spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists})
	}
	if d.apart {
		o.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{LabelSelector: d.selector(),
				TopologyKey: v1.LabelHostname}}}}
	}
	if d.spread > 0 {
		o.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: d.maxSkew, LabelSelector: d.selector(),
			TopologyKey:       []string{v1.LabelHostname, v1.LabelTopologyZone}[d.spread-1],
			WhenUnsatisfiable: v1.DoNotSchedule}}
	}
	if d.local {
		o.Spec.Volumes = append(o.Spec.Volumes, v1.Volume{Name: "scratch",
			VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}
	if d.volumes != "" {
		o.Spec.Volumes = append(o.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: d.name}}})
	}
}

// objects returns the owners, budgets and volumes as they are now.
func (w *world) objects() []any {
	out := []any{&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "batch"}}}
	for _, d := range w.work {
		meta := metav1.ObjectMeta{Namespace: d.namespace, Name: d.name, UID: types.UID(d.name)}
		template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: d.labels()},
			Spec: d.podObject(&pod{of: d}, nil).Spec}
		replicas := new(int32(d.replicas))
		switch d.kind {
		case deployment:
			out = append(out, &appsv1.ReplicaSet{ObjectMeta: meta,
				Spec: appsv1.ReplicaSetSpec{Replicas: replicas, Selector: d.selector(), Template: template}})
		case statefulSet:
			out = append(out, &appsv1.StatefulSet{ObjectMeta: meta,
				Spec: appsv1.StatefulSetSpec{Replicas: replicas, Selector: d.selector(), Template: template}})
		case job:
			out = append(out, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: replicas, Template: template}})
		case daemonSet:
			out = append(out, &appsv1.DaemonSet{ObjectMeta: meta,
				Spec: appsv1.DaemonSetSpec{Selector: d.selector(), Template: template}})
		}
		if d.budget != nil {
			out = append(out, w.budget(d, meta))
		}
		if d.volumes != "" {
			out = append(out, volumeObjects(d, meta)...)
		}
	}
	return out
}

func (w *world) budget(d *workload, meta metav1.ObjectMeta) *policyv1.PodDisruptionBudget {
	all := d.count(w)
	running := int32(all - len(d.waiting))
	desired := max(0, int32(all)-*d.budget)
	return &policyv1.PodDisruptionBudget{ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: d.selector(), MaxUnavailable: new(intstr.FromInt32(*d.budget))},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: int32(all), CurrentHealthy: running,
			DesiredHealthy: desired, DisruptionsAllowed: max(0, running-desired)}}
}

// volumeObjects are a claim that pods share, and its volume in one zone.
func volumeObjects(d *workload, meta metav1.ObjectMeta) []any {
	volume := "pv-" + d.name
	claim := &v1.PersistentVolumeClaim{ObjectMeta: meta,
		Spec:   v1.PersistentVolumeClaimSpec{VolumeName: volume, StorageClassName: new("gp3")},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	return []any{claim,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: "ebs.csi.aws.com"},
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: v1.PersistentVolumeSpec{
			ClaimRef: &v1.ObjectReference{Namespace: d.namespace, Name: d.name, UID: meta.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com",
				VolumeHandle: volume}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone,
					Operator: v1.NodeSelectorOpIn, Values: []string{"r" + d.volumes}}}}}}}},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}}
}
