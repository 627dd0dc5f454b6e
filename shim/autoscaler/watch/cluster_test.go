package watch

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	discovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/view"
)

// Objects that come and go leave nothing behind: neither where nobody leads, nor while loops end before they look.
func TestObjectsThatComeAndGoAreForgotten(t *testing.T) {
	options := config.Default()
	c := New(view.NewForPlanning(enginetest.Open(t), "test"), &options, nil)
	pods, jobs := c.Handler(KindPod), c.Handler("Job")
	comeAndGo := func() {
		for i := range 1000 {
			meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}
			pods.OnAdd(&v1.Pod{ObjectMeta: meta}, false)
			pods.OnUpdate(nil, &v1.Pod{ObjectMeta: meta})
			pods.OnDelete(&v1.Pod{ObjectMeta: meta})
			jobs.OnAdd(&batchv1.Job{ObjectMeta: meta}, false)
			jobs.OnDelete(cache.DeletedFinalStateUnknown{Obj: &batchv1.Job{ObjectMeta: meta}})
		}
	}
	stays := metav1.ObjectMeta{Namespace: "default", Name: "stays"}
	pods.OnAdd(&v1.Pod{ObjectMeta: stays}, true)
	jobs.OnAdd(&batchv1.Job{ObjectMeta: stays}, true)
	comeAndGo()
	if len(c.inbox.notes) != 2 {
		t.Errorf("a standby remembers %d objects, want 2", len(c.inbox.notes))
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	comeAndGo()
	for range 2 { // the last one returns in between
		pods.OnDelete(&v1.Pod{ObjectMeta: stays})
		jobs.OnDelete(&batchv1.Job{ObjectMeta: stays})
		pods.OnAdd(&v1.Pod{ObjectMeta: stays}, false)
	}
	pods.OnDelete(&v1.Pod{ObjectMeta: stays})
	if len(c.inbox.notes) != 2 {
		t.Errorf("a leader without a cloud remembers %d objects, want those that it has to take back",
			len(c.inbox.notes))
	}
	if err := c.Apply(); err != nil || len(c.Pods) != 0 {
		t.Errorf("pods %v, %v", c.Pods, err)
	}
}

// A pod whose two containers swap 1 and 3 cpu: 6 by the rule of 1.36, 4 by that of 1.37.
func TestResizedPodsCountByTheRelease(t *testing.T) {
	cpu := func(amount string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(amount)}}
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "swapping"},
		Spec: v1.PodSpec{NodeName: "n1"}}
	for name, amounts := range map[string][2]string{"a": {"1", "3"}, "b": {"3", "1"}} {
		on := cpu(amounts[1])
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Resources: cpu(amounts[0])})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: name, Resources: &on})
	}
	for _, c := range []struct {
		server string
		meant  int32
		want   int64
	}{{"v1.36.3", 0, 6000}, {"v1.37.2", 0, 4000}, {"v1.37.2", 36, 6000}} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, pod)
			client.Discovery().(*discovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: c.server}
			conn, options := enginetest.Open(t), config.Default()
			cluster := New(view.NewForPlanning(conn, "test"), &options,
				&loadlinev1.FitOptions{KubernetesMinor: c.meant})
			if err := cluster.Watch(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cluster.AskRelease(t.Context(), client.Discovery())
			if err := cluster.Apply(); err != nil {
				t.Fatal(err)
			}
			if err := cluster.View.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(),
				&loadlinev1.DescribeRequest{View: "test"})
			if err != nil || len(answer.GetNodes()) != 1 {
				t.Fatal(answer, err)
			}
			if got := answer.GetNodes()[0].GetResources()[0].GetRequested(); got != c.want {
				t.Errorf("%+v: got %d", c, got)
			}
		})
	}
}

// A cluster is known without Deployments, device classes, namespaces and CSI drivers if these may not be listed, and it
// does not get older by that. The engine learns that it has all of a kind as soon as that may be listed.
func TestKindsThatMayNotBeListed(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // one of them sleeps by a clock that all tests share
	defer func() { utilruntime.ErrorHandlers = handlers }()
	for _, c := range []struct {
		resource string
		ready    bool
	}{{"deployments", true}, {"deviceclasses", true}, {"namespaces", true}, {"csidrivers", true}, {"jobs", false},
		{"poddisruptionbudgets", false}, {"nodes", false}} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			client.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
			var granted atomic.Bool
			client.PrependReactor("list", c.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return !granted.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: c.resource}, "", nil)
			})
			conn, options := enginetest.Open(t), config.Default()
			cluster := New(view.NewForPlanning(conn, "test"), &options, nil)
			if err := cluster.Watch(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			look := func(ready bool, old time.Duration, complete int) {
				t.Helper()
				time.Sleep(time.Minute)
				if err := cluster.Apply(); err != nil {
					t.Fatal(err)
				}
				if err := cluster.View.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				answer, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(),
					&loadlinev1.DescribeRequest{View: "test"})
				if err != nil {
					t.Fatal(err)
				}
				all := 0
				for _, count := range answer.GetViews()[0].GetObjects() {
					if count.GetComplete() {
						all++
					}
				}
				if cluster.Ready() != ready || (cluster.Doubt() == nil) != ready || cluster.Age > old || all != complete {
					t.Errorf("%s: ready %v, doubt %v, age %v, complete %d of %d", c.resource, cluster.Ready(), cluster.Doubt(),
						cluster.Age, all, complete)
				}
			}
			if c.ready {
				look(true, 0, 13) // of 14 kinds beside nodes, pods and profiles of expected use
			} else {
				look(false, time.Minute, 0)
			}
			granted.Store(true)
			look(true, time.Minute, 14)
		})
	}
}
