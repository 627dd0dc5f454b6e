package race

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// loadlineTimes are Loadline's times in a race in which a second represents a minute: 10 minutes until an unneeded node
// is removed, and as long after growth. Steps that take seconds on a cluster take a second. A minute represents an
// hour, so that a disturbed pod costs a sixtieth of the default, and has to be saved within a sixtieth of the time.
var loadlineTimes = []string{"--scan-interval=1s", "--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=10s",
	"--node-delete-delay-after-taint=1s", "--eviction-retry-interval=1s", "--poll-interval=500ms",
	"--slack-removal-delay=10s", "--slack-keep=report", "--replacement-rest=30s",
	fmt.Sprintf("--pod-disruption-cost=%.5f", podDisruptionCost), fmt.Sprintf("--payback-hours=%.5f", paybackHours)}

// Defaults of the autoscaler, for hours of a minute.
const (
	podDisruptionCost = 0.1 / 60
	paybackHours      = 1.5 / 60
)

// Settings of Loadline that contestants differ in.
type Settings struct {
	// SlackPercent is kept free; 0: nothing is.
	SlackPercent int64
	// Threshold of utilization above which no node is removed.
	Threshold float64
	// Replace nodes by cheaper ones.
	Replace bool
	// DownscaleOrder has Deployments that shrink empty nodes.
	DownscaleOrder bool
	// MemoryLine is the load line for memory; 0: there is none.
	MemoryLine float64
}

// LoadlineWith returns Loadline with these settings.
func LoadlineWith(name string, s Settings) *Contestant {
	flags := s.flags()
	c := Loadline(name, flags...)
	if c.memoryLine = s.MemoryLine; c.memoryLine > 0 {
		return c // the simulator's scheduler has no line
	}
	ten := int64(10)
	c.Simulated = &loadlinev1.SimulatedSettings{ScanSeconds: 1, UtilizationThreshold: &s.Threshold,
		EvictionRetryMilliseconds: new(int64(1000)), PollMilliseconds: new(int64(500)),
		UnneededSeconds: &ten, DelayAfterAddSeconds: &ten, SlackPercent: &s.SlackPercent, Replace: s.Replace,
		DownscaleOrder: s.DownscaleOrder,
		Consolidation: &loadlinev1.ConsolidationPolicy{RestSeconds: new(int32(30)),
			UsdPerDisturbedPod: new(podDisruptionCost), PaybackHours: new(paybackHours)}}
	return c
}

// flags are those of the autoscaler with these settings.
func (s *Settings) flags() []string {
	decisions := "--decisions=scale-up,slack,scale-down"
	if s.SlackPercent == 0 {
		decisions = "--decisions=scale-up,scale-down"
	}
	if s.Replace {
		decisions += ",replace"
	}
	if s.DownscaleOrder {
		decisions += ",downscale-order"
	}
	flags := []string{decisions, fmt.Sprintf("--extra-capacity-min-rate=%d%%", s.SlackPercent),
		fmt.Sprintf("--scale-down-utilization-threshold=%v", s.Threshold)}
	if s.MemoryLine > 0 {
		flags = append(flags, fmt.Sprintf("--max-limits-over-allocatable=memory=%v", s.MemoryLine))
	}
	return flags
}

// Loadline returns a contestant that is Loadline with these flags beside those of its times.
func Loadline(name string, flags ...string) *Contestant {
	return &Contestant{Name: name, Settings: strings.Join(append(slices.Clone(flags), loadlineTimes...), " "),
		start: func(ctx context.Context, c *contest) error { return c.startLoadline(ctx, flags) }}
}

func (c *contest) startLoadline(ctx context.Context, flags []string) error {
	socket := filepath.Join(c.Dir(), "cloud.sock")
	cloud, err := simcloud.Start(c.Client, socket,
		simcloud.Options{CreateDelay: c.scenario.NodeStart, Groups: cloudGroups(c.scenario)})
	if err != nil {
		return err
	}
	c.closers = append(c.closers, cloud.Close)
	return c.startAutoscaler(ctx, nil, append([]string{"--cloud-address=unix://" + socket, "--cloud-cacert=",
		"--cloud-cert=", "--cloud-key="}, flags...))
}

// startAutoscaler starts Loadline with the rights of these folders, beside those that it always has.
func (c *contest) startAutoscaler(ctx context.Context, rights, flags []string) error {
	folders := append([]string{"autoscaler", "autoscaler/act", "autoscaler/act-nodes"}, rights...)
	if strings.Contains(strings.Join(flags, " "), "downscale-order") {
		folders = append(folders, "autoscaler/act-downscale-order")
	}
	for _, folder := range folders {
		objects, err := harness.ManifestObjects(folder)
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects,
			func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
		if err := c.Apply(ctx, objects); err != nil {
			return err
		}
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "kube-system", "loadline-autoscaler")
	if err != nil {
		return err
	}
	content, err := harness.ManifestConfig("autoscaler/20-config.yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(c.Dir(), "autoscaler.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	engine, err := c.StartEngine(ctx, "loadlined")
	if err != nil {
		return err
	}
	args := append([]string{"--mode=act", "--engine=" + engine.Address}, loadlineTimes...)
	_, err = c.StartAutoscaler(ctx, "autoscaler", kubeconfig, file, append(args, flags...)...)
	return err
}

// mostNodes of a group: more than any load of a race needs.
const mostNodes = 200

func cloudGroups(s *Scenario) (groups []simcloud.Group) {
	for i := range s.Types {
		t := &s.Types[i]
		size := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(t.MilliCPU, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(t.MemoryMiB<<20, resource.BinarySI),
			v1.ResourcePods:   *resource.NewQuantity(t.Pods, resource.DecimalSI)}
		if t.GPUs > 0 {
			size[gpu] = *resource.NewQuantity(t.GPUs, resource.DecimalSI)
		}
		groups = append(groups, simcloud.Group{ID: t.Group(), Max: mostNodes, Price: t.USDPerHour,
			Template: &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: nodeLabels(t)},
				Status: v1.NodeStatus{Capacity: size, Allocatable: size}}})
	}
	return groups
}

const zone = "us-east-1a"

func nodeLabels(t *Type) map[string]string {
	return map[string]string{v1.LabelInstanceTypeStable: t.Name, v1.LabelTopologyZone: zone,
		capacityTypeLabel: t.CapacityType(), v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux"}
}
