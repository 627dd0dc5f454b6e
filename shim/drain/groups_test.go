package drain

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/nodegroup"
)

const twoPools = `
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: a}
spec:
  nodeSelector: {pool: a}
  min: 1
  max: 5
  target: 4
  price: 0.5
  scaleDown: {zeroOrMaxNodeScaling: true, scaleDownUtilizationThreshold: 0.7, scaleDownUnneededTime: 90s, scaleDownUnreadyTime: 1h, ignoreDaemonSetsUtilization: true}
---
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: b}
spec:
  nodeSelector: {zone: z}
  min: 0
  max: 3
`

func node(name string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// slots numbers nodes by the last byte of their name; "lost" is not in the view.
func slots(name string) (int32, bool) { return int32(name[len(name)-1] - '0'), name != "lost" }

func TestGroupsOfAFile(t *testing.T) {
	file, err := nodegroup.Parse([]byte(twoPools))
	if err != nil {
		t.Fatal(err)
	}
	groups := NewGroups(file.Groups)
	groups.AddNode(node("n1", map[string]string{"pool": "a"}))
	groups.AddNode(node("n2", map[string]string{"zone": "z"}))
	groups.AddNode(node("n3", map[string]string{"pool": "a"}))
	groups.AddNode(node("lost", map[string]string{"pool": "a"}))
	groups.AddNode(node("n4", nil))
	got, err := groups.Proto(slots)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	a, b := got[0], got[1]
	if a.GetNodeGroup() != "a" || a.GetMinNodes() != 1 || a.GetMaxNodes() != 5 || a.GetTarget() != 4 ||
		a.GetNodeUsdPerHour() != 0.5 {
		t.Error(a)
	}
	if !a.GetAtomic() || a.GetScaleDownUtilizationThreshold() != 0.7 || a.GetScaleDownUnneededTimeS() != 90 ||
		a.GetScaleDownUnreadyTimeS() != 3600 || !a.GetIgnoreDaemonsetsUtilization() {
		t.Error(a)
	}
	if s := a.GetSlots(); len(s) != 2 || s[0] != 1 || s[1] != 3 {
		t.Error(s)
	}
	if b.Target != nil || b.ScaleDownUnneededTimeS != nil || b.GetAtomic() || len(b.GetSlots()) != 1 {
		t.Error(b)
	}
}

func TestANodeOfTwoGroupsIsAnError(t *testing.T) {
	file, err := nodegroup.Parse([]byte(twoPools))
	if err != nil {
		t.Fatal(err)
	}
	groups := NewGroups(file.Groups)
	groups.AddNode(node("n1", map[string]string{"pool": "a", "zone": "z"}))
	if _, err := groups.Proto(slots); err == nil || err.Error() != "node n1 belongs to two node groups, a and b" {
		t.Error(err)
	}
}

func TestOptionsOfAGroupAreChecked(t *testing.T) {
	for wrong, want := range map[string]string{
		"scaleDownUtilizationThreshold: 0.7": "scaleDownUtilizationThreshold: 1.7 is not in [0, 1]",
		"scaleDownUnneededTime: 90s":         "scaleDownUnneededTime: -1m30s is negative",
	} {
		right, value, _ := strings.Cut(wrong, ": ")
		bad := map[string]string{"0.7": "1.7", "90s": "-90s"}[value]
		_, err := nodegroup.Parse([]byte(strings.Replace(twoPools, wrong, right+": "+bad, 1)))
		if err == nil || !strings.Contains(err.Error(), "spec.scaleDown."+want) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
