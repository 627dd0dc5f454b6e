package race

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/test/e2e/harness"
)

// Karpenter returns Karpenter as a contestant, with the node pool of its documentation.
func Karpenter(built *harness.KarpenterBuilt) *Contestant {
	return &Contestant{Name: "Karpenter", Settings: built.Version + ", consolidateAfter 10s",
		start: func(ctx context.Context, c *contest) error { return c.startKarpenter(ctx, built, nodePool) }}
}

func (c *contest) startKarpenter(ctx context.Context, built *harness.KarpenterBuilt, poolText string) error {
	if err := c.Apply(ctx, built.Definitions); err != nil {
		return err
	}
	file := filepath.Join(c.Dir(), "instance-types.json")
	content, err := json.Marshal(kwokTypes(c.scenario))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	pool, err := harness.Objects(fmt.Appendf(nil, poolText, int(c.scenario.NodeStart.Seconds()),
		strings.Join(capacityTypes(c.scenario), ", ")))
	if err != nil {
		return err
	}
	if err := until(ctx, "Karpenter's definitions", func() error { return c.Apply(ctx, pool) }); err != nil {
		return err
	}
	if err := c.makeReady(ctx); err != nil {
		return err
	}
	_, err = c.StartKarpenter(ctx, built, file)
	return err
}

// nodePool is that of Karpenter's documentation, without limits and expiry.
const nodePool = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {nodeRegistrationDelay: %ds}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%s]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 10s
`

// managedPool is the same as a user of Loadline has it.
var managedPool = strings.NewReplacer("metadata: {name: default}\nspec:\n  template:",
	"metadata: {name: default, labels: {loadline.dev/managed: \"true\"}}\nspec:\n  limits: {cpu: \"0\"}\n  template:",
	"consolidateAfter: 10s\n", "consolidateAfter: 10s\n    budgets: [{nodes: \"0\"}]\n").Replace(nodePool)

// LoadlineByClaims returns Loadline with these settings and Karpenter's hands.
func LoadlineByClaims(name string, built *harness.KarpenterBuilt, s Settings) *Contestant {
	c := LoadlineWith(name, s)
	flags := s.flags()
	c.Settings, c.Simulated = "--cloud=karpenter, Karpenter "+built.Version+", "+c.Settings, nil
	c.start = func(ctx context.Context, c *contest) error {
		if err := c.startKarpenter(ctx, built, managedPool); err != nil {
			return err
		}
		file := filepath.Join(c.Dir(), "prices.csv")
		if err := os.WriteFile(file, priceList(c.scenario), 0o600); err != nil {
			return err
		}
		return c.startAutoscaler(ctx, []string{"autoscaler/karpenter", "autoscaler/act-karpenter"},
			append([]string{"--cloud=karpenter", "--karpenter-zones=" + zone, "--prices=" + file}, flags...))
	}
	return c
}

// priceList is that of the types of a scenario.
func priceList(s *Scenario) []byte {
	spot := map[string]float64{}
	for i := range s.Types {
		if t := &s.Types[i]; t.Spot {
			spot[t.Name] = t.USDPerHour
		}
	}
	list := []byte("instance_type,arch,allocatable_cpu,allocatable_memory,allocatable_pods,gpu_count," +
		"on_demand_usd_per_hour,spot_usd_per_hour\n")
	for i := range s.Types {
		if t := &s.Types[i]; !t.Spot {
			list = fmt.Appendf(list, "%s,amd64,%dm,%dMi,%d,%d,%f,", t.Name, t.MilliCPU, t.MemoryMiB, t.Pods, t.GPUs,
				t.USDPerHour)
			if price, offered := spot[t.Name]; offered {
				list = fmt.Appendf(list, "%f", price)
			}
			list = append(list, '\n')
		}
	}
	return list
}

// capacityTypes are those that the scenario offers. Where a pool allows spot machines, Karpenter orders replacements as
// spot alone, and this provider ends in a panic if there are none.
func capacityTypes(s *Scenario) (all []string) {
	for i := range s.Types {
		if of := s.Types[i].CapacityType(); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// makeReady does for Karpenter's nodes what their kubelets would.
func (c *contest) makeReady(ctx context.Context) error {
	const ready = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`
	source := cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.Everything())
	ctx, cancel := context.WithCancel(ctx)
	c.closers = append(c.closers, func() error { cancel(); return nil })
	return follow(ctx, source, func(node *v1.Node) {
		for _, condition := range node.Status.Conditions {
			if condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue {
				return
			}
		}
		if _, err := c.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, []byte(ready),
			metav1.PatchOptions{}, "status"); err != nil && ctx.Err() == nil && !isGone(err) {
			c.log("node %s does not become ready: %v", node.Name, err)
		}
	}, func(*v1.Node) {})
}

// The amounts that the provider takes away from the capacity of an instance type for what a node offers to pods.
const kwokReservedMilliCPU, kwokReservedMiB = 100, 10

type kwokType struct {
	Name             string            `json:"name"`
	Offerings        []kwokOffering    `json:"offerings"`
	Architecture     string            `json:"architecture"`
	OperatingSystems []string          `json:"operatingSystems"`
	Resources        map[string]string `json:"resources"`
}

type kwokOffering struct {
	Price        float64
	Available    bool
	Requirements []kwokRequirement
}

type kwokRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// kwokTypes are the types of a scenario as the provider reads them: those of one name are offerings of one type.
func kwokTypes(s *Scenario) (all []*kwokType) {
	byName := map[string]*kwokType{}
	for _, t := range s.Types {
		of := byName[t.Name]
		if of == nil {
			of = &kwokType{Name: t.Name, Architecture: "amd64", OperatingSystems: []string{"linux"},
				Resources: map[string]string{"cpu": fmt.Sprintf("%dm", t.MilliCPU+kwokReservedMilliCPU),
					"memory": fmt.Sprintf("%dMi", t.MemoryMiB+kwokReservedMiB), "pods": fmt.Sprint(t.Pods)}}
			if t.GPUs > 0 {
				of.Resources[string(gpu)] = fmt.Sprint(t.GPUs)
			}
			byName[t.Name] = of
			all = append(all, of)
		}
		of.Offerings = append(of.Offerings, kwokOffering{Price: t.USDPerHour, Available: true,
			Requirements: []kwokRequirement{{capacityTypeLabel, "In", []string{t.CapacityType()}},
				{v1.LabelTopologyZone, "In", []string{zone}}}})
	}
	return all
}
