package randompod

import (
	"math/rand"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// annotations are those that some code reads of pods and workloads, and others.
var annotations = []string{"cluster-autoscaler.kubernetes.io/safe-to-evict",
	"cluster-autoscaler.kubernetes.io/daemonset-pod", "cluster-autoscaler.kubernetes.io/enable-ds-eviction",
	"cluster-autoscaler.kubernetes.io/pod-scale-up-delay", "loadline.dev/slack-copies", "loadline.dev/slack",
	"kubernetes.io/config.mirror", "kubernetes.io/config.source", "kubectl.kubernetes.io/last-applied-configuration",
	"volume.beta.kubernetes.io/storage-class", "pv.kubernetes.io/bind-completed", "karpenter.sh/do-not-disrupt",
	"controller.kubernetes.io/pod-deletion-cost", "loadline.dev/pod-deletion-cost", "loadline.dev/unknown-fields"}

// Filler returns what fills any object of Kubernetes: most of its fields, with valid values where the values matter. A
// field that some code begins to read is filled as well.
func Filler(seed int64) *randfill.Filler {
	oneOf := func(values []string) func(r *rand.Rand) string {
		return func(r *rand.Rand) string { return values[r.Intn(len(values))] }
	}
	annotation := oneOf(annotations)
	quantity := oneOf(plainQuantities)
	name := oneOf([]string{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"})
	return randfill.NewWithSeed(seed).NilChance(0.25).NumElements(1, 3).MaxDepth(20).Funcs(
		func(q *resource.Quantity, c randfill.Continue) { *q = resource.MustParse(quantity(c.Rand)) },
		func(n *v1.ResourceName, c randfill.Continue) { *n = v1.ResourceName(name(c.Rand)) },
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(2_000_000_000), 0) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString("{}") },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			for i := range m.OwnerReferences {
				if c.Bool() {
					m.OwnerReferences[i].APIVersion, m.OwnerReferences[i].Kind = "apps/v1", "DaemonSet"
				}
			}
			m.Annotations = map[string]string{}
			for range c.Intn(6) {
				m.Annotations[annotation(c.Rand)] = []string{"true", "false", "5s", "2"}[c.Intn(4)]
			}
		},
		func(v *v1.VolumeSource, c randfill.Continue) { // a valid volume has one source
			c.FillNoCustom(v)
			of := reflect.ValueOf(v).Elem()
			for i, kept := 0, c.Intn(of.NumField()); i < of.NumField(); i++ {
				if i != kept {
					of.Field(i).SetZero()
				}
			}
		},
		func(p *v1.PodPhase, c randfill.Continue) {
			*p = []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed}[c.Intn(4)]
		},
		func(p *v1.PodCondition, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Type = []v1.PodConditionType{v1.PodScheduled, v1.PodReady, v1.PodResizePending, v1.ContainersReady}[c.Intn(4)]
			p.Status = []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}[c.Intn(2)]
			p.Reason = []string{v1.PodReasonUnschedulable, v1.PodReasonInfeasible, v1.PodReasonDeferred}[c.Intn(3)]
		},
		func(n *v1.NodeCondition, c randfill.Continue) {
			c.FillNoCustom(n)
			n.Type = []v1.NodeConditionType{v1.NodeReady, v1.NodeDiskPressure, v1.NodeNetworkUnavailable,
				v1.NodePIDPressure}[c.Intn(4)]
			n.Status = []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}[c.Intn(2)]
		})
}
