// Package nodereader reads the nodes of kube-scheduler for view.Cycles.
package nodereader

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Reader is a view.NodeReader of NodeInfos.
type Reader struct{}

// Node returns the node; nil: it is gone, and pods of it are left.
func (Reader) Node(info fwk.NodeInfo) *v1.Node { return info.Node() }

// Generation returns a number that changes with the NodeInfo.
func (Reader) Generation(info fwk.NodeInfo) int64 { return info.GetGeneration() }

// Pods returns how many pods the node has.
func (Reader) Pods(info fwk.NodeInfo) int { return len(info.GetPods()) }

// Pod returns one of them.
func (Reader) Pod(info fwk.NodeInfo, i int) *v1.Pod { return info.GetPods()[i].GetPod() }
