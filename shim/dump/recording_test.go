package dump_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/scaleup"
)

// daemonPods returns the pods that these DaemonSets put on new nodes.
func daemonPods(sets ...*appsv1.DaemonSet) [][]byte {
	pods := scaleup.NewPods()
	for _, set := range sets {
		pods.AddObject(set)
	}
	return pods.DaemonPods()
}

// DaemonSets of a recording put the same pods on new nodes, and those put none there that did not.
func TestRecordedDaemonSetsHaveTheirPods(t *testing.T) {
	set := func(name, scheduler string) *appsv1.DaemonSet {
		spec := v1.PodSpec{SchedulerName: scheduler, Containers: []v1.Container{{Name: "c"}},
			Tolerations: []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}}
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
			Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: spec}}}
	}
	net, odd := set("net", ""), set("odd", "unknown")
	changes := &loadlinev1.Changes{}
	for _, set := range []*appsv1.DaemonSet{net, odd} {
		bare, err := (&appsv1.DaemonSet{ObjectMeta: set.ObjectMeta}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		changes.Objects = append(changes.Objects,
			&loadlinev1.ClusterObject{Kind: loadlinev1.ObjectKind_DAEMON_SET, Object: bare})
	}
	want := daemonPods(net, odd)
	if len(want) != 1 {
		t.Fatal(len(want))
	}
	question, err := proto.Marshal(&loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Own{Own: changes},
		DaemonPods: want})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	call := &loadlinev1.RecordedCall{Method: "/loadline.v1.Autoscaler/PlanLoop", Request: question}
	if _, err := protodelim.MarshalTo(&file, call); err != nil {
		t.Fatal(err)
	}
	var sets []*appsv1.DaemonSet
	counts, err := dump.Read(&file, "loop.rec", dump.Handler{PlannerObject: func(object any) error {
		sets = append(sets, object.(*appsv1.DaemonSet))
		return nil
	}})
	if err != nil || len(sets) != 2 || counts.Objects["DaemonSet"] != 2 {
		t.Fatal(sets, counts, err)
	}
	if got := daemonPods(sets...); len(got) != 1 || !bytes.Equal(got[0], want[0]) {
		t.Errorf("%q, want %q", got, want)
	}
}
