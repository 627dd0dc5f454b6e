package karpenter

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
)

// instanceType is one of a price list.
type instanceType struct {
	Name        string
	Arch        string
	Allocatable v1.ResourceList
	Labels      map[string]string // by which requirements choose
	Price       float64           // on demand, US dollars per hour
	// noGPUs and noAccelerators say that the machine has none for certain. On AWS only the families inf and trn have
	// what Karpenter calls accelerators.
	noGPUs, noAccelerators bool
}

// gpuLabel and acceleratorLabel are the labels of Karpenter's providers that nodes with GPUs, or with chips for
// inference and training, have.
var (
	gpuLabel         = regexp.MustCompile(`^karpenter\.[^/]+/(instance|sku)-gpu-`)
	acceleratorLabel = regexp.MustCompile(`^karpenter\.[^/]+/(instance|sku)-accelerator-`)
)

// lacks says whether it is known that nodes of the type do not have a label.
func (t *instanceType) lacks(label string) bool {
	return t.noGPUs && gpuLabel.MatchString(label) || t.noAccelerators && acceleratorLabel.MatchString(label)
}

// readTypes returns the instance types of price lists whose shapes these state, by name; the first list that has one
// counts. A type without a shape cannot be planned with before a node of it is there.
func readTypes(lists []*loadlinev1.PriceCatalogue) (map[string]*instanceType, error) {
	all := map[string]*instanceType{}
	for _, list := range lists {
		if err := readList(list.GetCsv(), all); err != nil {
			return nil, fmt.Errorf("price list %s: %w", list.GetName(), err)
		}
	}
	return all, nil
}

func readList(data []byte, all map[string]*instanceType) error {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comment, reader.FieldsPerRecord, reader.ReuseRecord = '#', -1, true
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	header = slices.Clone(header)
	if !slices.Contains(header, "instance_type") || !slices.Contains(header, "allocatable_cpu") &&
		!slices.Contains(header, "capacity_vcpu") {
		return nil // a list without shapes
	}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t, err := typeOf(func(name string) string {
			if i := slices.Index(header, name); i >= 0 && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		})
		if err != nil {
			return err
		}
		if t != nil && all[t.Name] == nil {
			all[t.Name] = t
		}
	}
}

// typeOf reads one row; nil: the row states no amounts.
func typeOf(field func(string) string) (*instanceType, error) {
	t := &instanceType{Name: strings.Clone(field("instance_type")), Arch: strings.Clone(cmp.Or(field("arch"), "amd64")),
		Allocatable: v1.ResourceList{}}
	for name, columns := range map[v1.ResourceName][]string{v1.ResourceCPU: {"allocatable_cpu"},
		v1.ResourceMemory: {"allocatable_memory"}, v1.ResourceEphemeralStorage: {"allocatable_ephemeral_storage"},
		v1.ResourcePods: {"allocatable_pods"}, "nvidia.com/gpu": {"gpu_count"}} {
		text := field(columns[0])
		if text == "" || text == "0" {
			continue
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil || amount.Sign() < 0 {
			return nil, fmt.Errorf("%s: %s %q is not an amount", t.Name, columns[0], text)
		}
		t.Allocatable[name] = amount
	}
	cpus, memory := number(field("capacity_vcpu")), number(field("capacity_memory_mib"))
	estimate(t.Allocatable, cpus, memory)
	if t.Name == "" || t.Allocatable.Cpu().Sign() <= 0 || t.Allocatable.Memory().Sign() <= 0 {
		return nil, nil
	}
	// The engine refuses a list that is wrong.
	if t.Price, _ = strconv.ParseFloat(field("on_demand_usd_per_hour"), 64); !(t.Price > 0) {
		t.Price = math.Inf(1)
	}
	t.Labels = labelsOf(t, cpus, memory, field("gpu_count"), field("gpu_name"))
	t.noGPUs = field("gpu_count") == "0" && field("gpu_name") == "" // a share of a GPU is none, with a name
	t.noAccelerators = awsName.MatchString(t.Name) && !strings.HasPrefix(t.Name, "inf") &&
		!strings.HasPrefix(t.Name, "trn")
	return t, nil
}

func number(text string) int64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1<<40) {
		return 0
	}
	return int64(n)
}

// vmOverhead is the share of memory that Karpenter's AWS provider takes for the hypervisor by default.
const vmOverhead = 0.075

// mostPods is the kubelet's default.
const mostPods = 110

// estimate fills in what a node offers by the capacity of its machine, where a list does not state it: memory without
// the hypervisor's share, the kubelet's reservation of 255 MiB and 11 MiB for each pod, and 100 MiB at which it evicts;
// and cpu without 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the others. These are
// the rules of the AMIs of EKS and of GKE.
func estimate(offers v1.ResourceList, cpus, memoryMiB int64) {
	if _, stated := offers[v1.ResourcePods]; !stated {
		offers[v1.ResourcePods] = *resource.NewQuantity(mostPods, resource.DecimalSI)
	}
	if _, stated := offers[v1.ResourceCPU]; !stated && cpus > 0 {
		kept := 60 + 10*min(1, cpus-1) + 5*min(2, max(0, cpus-2)) + (5*max(0, cpus-4)+1)/2
		offers[v1.ResourceCPU] = *resource.NewMilliQuantity(1000*cpus-kept, resource.DecimalSI)
	}
	if _, stated := offers[v1.ResourceMemory]; !stated && memoryMiB > 0 {
		left := int64(float64(memoryMiB)*(1-vmOverhead)) - 255 - 11*offers.Pods().Value() - 100
		offers[v1.ResourceMemory] = *resource.NewQuantity(max(0, left)<<20, resource.BinarySI)
	}
}

// awsName is the name of an instance type of AWS: family of category and generation, and size.
var awsName = regexp.MustCompile(`^(([a-z]+(?:-[a-z]+)?)([0-9]+)[a-z0-9-]*)\.([a-z0-9-]+)$`)

// labelsOf returns the labels by which NodePools choose instance types: those that Kubernetes has, and those of
// Karpenter's provider for AWS, as far as name and price list tell them.
func labelsOf(t *instanceType, cpus, memoryMiB int64, gpus, gpu string) map[string]string {
	labels := map[string]string{v1.LabelInstanceTypeStable: t.Name, v1.LabelArchStable: t.Arch,
		v1.LabelOSStable: string(v1.Linux)}
	parts := awsName.FindStringSubmatch(t.Name)
	if parts == nil {
		return labels
	}
	const prefix = "karpenter.k8s.aws/instance-"
	for key, value := range map[string]string{"family": parts[1], "category": parts[2], "generation": parts[3],
		"size": parts[4], "gpu-name": strings.ToLower(gpu)} {
		if value != "" {
			labels[prefix+key] = strings.Clone(value)
		}
	}
	for key, value := range map[string]int64{"cpu": cpus, "memory": memoryMiB, "gpu-count": number(gpus)} {
		if value > 0 {
			labels[prefix+key] = strconv.FormatInt(value, 10)
		}
	}
	return labels
}

// dominates says whether a type offers at least as much as another of the same architecture, for no more money.
func (t *instanceType) dominates(o *instanceType) bool {
	if t.Arch != o.Arch || t.Price > o.Price {
		return false
	}
	for name, amount := range o.Allocatable {
		if have := t.Allocatable[name]; have.Cmp(amount) < 0 {
			return false
		}
	}
	return t.Price < o.Price || t.Name < o.Name
}

// bestTypes returns at most so many types, ordered by name: first those that no other dominates, then those that one
// other dominates, and so on; among equals the cheaper ones. Those that are left out could only be needed where all
// that dominate them are not to be had.
func bestTypes(types []*instanceType, most int) []*instanceType {
	rank := make(map[*instanceType]int, len(types))
	if len(types) > most {
		for _, t := range types {
			for _, o := range types {
				if o != t && o.dominates(t) {
					rank[t]++
				}
			}
		}
	}
	chosen := slices.Clone(types)
	slices.SortFunc(chosen, func(a, b *instanceType) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a.Price, b.Price), strings.Compare(a.Name, b.Name))
	})
	chosen = chosen[:min(len(chosen), max(0, most))]
	slices.SortFunc(chosen, func(a, b *instanceType) int { return strings.Compare(a.Name, b.Name) })
	return chosen
}
