// Package nodeinfo has NodeInfos for tests, as a kube-scheduler's snapshot holds them.
package nodeinfo

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// NodeInfo is one node with its pods. What the shim does not call panics.
type NodeInfo struct {
	fwk.NodeInfo
	node       *v1.Node
	pods       []fwk.PodInfo
	generation int64
}

type podInfo struct {
	fwk.PodInfo
	pod *v1.Pod
}

func (p *podInfo) GetPod() *v1.Pod { return p.pod }

// New returns a NodeInfo of a generation.
func New(generation int64, node *v1.Node, pods ...*v1.Pod) *NodeInfo {
	info := &NodeInfo{node: node, generation: generation}
	for _, pod := range pods {
		info.pods = append(info.pods, &podInfo{pod: pod})
	}
	return info
}

func (n *NodeInfo) Node() *v1.Node         { return n.node }
func (n *NodeInfo) GetPods() []fwk.PodInfo { return n.pods }
func (n *NodeInfo) GetGeneration() int64   { return n.generation }

// Snapshot lists NodeInfos as that of a fwk.Handle does.
type Snapshot struct {
	fwk.SharedLister
	Nodes []fwk.NodeInfo
}

func (s Snapshot) NodeInfos() fwk.NodeInfoLister { return lister{infos: s.Nodes} }

type lister struct {
	fwk.NodeInfoLister
	infos []fwk.NodeInfo
}

func (l lister) List() ([]fwk.NodeInfo, error) { return l.infos, nil }

func (l lister) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range l.infos {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("node %q is not there", name)
}
