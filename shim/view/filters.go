package view

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/unknownfields"
)

// Field numbers of k8s.io/api/core/v1 that only filters read; see trim.go.
const (
	metaDeletionTimestamp = 9
	metaLabels            = 11

	specVolumes        = 1
	specNodeSelector   = 7
	specNodeName       = 10
	specHostNetwork    = 11
	specAffinity       = 18
	specSchedulerName  = 19
	specTolerations    = 22
	specSpread         = 33
	specHostUsers      = 37
	specResourceClaims = 39

	nodeSpec              = 2
	nodeSpecUnschedulable = 4
	nodeSpecTaints        = 5

	containerPorts        = 6
	containerVolumeMounts = 9
	containerRestartRules = 25

	mountBindMountOptions = 8

	nodeStatusDeclaredFeatures = 14
)

// TrimPodForFilters is TrimPod with what filters read as well.
func TrimPodForFilters(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, filters: true, status: true})
}

// TrimIncomingPodForFilters returns a pod that looks for a node as a plain protobuf v1.Pod that holds what the
// engine reads of it: with name and UID, which claims and messages name, and without its status.
func TrimIncomingPodForFilters(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, filters: true, identity: true})
}

// SignPodForFilters returns bytes that are equal for two pods if no filter can tell them apart when they are to be
// placed, but for claims that are named after their pod.
func SignPodForFilters(pod *v1.Pod) []byte {
	return trimPod(pod, detail{names: true, filters: true})
}

// TrimNodeForFilters is TrimNode with what filters read as well.
func TrimNodeForFilters(node *v1.Node) []byte {
	return trimNode(node, detail{filters: true})
}

// marshaler is what the generated types of k8s.io/api have in common.
type marshaler interface{ Marshal() ([]byte, error) }

// appendObject appends an object as its own marshaller writes it: few pods have what is written this way.
func appendObject(b []byte, number protowire.Number, object marshaler) []byte {
	text, err := object.Marshal()
	if err != nil {
		panic(err) // these types have nothing that could fail to be written
	}
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), text)
}

// appendLabels writes a map as entries in key order.
func appendLabels(b []byte, number protowire.Number, labels map[string]string) []byte {
	var few [16]string
	keys := few[:0]
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		b = appendMessage(b, number, func(b []byte) []byte {
			return appendString(appendString(b, entryKey, key), entryValue, labels[key])
		})
	}
	return b
}

// appendDeletion appends to a pod's metadata that it is being deleted: since when plays no part for filters.
func appendDeletion(b []byte, pod *v1.Pod) []byte {
	if pod.DeletionTimestamp == nil {
		return b
	}
	return appendObject(b, metaDeletionTimestamp, &metav1.Time{})
}

// appendFilterSpec appends what filters read of a pod's spec, but for its containers.
func appendFilterSpec(b []byte, spec *v1.PodSpec) []byte {
	for i := range spec.Volumes {
		if volume, ok := trimVolume(&spec.Volumes[i]); ok {
			b = appendObject(b, specVolumes, volume)
		}
	}
	b = appendLabels(b, specNodeSelector, spec.NodeSelector)
	if affinity := requiredAffinity(spec.Affinity); affinity != nil {
		b = appendObject(b, specAffinity, affinity)
	}
	for i := range spec.Tolerations {
		t := v1.Toleration{Key: spec.Tolerations[i].Key, Operator: spec.Tolerations[i].Operator,
			Value: spec.Tolerations[i].Value, Effect: spec.Tolerations[i].Effect}
		b = appendObject(b, specTolerations, &t)
	}
	for i := range spec.TopologySpreadConstraints {
		b = appendObject(b, specSpread, &spec.TopologySpreadConstraints[i])
	}
	for i := range spec.ResourceClaims {
		b = appendObject(b, specResourceClaims, &v1.PodResourceClaim{Name: spec.ResourceClaims[i].Name})
	}
	if spec.SchedulerName != v1.DefaultSchedulerName {
		b = appendString(b, specSchedulerName, spec.SchedulerName)
	}
	if needsUserNamespace(spec) {
		b = appendVarint(b, specHostNetwork, 1)
		b = appendVarint(b, specHostUsers, 0)
	}
	return b
}

// needsUserNamespace says whether a node has to offer user namespaces on its own network: only together the two fields
// mean something to a filter.
func needsUserNamespace(spec *v1.PodSpec) bool {
	return spec.HostNetwork && spec.HostUsers != nil && !*spec.HostUsers
}

// appendRestartRules appends the rules that a node has to know of.
func appendRestartRules(b []byte, rules []v1.ContainerRestartRule) []byte {
	for i := range rules {
		if rules[i].Action == v1.ContainerRestartRuleActionRestartAllContainers {
			return appendObject(b, containerRestartRules, &v1.ContainerRestartRule{Action: rules[i].Action})
		}
	}
	return b
}

// bindMountOptions is the field of a volume mount that 1.37 brought; nil with the types of 1.36, which lack it. A
// decoder of those notes it as unknown.
var bindMountOptions = func() []int {
	field, _ := reflect.TypeFor[v1.VolumeMount]().FieldByName("BindMountOptions")
	return field.Index
}()

// hasMountOptions says whether a node has to know of bind mount options.
func hasMountOptions(mounts []v1.VolumeMount) bool {
	return bindMountOptions != nil && slices.ContainsFunc(mounts, func(m v1.VolumeMount) bool {
		return reflect.ValueOf(m).FieldByIndex(bindMountOptions).Len() > 0
	})
}

// appendMountOptions appends that a container has bind mount options.
func appendMountOptions(b []byte, mounts []v1.VolumeMount) []byte {
	if !hasMountOptions(mounts) {
		return b
	}
	return appendMessage(b, containerVolumeMounts, func(b []byte) []byte {
		return appendString(b, mountBindMountOptions, "any")
	})
}

// keptMounts keeps volume mounts with bind mount options.
func keptMounts(mounts []v1.VolumeMount) []v1.VolumeMount {
	return slices.DeleteFunc(slices.Clone(mounts), func(m v1.VolumeMount) bool {
		return !hasMountOptions([]v1.VolumeMount{m})
	})
}

// appendUnknownFields appends the note that an object has fields which this program does not know.
func appendUnknownFields(b []byte, object metav1.Object) []byte {
	if note := unknownfields.Of(object); note != "" {
		return appendLabels(b, metaAnnotations, map[string]string{unknownfields.Annotation: text.Valid(note)})
	}
	return b
}

// trimVolume leaves out volumes that come with every pod and bind it to no node, such as tokens and secrets.
func trimVolume(volume *v1.Volume) (*v1.Volume, bool) {
	s := &volume.VolumeSource
	out := &v1.Volume{}
	switch {
	case s.PersistentVolumeClaim != nil:
		out.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: s.PersistentVolumeClaim.ClaimName}
	case s.Ephemeral != nil: // the claim is named after the volume
		out.Name, out.Ephemeral = volume.Name, &v1.EphemeralVolumeSource{}
	case s.GCEPersistentDisk != nil:
		out.GCEPersistentDisk = s.GCEPersistentDisk
	case s.AWSElasticBlockStore != nil:
		out.AWSElasticBlockStore = s.AWSElasticBlockStore
	case s.ISCSI != nil:
		out.ISCSI = s.ISCSI
	case s.RBD != nil:
		out.RBD = s.RBD
	case s.Cinder != nil, s.AzureFile != nil, s.VsphereVolume != nil, s.AzureDisk != nil, s.PortworxVolume != nil:
		out = volume // these count as volumes of a CSI driver once their plugin has been migrated
	default:
		return nil, false
	}
	return out, true
}

// requiredAffinity returns the part of an affinity that filters read; nil if there is none.
func requiredAffinity(affinity *v1.Affinity) *v1.Affinity {
	if affinity == nil {
		return nil
	}
	var out v1.Affinity
	if a := affinity.NodeAffinity; a != nil && a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		out.NodeAffinity = &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if a := affinity.PodAffinity; a != nil && len(a.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if a := affinity.PodAntiAffinity; a != nil && len(a.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAntiAffinity = &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if out == (v1.Affinity{}) {
		return nil
	}
	return &out
}

// appendPorts appends the ports that a container takes on its node.
func appendPorts(b []byte, ports []v1.ContainerPort) []byte {
	for i := range ports {
		if p := &ports[i]; p.HostPort > 0 {
			b = appendObject(b, containerPorts,
				&v1.ContainerPort{HostPort: p.HostPort, Protocol: p.Protocol, HostIP: p.HostIP})
		}
	}
	return b
}

// appendNodeSpec appends what filters, and planners, read of a node's spec.
func appendNodeSpec(b []byte, node *v1.Node, with detail) []byte {
	if !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 && (!with.planning || node.Spec.ProviderID == "") {
		return b
	}
	return appendMessage(b, nodeSpec, func(b []byte) []byte {
		if with.planning {
			b = appendString(b, nodeSpecProviderID, node.Spec.ProviderID)
		}
		if node.Spec.Unschedulable {
			b = protowire.AppendVarint(protowire.AppendTag(b, nodeSpecUnschedulable, protowire.VarintType), 1)
		}
		for i := range node.Spec.Taints {
			t := &node.Spec.Taints[i]
			b = appendObject(b, nodeSpecTaints, &v1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
		return b
	})
}

// keepAnnotations returns those of an object's annotations that have one of the names.
func keepAnnotations(annotations map[string]string, names ...string) map[string]string {
	var out map[string]string
	for _, name := range names {
		if value, ok := annotations[name]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}
