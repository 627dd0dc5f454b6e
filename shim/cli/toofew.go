package cli

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
)

// noPodsHelp is the help of --no-pods.
const noPodsHelp = "the dump holds no pod of its nodes since there is none; without it such a dump is refused"

// howToDump is how a dump is made.
const howToDump = "make it with kubectl get nodes,pods -A -o json"

// tooFew returns an error where what was read cannot be a cluster.
func (c *cluster) tooFew(s *sourceFlags, empty bool) error {
	var unreadable []leftout.Object
	for _, object := range c.broken {
		if object.Kind == "Node" {
			unreadable = append(unreadable, object)
		}
	}
	switch nodes := c.counts.Nodes; {
	case nodes == 0 && len(unreadable) > 0:
		return fmt.Errorf("%s: none of its %s can be read; the first is %s: %s; correct it, or make the dump anew with "+
			"kubectl get nodes,pods -A -o json", s.name(), plural(len(unreadable), "node"), unreadable[0].Name,
			unreadable[0].Reason)
	case s.fromFile() && nodes+c.counts.Pods == 0 && len(c.counts.Ignored)+len(c.counts.Objects) > 0:
		return fmt.Errorf("%s holds neither a node nor a pod: %s", s.name(), howToDump)
	case nodes == 0 && !empty && s.fromFile():
		return fmt.Errorf("%s holds no node: %s", s.name(), howToDump)
	case nodes == 0 && !empty:
		return fmt.Errorf("%s holds no node", s.name())
	}
	return nil
}

// withoutPods returns an error for a dump of nodes without any pod that waits or is on one of them, where that is not
// said to be meant: all its nodes look empty. It is for each command that judges nodes by their pods.
func (c *cluster) withoutPods(s *sourceFlags, meant bool) error {
	here, stray := c.placed()
	if meant || !s.fromFile() || c.counts.Nodes == 0 || len(c.broken)+len(c.view.LeftOut()) > 0 || here+c.pending > 0 ||
		c.counts.Pods > 0 && stray == 0 { // they have ended
		return nil
	}
	what := "holds no pod"
	if stray > 0 {
		what = "holds no pod of its nodes, but " + plural(stray, "pod") + " on nodes that are not there"
	}
	return fmt.Errorf("%s %s, so that each node looks empty: %s; --no-pods of drain, plan, slack, "+
		"rank, size, bill, consolidate and why says that there is none", s.name(), what, howToDump)
}

// podOrigins says of which namespaces the pods of a cluster are.
type podOrigins struct {
	namespace string // of one of them
	// several says that they are of several namespaces, whole that one shows that those of all namespaces are there.
	several, whole bool
}

// add takes note of a pod. Each cluster has pods of kube-system or of DaemonSets. A pod that was never created is of no
// cluster: somebody has written it, and nothing is missing.
func (o *podOrigins) add(pod *v1.Pod) {
	_, ofDaemonSet := scaleup.DaemonSetOf(pod)
	o.whole = o.whole || ofDaemonSet || pod.Namespace == metav1.NamespaceSystem || pod.CreationTimestamp.IsZero()
	o.several = o.several || o.namespace != "" && o.namespace != pod.Namespace
	o.namespace = pod.Namespace
}

// podNotes say which pods do not count, or may be missing, each in a sentence.
func (c *cluster) podNotes(s *sourceFlags) (notes []string) {
	if of := c.origins; s.fromFile() && of.namespace != "" && !of.several && !of.whole {
		notes = append(notes, fmt.Sprintf("All pods are of namespace %s: was -A left out?", of.namespace))
	}
	if note := c.strayNote(); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// strayNote says how many pods do not count; empty: all do.
func (c *cluster) strayNote() string {
	if _, stray := c.placed(); stray > 0 {
		return fmt.Sprintf("Not counted: %s on nodes that are not there.", plural(stray, "pod"))
	}
	return ""
}

// placed counts the unfinished pods on nodes of the cluster, and those on nodes that are not in it.
func (c *cluster) placed() (here, stray int) {
	for node, pods := range c.bound {
		if _, ok := c.view.Slot(node); ok {
			here += pods
		} else {
			stray += pods
		}
	}
	return here, stray
}
