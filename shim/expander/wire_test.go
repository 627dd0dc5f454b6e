package expander

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The functions below write requests as the releases of Cluster Autoscaler do, from the field tables of its own
// expander.proto. They share nothing with what reads them.

// generation is a form of the request on the wire.
type generation struct {
	name       string
	old, fresh bool // pods in field 4 and nodes in field 2; pods in field 5 and nodes in field 3
}

var generations = []generation{
	{"until 1.34.1", true, false},
	{"1.34.2 to 1.34.x", true, true},
	{"from 1.35.0 on", false, true},
}

func varint(value uint64) []byte {
	var out []byte
	for value > 0x7f {
		out = append(out, byte(value)|0x80)
		value >>= 7
	}
	return append(out, byte(value))
}

// lengthDelimited writes a string, bytes or a message.
func lengthDelimited[T string | []byte](field int, content T) []byte {
	return append(append(varint(uint64(field)<<3|2), varint(uint64(len(content)))...), content...)
}

func number(field int, value uint64) []byte {
	return append(varint(uint64(field)<<3), varint(value)...)
}

// askedOption is an option as an autoscaler has it.
type askedOption struct {
	group string
	nodes int32
	pods  []*v1.Pod
}

// asked is a question as an autoscaler has it.
type asked struct {
	options   []askedOption
	templates map[string]*v1.Node
}

func marshal(t testing.TB, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	data, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (g generation) encode(t testing.TB, a asked) []byte {
	t.Helper()
	bytesOf := map[*v1.Pod][]byte{}
	var out []byte
	for _, o := range a.options {
		body := append(lengthDelimited(1, o.group), number(2, uint64(int64(o.nodes)))...)
		body = append(body, lengthDelimited(3, "from an earlier expander")...)
		for _, form := range []struct {
			written bool
			field   int
		}{{g.old, 4}, {g.fresh, 5}} {
			for _, pod := range o.pods {
				if bytesOf[pod] == nil {
					bytesOf[pod] = marshal(t, pod)
				}
				if form.written {
					body = append(body, lengthDelimited(form.field, bytesOf[pod])...)
				}
			}
		}
		out = append(out, lengthDelimited(1, body)...)
	}
	for group, node := range a.templates {
		entry := append(lengthDelimited(1, group), lengthDelimited(2, marshal(t, node))...)
		if g.old {
			out = append(out, lengthDelimited(2, entry)...)
		}
		if g.fresh {
			out = append(out, lengthDelimited(3, entry)...)
		}
	}
	return out
}

// ordinaryPod is a pod as an API server sends it: some 1.7 kB.
func ordinaryPod(name, cpu, memory string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", len(name))),
			ResourceVersion: "12345678", Labels: map[string]string{"app": "web", "pod-template-hash": "5d5f8c7b9"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d5f8c7b9", UID: "u"}},
		},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{
				Name: "web", Image: "registry.example.com/shop/web:1.2.3", ImagePullPolicy: v1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
				Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)},
					Limits:   v1.ResourceList{"memory": resource.MustParse(memory)},
				},
			}},
			RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst, SchedulerName: "default-scheduler",
			ServiceAccountName: "web", NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		},
		Status: v1.PodStatus{Phase: v1.PodPending,
			Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
				Reason: v1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu."}}},
	}
	for i := range 20 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
			v1.EnvVar{Name: fmt.Sprintf("SHOP_SETTING_%02d", i), Value: strings.Repeat("v", 34)})
	}
	for _, volume := range []string{"config", "secret", "token"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: volume,
			VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "web-" + volume}}})
	}
	return pod
}

// templateNode is a node as a cloud provider makes one up for a group.
func templateNode(instanceType, cpu, memory string) *v1.Node {
	capacity := v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		"pods": resource.MustParse("110")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "template-node-for-" + instanceType, Labels: map[string]string{
			v1.LabelInstanceTypeStable: instanceType, v1.LabelTopologyZone: "zone-a", v1.LabelHostname: "template"}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity,
			Images: []v1.ContainerImage{{Names: []string{"registry.example.com/shop/web:1.2.3"}, SizeBytes: 1 << 30}}},
	}
}
