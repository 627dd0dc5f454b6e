package autoscaler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/sizing"
)

// LeftOutStatus tells which objects take no part in plans, since they alone cannot be taken.
type LeftOutStatus struct {
	Total int64 `json:"total"`
	// Objects are some of them, with what is wrong with each.
	Objects []string `json:"objects,omitempty"`
}

// gatherLeftOut gathers what takes no part in a plan: what the engine was not told, and what it could not take.
func (l *leader) gatherLeftOut(o *loop) {
	o.leftOut.Add(l.cluster.View.LeftOut()...)
	if o.pods != nil {
		o.leftOut.Add(o.pods.LeftOut()...)
	}
	if o.plan != nil {
		o.sizePods.NameLeftOut(sizing.FieldOfLoop, o.plan.loop.GetLeftOut())
		o.leftOut.AddAnswer(o.plan.loop)
	}
}

// tellLeftOut tells of objects that take no part: by a metric, in the log, and in mode act by an event on each. Each is
// told again after some time only, and not all at once: users can make many.
func (l *leader) tellLeftOut(o *loop) {
	for kind, count := range o.leftOut.Kinds() {
		l.metrics.leftOut.WithLabelValues(kind).Set(float64(count))
	}
	line := o.leftOut.Line(topEntries)
	if line != l.leftOutLog && line != "" {
		klog.InfoS("Warning: " + line)
	}
	l.leftOutLog = line
	if l.config.Mode != config.Act {
		return
	}
	l.leftOutEvents.begin(o.now)
	for _, object := range o.leftOut.Objects() {
		reference := l.referenceTo(object)
		if l.leftOutEvents.isNews(reference, object.Reason, o.now) {
			l.events.Event(reference, v1.EventTypeWarning, "LeftOut",
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
func (l *leader) referenceTo(o leftout.Object) *v1.ObjectReference {
	reference := &v1.ObjectReference{Kind: o.Kind, APIVersion: apiVersions[o.Kind], Namespace: o.Namespace,
		Name: o.Name}
	if reference.APIVersion == "" {
		reference.APIVersion = "v1"
	}
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	if pod := l.cluster.Pods[name]; o.Kind == watch.KindPod && pod != nil {
		reference.UID = pod.UID
	}
	if node := l.cluster.Nodes[o.Name]; o.Kind == watch.KindNode && node != nil {
		reference.UID = node.UID
	}
	if set := l.cluster.Sets[name]; o.Kind == "DaemonSet" && set != nil {
		reference.UID = set.UID
	}
	return reference
}

// leftOutStatus returns what there is to be told; nil: nothing was left out.
func (o *loop) leftOutStatus() *LeftOutStatus {
	total := o.leftOut.Total()
	if total == 0 {
		return nil
	}
	s := &LeftOutStatus{Total: total}
	for _, object := range o.leftOut.Objects() {
		if len(s.Objects) == topEntries {
			break
		}
		s.Objects = append(s.Objects, object.String())
	}
	return s
}
