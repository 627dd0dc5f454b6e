package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// The gateway of the extender runs on all control plane nodes, whichever value their label has and with the taints that
// kubeadm, k3s and RKE2 document for them, and on no other node.
func TestGatewayRunsOnControlPlanes(t *testing.T) {
	const role = "node-role.kubernetes.io/"
	taint := func(key, value string, effect v1.TaintEffect) v1.Taint {
		return v1.Taint{Key: key, Value: value, Effect: effect}
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		taints []v1.Taint
		runs   bool
	}{
		{"kubeadm", map[string]string{role + "control-plane": ""},
			[]v1.Taint{taint(role+"control-plane", "", v1.TaintEffectNoSchedule)}, true},
		{"k3s", map[string]string{role + "control-plane": "true", role + "etcd": "true"}, nil, true},
		{"k3s without other pods", map[string]string{role + "control-plane": "true"},
			[]v1.Taint{taint("CriticalAddonsOnly", "true", v1.TaintEffectNoExecute)}, true},
		{"RKE2", map[string]string{role + "control-plane": "true", role + "etcd": "true"},
			[]v1.Taint{taint(role+"control-plane", "true", v1.TaintEffectNoSchedule),
				taint(role+"etcd", "true", v1.TaintEffectNoExecute)}, true},
		{"etcd alone", map[string]string{role + "etcd": "true"}, nil, false},
		{"worker", map[string]string{role + "worker": ""}, nil, false},
		{"nothing", nil, nil, false},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.name, Labels: c.labels}, Spec: v1.NodeSpec{Taints: c.taints}}
		pod := podObjects(t, "extender")[0]
		matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		if err != nil {
			t.Fatal(err)
		}
		refused, isRefused := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
			pod.Spec.Tolerations, nil, false)
		if runs := matches && !isRefused; runs != c.runs {
			t.Errorf("%s: the gateway runs there: %v, want %v (taint that it does not tolerate: %v)", c.name, runs, c.runs,
				refused)
		}
	}
}

// No manifest asks for a value of a label that says what a node is for: distributions set different ones.
func TestManifestsCompareNoRoles(t *testing.T) {
	for _, folder := range append(appliedFolders, staticPod, "usage") {
		for _, pod := range podObjects(t, folder) {
			for label, value := range pod.Spec.NodeSelector {
				if label != v1.LabelOSStable && label != v1.LabelArchStable {
					t.Errorf("%s: pod %s asks for nodes with the label %s=%q", folder, pod.Name, label, value)
				}
			}
		}
	}
}
