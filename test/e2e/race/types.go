package race

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/test/e2e/harness"
)

// catalogue is where the types of machines come from, with what their nodes offer to pods and their list prices.
const catalogue = "manifests/prices/aws-us-east-1.csv"

// Types reads types of machines from the catalogue, in the order of `names`.
func Types(names ...string) ([]Type, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(root, catalogue))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	known := map[string]Type{}
	for _, row := range rows[1:] {
		t, err := typeOf(func(name string) string { return row[column[name]] })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", catalogue, err)
		}
		known[t.Name] = t
	}
	types := make([]Type, 0, len(names))
	for _, name := range names {
		if _, ok := known[name]; !ok {
			return nil, fmt.Errorf("%s: no instance type %s", catalogue, name)
		}
		types = append(types, known[name])
	}
	return types, nil
}

func typeOf(field func(string) string) (t Type, err error) {
	t.Name = field("instance_type")
	cpu, err := resource.ParseQuantity(field("allocatable_cpu"))
	if err != nil {
		return t, fmt.Errorf("%s: allocatable_cpu: %w", t.Name, err)
	}
	memory, err := resource.ParseQuantity(field("allocatable_memory"))
	if err != nil {
		return t, fmt.Errorf("%s: allocatable_memory: %w", t.Name, err)
	}
	t.MilliCPU, t.MemoryMiB = cpu.MilliValue(), memory.Value()>>20
	if t.Pods, err = strconv.ParseInt(field("allocatable_pods"), 10, 64); err != nil {
		return t, fmt.Errorf("%s: allocatable_pods: %w", t.Name, err)
	}
	if t.GPUs, err = strconv.ParseInt(field("gpu_count"), 10, 64); err != nil {
		return t, fmt.Errorf("%s: gpu_count: %w", t.Name, err)
	}
	if t.USDPerHour, err = strconv.ParseFloat(field("on_demand_usd_per_hour"), 64); err != nil {
		return t, fmt.Errorf("%s: on_demand_usd_per_hour: %w", t.Name, err)
	}
	return t, nil
}

// WithSpot adds each type once more, as spot machines at a share of its price.
func WithSpot(types []Type, share float64) []Type {
	all := types
	for _, t := range types {
		t.Spot, t.USDPerHour = true, t.USDPerHour*share
		all = append(all, t)
	}
	return all
}
