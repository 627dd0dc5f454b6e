package workload

import "fmt"

// The distributions of the generated workload, all in this one place. Burstable pods come in applications, whose
// replicas are alike and arrive together. cpu and memory of an application draw their ratio of limit to request
// each for itself, from the same table. Small pods have the widest limits, as in real manifests: somebody who asks
// for 100m allows a core, somebody who asks for two cores allows four.
var (
	// nodeSizes are capacities; of those, 97 % of the cpu and 94 % of the memory are allocatable.
	nodeSizes   = []draw[size]{{size{4, 16}, 10}, {size{8, 32}, 35}, {size{16, 64}, 35}, {size{32, 128}, 20}}
	replicas    = []draw[int]{{1, 20}, {2, 20}, {3, 20}, {5, 15}, {10, 15}, {20, 7}, {50, 3}}
	cpuRequests = []draw[int64]{{50, 5}, {100, 20}, {250, 20}, {500, 25}, {1000, 20}, {2000, 10}} // millicores
	gibPerCore  = []draw[int64]{{1, 20}, {2, 30}, {4, 35}, {8, 15}}                               // requested memory
	// Limit / request of pods that request less than a core.
	smallRatio = []draw[float64]{{1.5, 20}, {2, 25}, {2.5, 20}, {4, 20}, {10, 15}}
	largeRatio = []draw[float64]{{1.5, 40}, {2, 40}, {2.5, 20}} // the same for all other pods
)

// size is a machine: cores and GiB.
type size struct{ cores, gib int64 }

const (
	allocatableCPUPercent    = 97
	allocatableMemoryPercent = 94
	// loadPercent is how much of the allocatable cpu or memory the pods request in the end, whichever is reached
	// first. Limits play no part in it.
	loadPercent = 60
)

// Generate returns a workload of that many nodes, and of as many pods as they take: about fifteen times as many.
func Generate(seed uint64, nodes int) Workload {
	var w Workload
	room := machine{}
	random := newRandom(seed, forNodes)
	for i := range nodes {
		s := pick(random, nodeSizes)
		m := machine{
			cpuMilli:  s.cores * 1000 * allocatableCPUPercent / 100,
			memoryMiB: s.gib * 1024 * allocatableMemoryPercent / 100,
		}
		w.Nodes = append(w.Nodes, newNode(fmt.Sprintf("node-%04d", i), m.resources()))
		room.cpuMilli += m.cpuMilli * loadPercent / 100
		room.memoryMiB += m.memoryMiB * loadPercent / 100
	}
	random = newRandom(seed, forPods)
	limits := newLimitRule(seed)
	for app := 0; room.cpuMilli >= 0 && room.memoryMiB >= 0; app++ {
		milli := pick(random, cpuRequests)
		each := machine{cpuMilli: milli, memoryMiB: milli * pick(random, gibPerCore) * 1024 / 1000}
		requests := each.resources()
		limited := limits.draw(requests)
		for replica := range pick(random, replicas) {
			room.cpuMilli -= each.cpuMilli
			room.memoryMiB -= each.memoryMiB
			if room.cpuMilli < 0 || room.memoryMiB < 0 {
				break
			}
			w.Pods = append(w.Pods, newPod(fmt.Sprintf("app-%04d-%02d", app, replica), requests, limited))
		}
	}
	w.Stated = statedDistributions(seed, nodes, len(w.Pods))
	return w
}

func statedDistributions(seed uint64, nodes, pods int) []string {
	ratio := func(r float64) string { return fmt.Sprintf("%gx", r) }
	return append([]string{
		fmt.Sprintf("%d nodes, %d burstable pods that request %d%% of their cpu or memory, drawn with seed %d",
			nodes, pods, loadPercent, seed),
		state("node sizes", nodeSizes, func(s size) string { return fmt.Sprintf("%d cores/%d GiB", s.cores, s.gib) }) +
			fmt.Sprintf("; allocatable: %d%% of the cpu, %d%% of the memory",
				allocatableCPUPercent, allocatableMemoryPercent),
		state("replicas of an application", replicas, func(n int) string { return fmt.Sprint(n) }),
		state("cpu requests", cpuRequests, func(m int64) string { return fmt.Sprintf("%dm", m) }),
		state("memory requests per requested core",
			gibPerCore, func(g int64) string { return fmt.Sprintf("%d GiB", g) }),
	}, statedRatios(ratio)...)
}

func statedRatios(ratio func(float64) string) []string {
	return []string{
		state("limit/request of cpu and of memory, pods that request less than a core", smallRatio, ratio),
		state("limit/request of cpu and of memory, other pods", largeRatio, ratio),
	}
}
