package watch

import "slices"

// OptionalKind is a kind of objects that plans are made without if it may not be listed. The engine then does not judge
// what depends on such objects, so that nothing is done by mistake.
type OptionalKind struct {
	// Kind, Group and Resource name it.
	Kind, Group, Resource string
	// Effect says what plans without it lack, as a sentence without a full stop.
	Effect string
}

// Optional are all of them. The stock role of Cluster Autoscaler lacks Deployments and device classes, and that of its
// example for Cluster API namespaces and CSI drivers too. ReplicaSets carry the annotations of their Deployment.
var Optional = []OptionalKind{
	{"Deployment", "apps", "deployments", "a Deployment without pods keeps no copies free"},
	{"DeviceClass", "resource.k8s.io", "deviceclasses",
		"it is not known which extended resources are those of a device class"},
	{"Namespace", "", "namespaces",
		"nothing is planned for pods whose affinity selects namespaces by label, and no copies are kept free"},
	{"CSIDriver", "storage.k8s.io", "csidrivers",
		"since Kubernetes 1.37 pods with volumes are planned only for nodes that have the driver"},
}

func isOptional(kind string) bool {
	return slices.ContainsFunc(Optional, func(o OptionalKind) bool { return o.Kind == kind })
}
