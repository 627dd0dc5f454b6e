package cli

import (
	"fmt"

	"loadline.dev/shim/leftout"
)

// noPodsHelp is the help of --no-pods.
const noPodsHelp = "the dump holds no pod since the cluster has none; without it such a dump is refused"

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

// withoutPods returns an error for a dump of nodes without any pod, where that is not said to be meant: all its nodes
// look empty. It is for each command that judges nodes by their pods.
func (c *cluster) withoutPods(s *sourceFlags, meant bool) error {
	if meant || !s.fromFile() || c.counts.Nodes == 0 || c.counts.Pods > 0 || len(c.broken) > 0 {
		return nil
	}
	return fmt.Errorf("%s holds no pod, so that each node looks empty: %s; --no-pods of drain, plan, size, bill, "+
		"consolidate and why says that there is none", s.name(), howToDump)
}
