package cli

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/view"
)

// addBroken takes note of an object of a dump that cannot be read. What could be read of it counts: a pod keeps its
// node, a node stays unless whole ones alone count, and a disruption budget protects all of its namespace.
func (c *cluster) addBroken(b dump.Broken, options *loadOptions) {
	c.broken = append(c.broken, leftout.New(b.Kind, b.Namespace, b.Name, b.Err.Error()))
	head := metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: b.UID}
	switch {
	case b.Name == "":
	case b.Kind == "Pod" && b.NodeName != "":
		pod, ok := b.Object.(*v1.Pod)
		if !ok {
			pod = &v1.Pod{ObjectMeta: head, Spec: v1.PodSpec{NodeName: b.NodeName}}
		}
		view.MarkPod(pod)
		_ = c.set(pod)
		c.bound[b.NodeName]++
		c.inPart.pods++
	case b.Kind == "Node":
		if node, ok := b.Object.(*v1.Node); ok && !options.whole {
			view.MarkNode(node)
			_ = c.set(node)
			c.inPart.nodes++
		}
	case b.Kind == "PodDisruptionBudget":
		_ = c.set(view.UnreadableBudget(head))
	}
}

// correctAdvice names what is wrong with objects that cannot be read, where a plan for a drain advises to correct them:
// the engine has only a mark of it.
func (c *cluster) correctAdvice(plan *loadlinev1.PlanDrainResponse) {
	for _, k := range plan.GetKeep() {
		kind, namespace, name := "Pod", k.GetPodNamespace(), k.GetPodName()
		switch {
		case k.GetReason() == "Unreadable":
			kind, namespace, name = "Node", "", k.GetNode()
		case k.GetBudgetRefusal() == "InvalidSelector": // of any budget of the namespace
			kind, name = "PodDisruptionBudget", ""
		case k.GetPodReason() != "Unreadable":
			continue
		}
		i := slices.IndexFunc(c.broken, func(o leftout.Object) bool {
			return o.Kind == kind && o.Namespace == namespace && (o.Name == name || name == "")
		})
		if what, _, ok := strings.Cut(k.GetAdvice(), ": "); ok && i >= 0 {
			k.Advice = what + ": " + c.broken[i].Reason
		}
	}
}
