package fit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	csiDriver       = "disk.csi.example.com"
	annBound        = "pv.kubernetes.io/bind-completed"
	annSelectedNode = "volume.kubernetes.io/selected-node"
)

func (g *generator) makeStorage() {
	g.makeClasses()
	for _, node := range g.cluster.Nodes {
		if g.chance(80) {
			g.cluster.CSINodes = append(g.cluster.CSINodes, g.csiNode(node.Name))
		}
	}
	for _, driver := range some(g, 0, csiDriver, csiDriver+".other", "pd.csi.storage.gke.io") {
		wish := g.chance(50)
		g.cluster.CSIDrivers = append(g.cluster.CSIDrivers, &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{
				PreventPodSchedulingIfMissing: pick(g, nil, &wish, &wish)}})
	}
	for _, namespace := range g.namespaces {
		for range 3 + g.IntN(6) {
			g.makeClaim(namespace, g.name("claim"))
		}
	}
	for range g.IntN(6) {
		g.cluster.Volumes = append(g.cluster.Volumes, g.freeVolume())
	}
}

// implicitDevice is the resource of a device class that names none.
const implicitDevice = v1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "fpga")

// makeDevices makes device classes, one of which may serve a resource that some nodes offer themselves.
func (g *generator) makeDevices() {
	for _, name := range some(g, 0, "gpu", "nic", "fpga", "none") {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if resource := "example.com/" + name; name != "fpga" && name != "none" && g.chance(60) {
			class.Spec.ExtendedResourceName = &resource
		}
		g.cluster.Devices = append(g.cluster.Devices, class)
	}
}

func (g *generator) makeClasses() {
	immediate, late := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	class := func(name, provisioner string, mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
			VolumeBindingMode: mode}
	}
	wide := class("late", csiDriver, &late)
	narrow := class("late-zonal", csiDriver, &late)
	narrow.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
		{Key: v1.LabelTopologyZone, Values: some(g, 1, "a", "b", "c")}}}}
	g.cluster.Classes = append(g.cluster.Classes, wide, narrow, class("now", csiDriver, &immediate),
		class("local", "kubernetes.io/no-provisioner", &late), class("in-tree", "kubernetes.io/gce-pd", &late))
	if g.chance(10) {
		g.cluster.Classes = append(g.cluster.Classes, class("modeless", csiDriver, nil))
	}
}

func (g *generator) csiNode(name string) *storagev1.CSINode {
	node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if g.chance(40) {
		node.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: pick(g,
			"kubernetes.io/gce-pd", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd", "kubernetes.io/cinder")}
	}
	for _, driver := range some(g, 1, csiDriver, csiDriver+".other", "pd.csi.storage.gke.io", "ebs.csi.aws.com") {
		d := storagev1.CSINodeDriver{Name: driver, NodeID: name}
		if g.chance(80) {
			count := int32(g.IntN(4))
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
		}
		node.Spec.Drivers = append(node.Spec.Drivers, d)
	}
	return node
}

// makeClaim adds a claim in one of the states that claims can be in, and the volume that it is bound to.
func (g *generator) makeClaim(namespace, name string) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Annotations: map[string]string{},
	}}
	claim.Spec.AccessModes = []v1.PersistentVolumeAccessMode{pick(g, v1.ReadWriteOnce, v1.ReadWriteOnce,
		v1.ReadWriteMany, v1.ReadWriteOncePod)}
	claim.Status.Phase = v1.ClaimPending
	if g.chance(70) { // sizes are distinct: upstream serves claims of equal size in no particular order
		claim.Spec.Resources.Requests = v1.ResourceList{
			v1.ResourceStorage: *resource.NewQuantity(int64(1+g.IntN(20))<<30+int64(g.names), resource.BinarySI)}
	}
	switch state := g.IntN(100); {
	case state < 60:
		g.bind(claim)
	case state < 80:
		class := pick(g, "late", "late-zonal", "late-zonal", "local", "local", "in-tree")
		claim.Spec.StorageClassName = &class
		if g.chance(15) {
			claim.Annotations[annSelectedNode] = pick(g, "node-0", "node-1", "nowhere")
		}
		if g.chance(20) {
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(g, "gold", "tin")}}
		}
	case state < 87:
		class := pick(g, "now", "gone", "", "modeless")
		claim.Spec.StorageClassName = &class
	case state < 90:
		g.bind(claim)
		claim.Status.Phase = v1.ClaimLost
	case state < 94:
		g.bind(claim)
		claim.DeletionTimestamp = &someTime
	case state < 97:
		g.bind(claim)
		delete(claim.Annotations, annBound)
	default:
		g.bind(claim)
		claim.Spec.VolumeName = "gone"
	}
	g.cluster.Claims = append(g.cluster.Claims, claim)
}

// bind gives a claim a volume of its own.
func (g *generator) bind(claim *v1.PersistentVolumeClaim) {
	volume := g.volume()
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Status.Phase = v1.VolumeBound
	claim.Spec.VolumeName = volume.Name
	claim.Annotations[annBound] = "yes"
	claim.Status.Phase = v1.ClaimBound
	g.cluster.Volumes = append(g.cluster.Volumes, volume)
}

func (g *generator) volume() *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: g.name("pv"), Labels: map[string]string{}}}
	switch g.IntN(6) {
	case 0:
		volume.Spec.PersistentVolumeSource.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: volume.Name}
	case 1:
		volume.Spec.PersistentVolumeSource.Local = &v1.LocalVolumeSource{Path: "/mnt"}
	default:
		volume.Spec.PersistentVolumeSource.CSI = &v1.CSIPersistentVolumeSource{
			Driver:       pick(g, csiDriver, csiDriver, csiDriver, csiDriver+".other"),
			VolumeHandle: pick(g, volume.Name, volume.Name, "shared")}
	}
	if g.chance(65) {
		key := pick(g, v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone)
		volume.Labels[key] = pick(g, "a", "b", "c", "a__b", "b__c", "a__b__c", "")
	}
	if g.chance(25) {
		volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{
			Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{g.volumeTerm()}}}
		if g.chance(30) {
			terms := &volume.Spec.NodeAffinity.Required.NodeSelectorTerms
			*terms = append(*terms, g.volumeTerm())
		}
	}
	return volume
}

func (g *generator) volumeTerm() v1.NodeSelectorTerm {
	if g.chance(50) {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
				Values: some(g, 1, "node-0", "node-1", "node-2", "node-3")}}}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: v1.LabelTopologyZone, Operator: pick(g, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn),
			Values: some(g, 1, "a", "b")}}}
}

// freeVolume may be bound to an unbound claim of class local.
func (g *generator) freeVolume() *v1.PersistentVolume {
	volume := g.volume()
	volume.Spec.StorageClassName = pick(g, "local", "local", "late", "")
	volume.Spec.AccessModes = some(g, 1, v1.ReadWriteOnce, v1.ReadWriteMany, v1.ReadWriteOncePod)
	volume.Spec.Capacity = v1.ResourceList{
		v1.ResourceStorage: *resource.NewQuantity(int64(1+g.IntN(30))<<30+int64(g.names), resource.BinarySI)}
	volume.Status.Phase = pick(g, v1.VolumeAvailable, v1.VolumeAvailable, v1.VolumeAvailable, v1.VolumeReleased)
	if g.chance(40) {
		volume.Labels["tier"] = pick(g, "gold", "tin")
	}
	if g.chance(10) {
		volume.DeletionTimestamp = &someTime
	}
	if g.chance(20) {
		if claim := g.cluster.Claims[g.IntN(len(g.cluster.Claims))]; claim.Spec.VolumeName == "" {
			volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name,
				UID: pick(g, claim.UID, "", "other")}
		}
	}
	return volume
}

// addClaims makes a pod use claims of its namespace, mostly such that can be satisfied somewhere.
func (g *generator) addClaims(pod *v1.Pod) {
	var usable []string
	for _, claim := range g.cluster.Claims {
		healthy := claim.Status.Phase != v1.ClaimLost && claim.DeletionTimestamp == nil &&
			(claim.Annotations[annBound] != "" || claim.Spec.StorageClassName != nil &&
				len(*claim.Spec.StorageClassName) > 4 && *claim.Spec.StorageClassName != "modeless")
		if claim.Namespace == pod.Namespace && (healthy || g.chance(10)) {
			usable = append(usable, claim.Name)
		}
	}
	for i := range g.IntN(4) {
		volume := v1.Volume{Name: fmt.Sprintf("v%d", i)}
		switch {
		case g.chance(8):
			volume.Ephemeral = &v1.EphemeralVolumeSource{}
			g.makeEphemeral(pod, volume.Name)
		case g.chance(8):
			volume.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: pick(g, "inline-1", "inline-2"),
				ReadOnly: true}
		case len(usable) == 0 || g.chance(2):
			volume.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "gone"}
		default:
			volume.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: pick(g, usable...)}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
}

// makeEphemeral makes the claim that the ephemeral volume controller would make for a pod's volume; rarely a
// stranger's of that name, or none yet.
func (g *generator) makeEphemeral(pod *v1.Pod, volume string) {
	if g.chance(10) {
		return
	}
	g.makeClaim(pod.Namespace, pod.Name+"-"+volume)
	claim := g.cluster.Claims[len(g.cluster.Claims)-1]
	controller := true
	claim.OwnerReferences = []metav1.OwnerReference{
		{Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &controller}}
	// A bound pod with this would be an error of NodeVolumeLimits for every other pod.
	if pod.Name == "incoming" && g.chance(5) {
		claim.OwnerReferences[0].UID = "stranger"
	}
}
