package workload

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Files of the openb trace.
const (
	traceNodes = "openb_node_list_all_node.csv"
	tracePods  = "openb_pod_list_default.csv"
)

// arrival is a row of the pod list.
type arrival struct {
	machine // what it requests
	created int64
	row     int // breaks ties of created
}

// FromTrace samples about `nodes` nodes of the trace in `dir`, and the same share of its pods: every k-th row of
// the rows sorted by size, from a start that the seed draws, so that each size keeps its share. Pods arrive in
// order of creation_time and do not depart. The trace has no limits: pods of one size count as one application,
// which draws its limits as in Generate.
func FromTrace(dir string, seed uint64, nodes int) (Workload, error) {
	machines, err := readMachines(filepath.Join(dir, traceNodes))
	if err != nil {
		return Workload{}, err
	}
	arrivals, err := readArrivals(filepath.Join(dir, tracePods))
	if err != nil {
		return Workload{}, err
	}
	pods := (len(arrivals)*nodes + len(machines)/2) / len(machines)
	w := Workload{Stated: append([]string{
		fmt.Sprintf("openb trace: %d of %d nodes and %d of %d pods, each size in proportion, drawn with seed %d",
			min(nodes, len(machines)), len(machines), min(pods, len(arrivals)), len(arrivals), seed),
		"requests as recorded, GPU shares rounded up to whole " + string(GPU) +
			"; limits (the trace has none) drawn once for all pods of one size:",
	}, statedRatios(func(r float64) string { return fmt.Sprintf("%gx", r) })...)}
	for i, m := range sample(newRandom(seed, forNodes), machines, nodes, machine.compare) {
		w.Nodes = append(w.Nodes, newNode(fmt.Sprintf("node-%04d", i), m.resources()))
	}
	w.Pods = podsOf(sample(newRandom(seed, forPods), arrivals, pods, func(a, b arrival) int {
		return cmp.Or(a.compare(b.machine), cmp.Compare(a.row, b.row))
	}), newLimitRule(seed))
	return w, nil
}

// sample returns n of the rows: sorted, and each len/n-th taken from a drawn start. All of them if n is not less.
func sample[T any](random *rand.Rand, rows []T, n int, compare func(T, T) int) []T {
	sorted := slices.SortedStableFunc(slices.Values(rows), compare)
	if n >= len(sorted) {
		return sorted
	}
	start := random.IntN(len(sorted)) // in units of 1/n row
	taken := make([]T, n)
	for i := range taken {
		taken[i] = sorted[(i*len(sorted)+start)/n]
	}
	return taken
}

// podsOf names pods in order of arrival. Limits are drawn in that order too.
func podsOf(arrivals []arrival, limits limitRule) []*v1.Pod {
	slices.SortFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.row, b.row))
	})
	drawn := map[machine]v1.ResourceList{}
	pods := make([]*v1.Pod, len(arrivals))
	for i, a := range arrivals {
		requests := a.resources()
		if drawn[a.machine] == nil {
			drawn[a.machine] = limits.draw(requests)
		}
		pods[i] = newPod(fmt.Sprintf("pod-%05d", i), requests, drawn[a.machine])
	}
	return pods
}

func readMachines(file string) ([]machine, error) {
	var machines []machine
	err := readRows(file, []string{"cpu_milli", "memory_mib", "gpu"}, func(_ int, v []int64) {
		machines = append(machines, machine{v[0], v[1], v[2]})
	})
	return machines, err
}

// readArrivals leaves gpu_milli aside: a pod has num_gpu GPUs, or a share of one, where num_gpu is 1 as well.
func readArrivals(file string) ([]arrival, error) {
	var arrivals []arrival
	err := readRows(file, []string{"cpu_milli", "memory_mib", "num_gpu", "creation_time"}, func(row int, v []int64) {
		arrivals = append(arrivals, arrival{machine{v[0], v[1], v[2]}, v[3], row})
	})
	return arrivals, err
}

// readRows calls `add` for each row with the named columns, which hold whole numbers.
func readRows(file string, columns []string, add func(row int, values []int64)) error {
	opened, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("the trace folder must hold %s and %s: %w", traceNodes, tracePods, err)
	}
	defer opened.Close()
	rows, err := csv.NewReader(opened).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(rows) < 2 {
		return fmt.Errorf("%s has no rows", file)
	}
	at := make([]int, len(columns))
	for i, column := range columns {
		if at[i] = slices.Index(rows[0], column); at[i] < 0 {
			return fmt.Errorf("%s has no column %q", file, column)
		}
	}
	for r, row := range rows[1:] {
		values := make([]int64, len(columns))
		for i := range columns {
			if values[i], err = strconv.ParseInt(row[at[i]], 10, 64); err != nil || values[i] < 0 {
				return fmt.Errorf("%s, line %d: %s is %q", file, r+2, columns[i], row[at[i]])
			}
		}
		add(r, values)
	}
	return nil
}
