package extender

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/fake"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// A pod whose two containers swap 1 and 3 cpu: 6 by the rule of 1.36, 4 by that of 1.37.
func TestResizedPodsCountByTheAPIServersRelease(t *testing.T) {
	cpu := func(amount string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(amount)}}
	}
	pod := newPod("default", "swapping", "node1")
	for name, amounts := range map[string][2]string{"a": {"1", "3"}, "b": {"3", "1"}} {
		on := cpu(amounts[1])
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: cpu(amounts[0])})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: name, Resources: &on})
	}
	for release, want := range map[string]int64{"v1.36.3": 6000, "v1.37.2": 4000} {
		conn := enginetest.Open(t)
		r := startWith(t, conn, Options{}, func(d *fake.FakeDiscovery) {
			d.FakedServerVersion = &version.Info{GitVersion: release}
		}, append(proposalCluster()[:1:1], pod)...)
		r.waitReady()
		answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(),
			&loadlinev1.DescribeRequest{View: DefaultView})
		if err != nil || len(answer.GetNodes()) != 1 {
			t.Fatal(answer, err)
		}
		if got := answer.GetNodes()[0].GetResources()[0].GetRequested(); got != want {
			t.Errorf("%s: got %d, want %d", release, got, want)
		}
	}
}
