package fit

import (
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var someTime = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// pod returns what bound pods and the one to be placed have in common.
func (g *generator) pod(name string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: g.namespace(), UID: types.UID(name), Labels: g.podLabels(),
	}}
	g.addContainers(pod)
	if g.likely(ports, 75, 3) {
		g.addPorts(pod)
	}
	if g.likely(disks, 70, 2) {
		for range 1 + g.IntN(2) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: g.name("disk"), VolumeSource: g.disk()})
		}
	}
	if g.themes[claims] {
		g.addClaims(pod)
	}
	return pod
}

func (g *generator) podLabels() map[string]string {
	labels := map[string]string{"app": pick(g, "web", "web", "db", "cache")}
	if g.chance(70) {
		labels["version"] = pick(g, "v1", "v2")
	}
	if g.chance(30) {
		labels["tier"] = pick(g, "front", "back", "")
	}
	return labels
}

func (g *generator) boundPod() *v1.Pod {
	pod := g.pod(g.name("pod"))
	pod.Spec.NodeName = g.cluster.Nodes[g.IntN(len(g.cluster.Nodes))].Name
	if g.likely(podAffinity, 45, 3) {
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
		for range 1 + g.IntN(2) {
			terms := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*terms = append(*terms, g.podAffinityTerm(pod, false))
		}
	}
	pod.Status.Phase = pick(g, v1.PodRunning, v1.PodRunning, v1.PodRunning, v1.PodPending)
	if g.chance(12) {
		pod.DeletionTimestamp = &someTime
	}
	if g.chance(4) {
		pod.Status.Phase = pick(g, v1.PodSucceeded, v1.PodFailed)
	}
	// 1.37 takes the largest of three sums over the containers of a pod that is resized, 1.36 and the engine add up the
	// largest of each container, which is never less.
	if g.likely(resources, 30, 2) && Minor() < 37 {
		g.addResize(pod)
	}
	if g.chance(2) {
		pod.Spec.NodeName = "nowhere"
	}
	return pod
}

func (g *generator) incomingPod() *v1.Pod {
	pod := g.pod("incoming")
	if g.likely(placement, 40, 0) {
		pod.Spec.NodeName = pick(g, "node-0", "node-1", "node-0", "node-1", "node-2", "nowhere")
	}
	for range g.IntN(4) {
		if g.likely(placement, 70, 5) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, g.toleration())
		}
	}
	if g.themes[placement] && g.chance(50) { // as pods of a DaemonSet have, or those that tolerate all there is
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{
			Key: pick(g, "", v1.TaintNodeUnschedulable), Operator: v1.TolerationOpExists})
	}
	pod.Spec.Affinity = &v1.Affinity{}
	if g.themes[nodeAffinity] {
		g.addNodeAffinity(pod)
	}
	if g.themes[podAffinity] {
		g.addPodAffinity(pod)
	}
	if g.themes[spread] {
		g.addSpread(pod)
	}
	if g.likely(declared, 80, 3) {
		g.addFeatures(pod)
	}
	return pod
}

// Features that nodes declare and pods require.
const (
	restartAllContainers = "RestartAllContainersOnContainerExits"
	hostNetworkUsers     = "UserNamespacesHostNetworkSupport"
	bindMountOptions     = "VolumeBindMountOptions"
)

// addFeatures makes a pod state fields by which it requires features, or nearly so.
func (g *generator) addFeatures(pod *v1.Pod) {
	containers := pod.Spec.Containers
	if len(pod.Spec.InitContainers) > 0 && g.chance(50) {
		containers = pod.Spec.InitContainers
	}
	c := &containers[g.IntN(len(containers))]
	if g.chance(50) {
		c.RestartPolicyRules = []v1.ContainerRestartRule{{Action: pick(g, v1.ContainerRestartRuleActionRestart,
			v1.ContainerRestartRuleActionRestartAllContainers, v1.ContainerRestartRuleActionRestartAllContainers)}}
	}
	pod.Spec.HostNetwork = g.chance(60)
	if g.chance(60) {
		own := g.chance(30)
		pod.Spec.HostUsers = &own
	}
	if g.chance(30) {
		c.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		// A field of 1.37.
		if field := reflect.ValueOf(&c.VolumeMounts[0]).Elem().FieldByName("BindMountOptions"); field.IsValid() {
			field.Set(reflect.ValueOf([]string{"noexec"}))
		}
	}
}

// addContainers gives a pod containers with requests: small ones outside of the theme.
func (g *generator) addContainers(pod *v1.Pod) {
	for range 1 + g.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: g.name("c"), Resources: g.requirements()})
	}
	if g.likely(resources, 30, 3) {
		for range 1 + g.IntN(3) {
			c := v1.Container{Name: g.name("i"), Resources: g.requirements()}
			if g.chance(50) {
				always := v1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
	}
	if g.likely(resources, 25, 2) {
		pod.Spec.Overhead = v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse(pick(g, "10m", "250m", "0.0001")),
			v1.ResourceMemory: resource.MustParse(pick(g, "1", "120Mi", "1e3")),
		}
	}
	if g.likely(resources, 25, 2) {
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{}}
		for _, name := range some(g, 0, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceHugePagesPrefix+"2Mi") {
			pod.Spec.Resources.Requests[name] = g.amount(name)
		}
	}
}

func (g *generator) requirements() v1.ResourceRequirements {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{}}
	if g.chance(15) {
		return v1.ResourceRequirements{}
	}
	for _, name := range some(g, 1, v1.ResourceCPU, v1.ResourceMemory) {
		r.Requests[name] = g.amount(name)
	}
	if g.themes[resources] {
		for _, name := range []v1.ResourceName{v1.ResourceEphemeralStorage, "example.com/gpu", "example.com/nic",
			implicitDevice, v1.ResourceHugePagesPrefix + "2Mi", "odd"} {
			if g.chance(12) {
				r.Requests[name] = g.amount(name)
			}
		}
	}
	if g.chance(30) {
		r.Limits = r.Requests
	}
	return r
}

func (g *generator) amount(name v1.ResourceName) resource.Quantity {
	if !g.themes[resources] {
		return resource.MustParse(pick(g, "1m", "10m", "0", "100m"))
	}
	switch name {
	case v1.ResourceCPU:
		return resource.MustParse(pick(g, "0", "100m", "250m", "0.5", "1", "1500m", "3", "12", "1u", "0.3333", "2e-1"))
	case v1.ResourceMemory:
		return resource.MustParse(pick(g, "0", "1", "64Mi", "1Gi", "1500M", "3e9", "6Gi", "20Gi", "1.5Gi", "100m"))
	case v1.ResourceHugePagesPrefix + "2Mi":
		return resource.MustParse(pick(g, "0", "2Mi", "64Mi", "128Mi"))
	case v1.ResourceEphemeralStorage:
		return resource.MustParse(pick(g, "1Gi", "9Gi", "11Gi", "60G"))
	}
	return resource.MustParse(pick(g, "0", "1", "2", "5"))
}

// addResize gives a bound pod a status that reports other amounts than its spec asks for.
func (g *generator) addResize(pod *v1.Pod) {
	for i := range pod.Spec.Containers {
		status := v1.ContainerStatus{Name: pod.Spec.Containers[i].Name}
		if g.chance(70) {
			status.AllocatedResources = v1.ResourceList{v1.ResourceCPU: g.amount(v1.ResourceCPU),
				v1.ResourceMemory: g.amount(v1.ResourceMemory)}
		}
		if g.chance(70) {
			status.Resources = &v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: g.amount(v1.ResourceCPU)}}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	if g.chance(30) {
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: pick(g, v1.PodReasonInfeasible, v1.PodReasonDeferred),
		}}
	}
}

func (g *generator) addPorts(pod *v1.Pod) {
	port := func() v1.ContainerPort {
		return v1.ContainerPort{
			ContainerPort: 80,
			HostPort:      pick[int32](g, 0, 80, 443, 8080, 8081, 9090),
			Protocol:      pick(g, "", v1.ProtocolTCP, v1.ProtocolTCP, v1.ProtocolUDP),
			HostIP:        pick(g, "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
		}
	}
	containers := pod.Spec.Containers
	if len(pod.Spec.InitContainers) > 0 && g.chance(50) {
		containers = pod.Spec.InitContainers
	}
	c := &containers[g.IntN(len(containers))]
	for range 1 + g.IntN(2) {
		c.Ports = append(c.Ports, port())
	}
}

func (g *generator) disk() v1.VolumeSource {
	readOnly := g.chance(50)
	switch g.IntN(5) {
	case 0:
		return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: pick(g, "pd-1", "pd-2"),
			ReadOnly: readOnly}}
	case 1:
		return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: pick(g, "vol-1",
			"vol-2"), ReadOnly: readOnly}}
	case 2:
		return v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{
			TargetPortal: pick(g, "p1", "p2"), IQN: pick(g, "iqn-1", "iqn-2"), Lun: int32(g.IntN(2)),
			ReadOnly: readOnly}}
	case 3:
		return v1.VolumeSource{RBD: &v1.RBDVolumeSource{
			CephMonitors: some(g, 1, "m1", "m2", "m3"), RBDPool: pick(g, "rbd", "fast"),
			RBDImage: pick(g, "img-1", "img-2"), ReadOnly: readOnly}}
	}
	return v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
}
