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
	*Lister
}

func (s Snapshot) NodeInfos() fwk.NodeInfoLister { return s.Lister }

// Lister lists NodeInfos, and finds them by the names of their nodes.
type Lister struct {
	fwk.NodeInfoLister
	Nodes []fwk.NodeInfo

	index map[string]int // of Nodes; an element may have been replaced since
}

func (l *Lister) List() ([]fwk.NodeInfo, error) { return l.Nodes, nil }

func (l *Lister) Get(name string) (fwk.NodeInfo, error) {
	for range 2 {
		if i, ok := l.index[name]; ok && i < len(l.Nodes) && l.Nodes[i].Node().Name == name {
			return l.Nodes[i], nil
		}
		l.index = make(map[string]int, len(l.Nodes))
		for i, info := range l.Nodes {
			l.index[info.Node().Name] = i
		}
	}
	return nil, fmt.Errorf("no node %q", name)
}
