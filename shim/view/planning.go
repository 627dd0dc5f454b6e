package view

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/unknownfields"
)

// Field numbers of k8s.io/api/core/v1 that only planners read; see trim.go.
const (
	metaCreationTimestamp = 8
	metaAnnotations       = 12
	metaOwnerReferences   = 13

	specGracePeriod = 4
	specPriority    = 25

	nodeSpecProviderID   = 3
	nodeStatusConditions = 4
)

// Annotations that planners read of pods: those of Cluster Autoscaler under their names, those that Karpenter's users
// know, and our own.
const (
	autoscalerAnnotations  = "cluster-autoscaler.kubernetes.io/"
	annotationConfigFile   = "kubernetes.io/config.source"
	annotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
	annotationDoNotEvict   = "karpenter.sh/do-not-evict" // as Karpenter called it before
	slackAnnotations       = "loadline.dev/slack"
)

// maxOwnerText bounds what a pod says of its owner: no object has a longer name.
const maxOwnerText = 253

// NewForPlanning is NewForFilters for a view that is also to plan: it takes disruption budgets and workloads as
// objects, and sends of pods and nodes what autoscalers read.
func NewForPlanning(conn grpc.ClientConnInterface, name string) *View {
	v := New(conn, name)
	v.trimNode, v.trimPod = TrimNodeForPlanning, TrimPodForPlanning
	return v
}

// TrimPodForPlanning is TrimPodForFilters with what planners read as well.
func TrimPodForPlanning(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, filters: true, status: true, planning: true})
}

// TrimIncomingPodForPlanning is TrimIncomingPodForFilters with what planners read as well.
func TrimIncomingPodForPlanning(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, filters: true, identity: true, planning: true})
}

// TrimNodeForPlanning is TrimNodeForFilters with what planners read as well.
func TrimNodeForPlanning(node *v1.Node) []byte {
	return trimNode(node, detail{filters: true, planning: true})
}

// appendPlanningMeta appends what planners read of a pod's metadata. The age of a pod counts in kube-system only.
func appendPlanningMeta(b []byte, pod *v1.Pod) []byte {
	if pod.Namespace == metav1.NamespaceSystem && !pod.CreationTimestamp.IsZero() {
		b = appendObject(b, metaCreationTimestamp, &pod.CreationTimestamp)
	}
	return appendLabels(b, metaAnnotations, PlanningAnnotations(pod.Annotations))
}

// appendController appends the owner that has made a pod.
func appendController(b []byte, pod *v1.Pod) []byte {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			// An API server takes any text here. What exists has shorter names.
			b = appendObject(b, metaOwnerReferences,
				&metav1.OwnerReference{APIVersion: text.Bound(o.APIVersion, maxOwnerText),
					Kind: text.Bound(o.Kind, maxOwnerText),
					Name: text.Bound(o.Name, maxOwnerText), UID: types.UID(text.Bound(string(o.UID), maxOwnerText)),
					Controller: o.Controller})
		}
	}
	return b
}

// DeletionCostMark is the annotation that holds the pod-deletion-cost which an autoscaler of ours has written to a pod.
const DeletionCostMark = "loadline.dev/pod-deletion-cost"

// HasOurDeletionCost says whether a pod states a pod-deletion-cost, and an autoscaler of ours has written it.
func HasOurDeletionCost(annotations map[string]string) bool {
	mark, marked := annotations[DeletionCostMark]
	cost, stated := annotations[v1.PodDeletionCost]
	return marked && stated && mark == cost
}

// PlanningAnnotations returns those of an object's annotations that planners read. They do not read what they have had
// written themselves: no plan follows from itself, and pods of one template stay alike.
func PlanningAnnotations(annotations map[string]string) map[string]string {
	var out map[string]string
	for key, value := range annotations {
		switch {
		case strings.HasPrefix(key, autoscalerAnnotations), strings.HasPrefix(key, slackAnnotations),
			key == v1.MirrorPodAnnotationKey, key == annotationConfigFile, key == annotationDoNotDisrupt,
			key == annotationDoNotEvict,
			key == v1.PodDeletionCost && !HasOurDeletionCost(annotations), key == unknownfields.Annotation:
			if out == nil {
				out = map[string]string{}
			}
			out[text.Valid(key)] = text.Valid(value)
		}
	}
	return out
}

// protectedSince returns the start of a pod that annotations may protect for some time from then on. It is nil for all
// others: pods of one template stay alike.
func protectedSince(pod *v1.Pod) *metav1.Time {
	for _, key := range []string{annotationDoNotDisrupt, annotationDoNotEvict} {
		if value, stated := pod.Annotations[key]; stated && value != "true" && value != "false" {
			return pod.Status.StartTime
		}
	}
	return nil
}

// appendPlanningSpec appends what planners read of a pod's spec.
func appendPlanningSpec(b []byte, spec *v1.PodSpec) []byte {
	if spec.TerminationGracePeriodSeconds != nil {
		b = appendVarint(b, specGracePeriod, uint64(*spec.TerminationGracePeriodSeconds))
	}
	if spec.Affinity != nil && requiredAffinity(spec.Affinity) == nil {
		b = appendObject(b, specAffinity, &v1.Affinity{}) // that it states one counts
	}
	for i := range spec.Volumes {
		if volume, ok := planningVolume(&spec.Volumes[i]); ok {
			b = appendObject(b, specVolumes, volume)
		}
	}
	return b
}

// planningVolume returns what planners read of a volume that is local to its node; false for all others.
func planningVolume(v *v1.Volume) (*v1.Volume, bool) {
	switch {
	case v.HostPath != nil:
		return &v1.Volume{Name: v.Name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}}, true
	case v.EmptyDir != nil:
		return &v1.Volume{Name: v.Name,
			VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v.EmptyDir.Medium}}}, true
	}
	return nil, false
}

// appendPending appends the phase of a pod that has a node and has not started: it is evicted without asking budgets.
func appendPending(b []byte, pod *v1.Pod) []byte {
	if pod.Status.Phase == v1.PodPending && pod.Spec.NodeName != "" {
		b = appendString(b, statusPhase, string(v1.PodPending))
	}
	return b
}

// appendReady appends the condition by which budgets count a pod.
func appendReady(b []byte, status *v1.PodStatus) []byte {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			return appendObject(b, statusConditions, &v1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	return b
}

// nodeAnnotations are the beginnings of the annotations that planners read of nodes: those of Cluster Autoscaler,
// Escalator and Karpenter, our own, and those that name the set of machines of a node.
var nodeAnnotations = []string{autoscalerAnnotations, "atlassian.com/", "karpenter.sh/", "loadline.dev/",
	"machine.openshift.io/machine", "cluster.x-k8s.io/owner-"}

func appendPlanningNodeMeta(b []byte, node *v1.Node) []byte {
	if !node.CreationTimestamp.IsZero() {
		b = appendObject(b, metaCreationTimestamp, &node.CreationTimestamp)
	}
	if node.DeletionTimestamp != nil {
		b = appendObject(b, metaDeletionTimestamp, node.DeletionTimestamp)
	}
	var kept map[string]string
	for key, value := range node.Annotations {
		if slices.ContainsFunc(nodeAnnotations, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[text.Valid(key)] = text.Valid(value)
		}
	}
	return appendLabels(b, metaAnnotations, kept)
}

// appendNodeConditions appends the conditions by which a node counts as ready.
func appendNodeConditions(b []byte, status *v1.NodeStatus) []byte {
	for _, c := range keptNodeConditions(status.Conditions) {
		b = appendObject(b, nodeStatusConditions, &c)
	}
	return b
}

func keptNodeConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	var out []v1.NodeCondition
	for _, c := range conditions {
		switch c.Type {
		case v1.NodeReady, v1.NodeDiskPressure, v1.NodeNetworkUnavailable:
			out = append(out, v1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	return out
}

func appendVarint(b []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

// trimPlannerObject returns a disruption budget or a workload as it is sent; false for all other types.
func trimPlannerObject(object any) (loadlinev1.ObjectKind, *metav1.ObjectMeta, marshaler, bool) {
	switch o := object.(type) {
	case *policyv1.PodDisruptionBudget:
		out := &policyv1.PodDisruptionBudget{ObjectMeta: trimMeta(&o.ObjectMeta), Status: o.Status}
		out.Spec.Selector, out.Spec.UnhealthyPodEvictionPolicy = o.Spec.Selector, o.Spec.UnhealthyPodEvictionPolicy
		out.Status.Conditions = nil
		return loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET, &o.ObjectMeta, out, true
	case *v1.ReplicationController:
		out := &v1.ReplicationController{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Spec.Replicas, out.Status.Replicas = o.Spec.Replicas, o.Status.Replicas
		if o.Spec.Template != nil {
			out.Spec.Template = trimTemplate(&o.ObjectMeta, o.Spec.Template)
		}
		return loadlinev1.ObjectKind_REPLICATION_CONTROLLER, &o.ObjectMeta, out, true
	case *appsv1.ReplicaSet:
		out := &appsv1.ReplicaSet{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Spec.Replicas, out.Status.Replicas = o.Spec.Replicas, o.Status.Replicas
		setTemplate(&out.Spec.Template, &o.ObjectMeta, &o.Spec.Template)
		setOwner(&out.ObjectMeta, &o.ObjectMeta, &o.Spec.Template)
		return loadlinev1.ObjectKind_REPLICA_SET, &o.ObjectMeta, out, true
	case *appsv1.StatefulSet:
		out := &appsv1.StatefulSet{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Spec.Replicas, out.Status.Replicas, out.Status.CurrentReplicas = o.Spec.Replicas, o.Status.Replicas,
			o.Status.CurrentReplicas
		setTemplate(&out.Spec.Template, &o.ObjectMeta, &o.Spec.Template)
		return loadlinev1.ObjectKind_STATEFUL_SET, &o.ObjectMeta, out, true
	case *appsv1.DaemonSet:
		out := &appsv1.DaemonSet{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Status.CurrentNumberScheduled, out.Status.DesiredNumberScheduled = o.Status.CurrentNumberScheduled,
			o.Status.DesiredNumberScheduled
		setTemplate(&out.Spec.Template, &o.ObjectMeta, &o.Spec.Template)
		return loadlinev1.ObjectKind_DAEMON_SET, &o.ObjectMeta, out, true
	case *appsv1.Deployment:
		out := &appsv1.Deployment{ObjectMeta: trimMeta(&o.ObjectMeta)}
		out.Spec.Replicas, out.Status.Replicas = o.Spec.Replicas, o.Status.Replicas
		setTemplate(&out.Spec.Template, &o.ObjectMeta, &o.Spec.Template)
		return loadlinev1.ObjectKind_DEPLOYMENT, &o.ObjectMeta, out, true
	case *batchv1.Job:
		return loadlinev1.ObjectKind_JOB, &o.ObjectMeta, trimJob(o), true
	}
	return 0, nil, nil, false
}

// trimJob keeps of a Job's status how many pods are active and how many succeeded, and whether the Job has ended.
func trimJob(job *batchv1.Job) *batchv1.Job {
	out := &batchv1.Job{ObjectMeta: trimMeta(&job.ObjectMeta)}
	out.Spec.Parallelism, out.Spec.Completions = job.Spec.Parallelism, job.Spec.Completions
	out.Status.Active, out.Status.Succeeded = job.Status.Active, job.Status.Succeeded
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			out.Status.Conditions = append(out.Status.Conditions,
				batchv1.JobCondition{Type: c.Type, Status: c.Status})
		}
	}
	setTemplate(&out.Spec.Template, &job.ObjectMeta, &job.Spec.Template)
	setOwner(&out.ObjectMeta, &job.ObjectMeta, &job.Spec.Template)
	return out
}

func trimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, Generation: meta.Generation,
		Annotations: PlanningAnnotations(meta.Annotations)}
}

// trimTemplate returns the pod template of a workload that says something about slack; else nil: nothing else is read
// of it.
func trimTemplate(owner *metav1.ObjectMeta, template *v1.PodTemplateSpec) *v1.PodTemplateSpec {
	if !wishesSlack(owner.Annotations) && !wishesSlack(template.Annotations) {
		return nil
	}
	return new(keptTemplate(template))
}

// setOwner sends who controls a workload that says something about slack, and when it was made: of the Jobs of a
// CronJob, and of the ReplicaSets of a Rollout, the newest speaks for all.
func setOwner(out, meta *metav1.ObjectMeta, template *v1.PodTemplateSpec) {
	if !wishesSlack(meta.Annotations) && !wishesSlack(template.Annotations) {
		return
	}
	out.CreationTimestamp = meta.CreationTimestamp
	if owner := metav1.GetControllerOf(meta); owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name,
			UID: owner.UID, Controller: owner.Controller}}
	}
}

func setTemplate(out *v1.PodTemplateSpec, owner *metav1.ObjectMeta, template *v1.PodTemplateSpec) {
	if trimmed := trimTemplate(owner, template); trimmed != nil {
		*out = *trimmed
	}
}

func wishesSlack(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, slackAnnotations) {
			return true
		}
	}
	return false
}
