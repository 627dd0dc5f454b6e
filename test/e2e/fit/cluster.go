// Package fit holds the engine's answers to "would the scheduler put this pod on that node?" against those of
// kube-scheduler's own plugins, over random clusters.
package fit

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Cluster is what a scheduler sees of a cluster when it looks for a node for one pod.
type Cluster struct {
	Nodes      []*v1.Node
	Pods       []*v1.Pod // bound
	Pod        *v1.Pod   // to be placed
	Namespaces []*v1.Namespace
	Volumes    []*v1.PersistentVolume
	Claims     []*v1.PersistentVolumeClaim
	Classes    []*storagev1.StorageClass
	CSINodes   []*storagev1.CSINode
	CSIDrivers []*storagev1.CSIDriver
	Devices    []*resourcev1.DeviceClass
	Ghosts     []string // nodes that count with their pods, but that no pod may go to
}

// Copy returns a cluster with lists of its own; the objects are shared and must not be changed.
func (c *Cluster) Copy() *Cluster {
	return &Cluster{
		Nodes: slices.Clone(c.Nodes), Pods: slices.Clone(c.Pods), Pod: c.Pod,
		Namespaces: slices.Clone(c.Namespaces), Volumes: slices.Clone(c.Volumes),
		Claims: slices.Clone(c.Claims), Classes: slices.Clone(c.Classes), CSINodes: slices.Clone(c.CSINodes),
		CSIDrivers: slices.Clone(c.CSIDrivers), Devices: slices.Clone(c.Devices), Ghosts: slices.Clone(c.Ghosts),
	}
}

// YAML writes the cluster as documents that kubectl could apply, the pod to be placed last.
func (c *Cluster) YAML() string {
	var b strings.Builder
	add := func(kind, version string, object runtime.Object) {
		object = object.DeepCopyObject()
		object.GetObjectKind().SetGroupVersionKind(groupVersion(version).WithKind(kind))
		text, err := yaml.Marshal(object)
		if err != nil {
			text = []byte("# " + err.Error() + "\n")
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	for _, o := range c.Namespaces {
		add("Namespace", "v1", o)
	}
	for _, o := range c.Classes {
		add("StorageClass", "storage.k8s.io/v1", o)
	}
	for _, o := range c.Volumes {
		add("PersistentVolume", "v1", o)
	}
	for _, o := range c.Claims {
		add("PersistentVolumeClaim", "v1", o)
	}
	for _, o := range c.CSINodes {
		add("CSINode", "storage.k8s.io/v1", o)
	}
	for _, o := range c.CSIDrivers {
		add("CSIDriver", "storage.k8s.io/v1", o)
	}
	for _, o := range c.Devices {
		add("DeviceClass", "resource.k8s.io/v1", o)
	}
	for _, o := range c.Nodes {
		add("Node", "v1", o)
	}
	for _, o := range c.Pods {
		add("Pod", "v1", o)
	}
	b.WriteString("# to be placed\n")
	add("Pod", "v1", c.Pod)
	return b.String()
}
