package tell

import (
	"cmp"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/sizing"
)

// gatherLeftOut gathers what takes no part in a plan: what the engine did not get, and what it could not read.
func (t *Teller) gatherLeftOut(o *plan.Loop) {
	o.LeftOut.Add(t.cluster.View.LeftOut()...)
	if o.Pods != nil {
		o.LeftOut.Add(o.Pods.LeftOut()...)
	}
	if o.Plan != nil {
		o.SizePods.NameLeftOut(sizing.FieldOfLoop, o.Plan.Answer.GetLeftOut())
		o.LeftOut.AddAnswer(o.Plan.Answer)
	}
}

// tellLeftOut tells of objects that take no part: by a metric, in the log, and in mode act by an event on each. Each is
// reported again after some time only, and not all at once: users can make many.
func (t *Teller) tellLeftOut(o *plan.Loop) {
	for kind, count := range o.LeftOut.Kinds() {
		t.Metrics.Set("left_out_objects", float64(count), kind)
	}
	if line := o.LeftOut.Line(topEntries); t.isNew("left out", line) && line != "" {
		klog.InfoS("Warning: " + line)
	}
	if t.config.Mode != config.Act {
		return
	}
	t.said.leftOut.begin(o.Now)
	for _, object := range o.LeftOut.Objects() {
		reference := t.referenceTo(object)
		if t.said.leftOut.isNews(reference, object.Reason, o.Now) {
			t.Events.Event(reference, v1.EventTypeWarning, "LeftOut",
				"Loadline plans without this object: "+object.Reason)
		}
	}
}

// apiVersions of the objects that a view holds.
var apiVersions = map[string]string{"CSIDriver": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1",
	"DaemonSet": "apps/v1", "Deployment": "apps/v1", "DeviceClass": "resource.k8s.io/v1", "Job": "batch/v1",
	"PodDisruptionBudget": "policy/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1",
	"StorageClass": "storage.k8s.io/v1"}

// referenceTo returns what an event about an object names. People see it beside the object if the UID is known.
func (t *Teller) referenceTo(o leftout.Object) *v1.ObjectReference {
	reference := &v1.ObjectReference{Kind: o.Kind, APIVersion: cmp.Or(apiVersions[o.Kind], "v1"),
		Namespace: o.Namespace, Name: o.Name}
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	if pod := t.cluster.Pods[name]; o.Kind == watch.KindPod && pod != nil {
		reference.UID = pod.UID
	}
	if node := t.cluster.Nodes[o.Name]; o.Kind == watch.KindNode && node != nil {
		reference.UID = node.UID
	}
	if set := t.cluster.Sets[name]; o.Kind == "DaemonSet" && set != nil {
		reference.UID = set.UID
	}
	return reference
}

// leftOutStatus returns the status of what was left out; nil: nothing was.
func leftOutStatus(o *plan.Loop) *loadlinev1.LeftOutStatus {
	total := o.LeftOut.Total()
	if total == 0 {
		return nil
	}
	s := &loadlinev1.LeftOutStatus{Total: int32(min(total, math.MaxInt32))}
	objects := o.LeftOut.Objects()
	for _, object := range objects[:min(len(objects), topEntries)] {
		s.Objects = append(s.Objects, object.String())
	}
	return s
}
