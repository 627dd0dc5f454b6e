package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/scheduler"
)

// onlyOurs is a configuration of two profiles with no other score plugin.
const onlyOurs = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: strict
  plugins: &plugins
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesLimitAware, weight: 3}]
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, resources: [{resource: cpu, weight: 1}]}
- schedulerName: absolute
  plugins: *plugins
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, preset: kep217, normalization: Absolute, resources: [{resource: cpu, weight: 1}]}
`

// newProfiles makes the frameworks of a configuration as kube-scheduler does, on a snapshot.
func newProfiles(t *testing.T, config string, pods []*v1.Pod, nodes []*v1.Node) (profile.Map, []fwk.NodeInfo, error) {
	t.Helper()
	snapshot := cache.NewSnapshot(pods, nodes)
	profiles, err := newProfilesOn(t, config, snapshot)
	if err != nil {
		return nil, nil, err
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	return profiles, infos, nil
}

func newProfilesOn(t *testing.T, config string, snapshot *cache.Snapshot,
	more ...frameworkruntime.Option) (profile.Map, error) {
	t.Helper()
	metrics.Register()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	decoded, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		return nil, err
	}
	registry := plugins.NewInTreeRegistry()
	if err := registry.Register(scheduler.Name, scheduler.New); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(10) }
	profiles, err := profile.NewMap(t.Context(), decoded.Profiles, registry, recorder,
		append(more, frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithClientSet(client),
			frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)))...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := profiles.Close(); err != nil {
			t.Error(err)
		}
	})
	return profiles, nil
}

func cores(n int64) v1.ResourceList {
	return v1.ResourceList{"cpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

func newPod(name, node string, request, limit int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: cores(request), Limits: cores(limit)},
		}}},
	}
}

// example is the proposal's own: node1 ends at 14/8 of its allocatable with pod5, node2 at 9/8.
func example() (pods []*v1.Pod, nodes []*v1.Node) {
	pods = []*v1.Pod{
		newPod("pod1", "node1", 2, 6), newPod("pod2", "node1", 2, 4), newPod("pod3", "node2", 3, 3),
		newPod("pod4", "node2", 2, 2),
	}
	for _, name := range []string{"node1", "node2"} {
		nodes = append(nodes,
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: cores(8)}})
	}
	return pods, nodes
}

// totals runs the score plugins of a profile as kube-scheduler does.
func totals(t *testing.T, f framework.Framework, nodes []fwk.NodeInfo) map[string]int64 {
	t.Helper()
	state := framework.NewCycleState()
	pod := newPod("pod5", "", 1, 4)
	if status := f.RunPreScorePlugins(t.Context(), state, pod, nodes); !status.IsSuccess() {
		t.Fatalf("PreScore: %v", status)
	}
	scores, status := f.RunScorePlugins(t.Context(), state, pod, nodes)
	if !status.IsSuccess() {
		t.Fatalf("Score: %v", status)
	}
	out := map[string]int64{}
	for _, node := range scores {
		out[node.Name] = node.TotalScore
	}
	return out
}

func TestScoresThroughTheFramework(t *testing.T) {
	pods, nodes := example()
	config := fmt.Sprintf(onlyOurs, enginetest.Address(t))
	profiles, infos, err := newProfiles(t, config, pods, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		// MinMax gives the lower node all, at weight 3.
		if got, want := totals(t, profiles["strict"], infos), "map[node1:0 node2:300]"; fmt.Sprint(got) != want {
			t.Errorf("strict: got %v, want %s", got, want)
		}
		// Absolute: 100/(1+14/8) = 36.4 and 100/(1+9/8) = 47.1.
		if got, want := totals(t, profiles["absolute"], infos), "map[node1:108 node2:141]"; fmt.Sprint(got) != want {
			t.Errorf("absolute: got %v, want %s", got, want)
		}
	}
}

// Beside the default plugins nothing else changes, and pods stay signed.
func TestBesideTheDefaultPlugins(t *testing.T) {
	pods, nodes := example()
	profiles, infos, err := newProfiles(t, fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: NodeResourcesLimitAware, weight: 1}]
      disabled: [{name: DynamicResources}, {name: VolumeBinding}] # want informers that run, and PreFilter
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %q}
  - name: PodTopologySpread
    args: {defaultingType: List}
`, enginetest.Address(t)), pods, nodes)
	if err != nil {
		t.Fatal(err)
	}
	f := profiles["default-scheduler"]
	if got := totals(t, f, infos); got["node2"] <= got["node1"] {
		t.Errorf("got %v, want node2 first", got)
	}
	sign := func(limit int64) string { return string(f.SignPod(t.Context(), newPod("pod5", "", 1, limit))) }
	if sign(4) == "" || sign(4) != sign(4) {
		t.Error("equal pods have no equal signatures")
	}
	if sign(4) == sign(5) {
		t.Error("pods with different limits have the same signature")
	}
}

// Without an engine the other plugins decide, and no pod fails.
func TestWithoutAnEngine(t *testing.T) {
	pods, nodes := example()
	profiles, infos, err := newProfiles(t, fmt.Sprintf(onlyOurs, "unix:///nonexistent/socket"), pods, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, want := totals(t, profiles["strict"], infos), "map[node1:0 node2:0]"; fmt.Sprint(got) != want {
			t.Fatalf("got %v, want %s", got, want)
		}
	}
}

func TestConfigurationErrorsEndTheStart(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"UnknownField", "preset: kep217", "presett: kep217", `unknown field "presett"`},
		{"RepeatedField", "preset: kep217", "preset: kep217, preset: strict", `"preset" already set`},
		{"Weight", "weight: 1}]}\n- ", "weight: 0}]}\n- ", `resources[0].weight: Invalid value: 0`},
		{"NoEngine", "preset: kep217", `engineAddress: "inprocess:///nonexistent.so"`,
			"/nonexistent.so: cannot open shared object file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := fmt.Sprintf(onlyOurs, enginetest.Address(t))
			if c.name == "NoEngine" {
				config = strings.Replace(config, fmt.Sprintf("engineAddress: %q, preset", enginetest.Address(t)),
					"preset", 1)
			}
			changed := strings.Replace(config, c.from, c.to, 1)
			if changed == config {
				t.Fatal("nothing was replaced")
			}
			pods, nodes := example()
			if _, _, err := newProfiles(t, changed, pods, nodes); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q in it", err, c.want)
			}
		})
	}
}
