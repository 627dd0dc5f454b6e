package autoscaler

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// deviceSet are names of extended resources, such as nvidia.com/gpu.
type deviceSet map[v1.ResourceName]bool

// devicesOf returns the extended resources that a node offers.
func devicesOf(node *v1.Node) deviceSet {
	devices := deviceSet{}
	for name, amount := range node.Status.Allocatable {
		if strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/") && !amount.IsZero() {
			devices[name] = true
		}
	}
	return devices
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

// devicesOfGroup returns what new nodes of a group come to offer: what the cloud says, and what more than half of its
// nodes offer, of which `young` ones may offer less than they will. What was known stays known while the group has no
// node that shows it.
func devicesOfGroup(known deviceSet, template *v1.Node, nodes []*v1.Node, young func(*v1.Node) bool) deviceSet {
	devices := deviceSet{}
	if template != nil {
		devices = devicesOf(template)
	}
	if len(nodes) == 0 {
		maps.Copy(devices, known)
	}
	candidates := deviceSet{}
	for _, node := range nodes {
		maps.Copy(candidates, devicesOf(node))
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
		if with > without {
			devices[name] = true
		}
	}
	return devices
}
