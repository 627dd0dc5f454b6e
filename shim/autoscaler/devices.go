package autoscaler

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// deviceSet are names of extended resources, such as nvidia.com/gpu.
type deviceSet map[v1.ResourceName]bool

// add adds the extended resources that a node offers.
func (d deviceSet) add(node *v1.Node) {
	for name, amount := range node.Status.Allocatable {
		native := !strings.Contains(string(name), "/") || strings.Contains(string(name), "kubernetes.io/")
		if !native && !amount.IsZero() {
			d[name] = true
		}
	}
}

// lacks says whether a node does not offer all of these devices. What drives a device registers minutes after its node
// is ready: until then no pod that needs it can go there, and another node for that pod would be one too many.
func lacks(node *v1.Node, devices deviceSet) bool {
	for name := range devices {
		if amount := node.Status.Allocatable[name]; amount.IsZero() {
			return true
		}
	}
	return false
}

// devicesOfGroup returns what new nodes of a group come to offer: what the cloud says, unless no node shows it though
// some are not `young` any more, and what more than half of its nodes offer. What was known stays known while the group
// has no node.
func devicesOfGroup(known deviceSet, template *v1.Node, nodes []*v1.Node, young func(*v1.Node) bool) deviceSet {
	devices, candidates := deviceSet{}, deviceSet{}
	if template != nil {
		devices.add(template)
		candidates.add(template)
	}
	if len(nodes) == 0 {
		maps.Copy(devices, known)
	}
	for _, node := range nodes {
		candidates.add(node)
	}
	for name := range candidates {
		with, without := 0, 0
		for _, node := range nodes {
			switch amount := node.Status.Allocatable[name]; {
			case !amount.IsZero():
				with++
			case !young(node):
				without++
			}
		}
		switch {
		case with > without:
			devices[name] = true
		case with == 0 && without > 0: // whatever the cloud says: its nodes have had the time
			delete(devices, name)
		}
	}
	return devices
}
