package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestDistributionsAddUpTo100(t *testing.T) {
	for name, total := range map[string]int{
		"nodeSizes": sum(nodeSizes), "replicas": sum(replicas), "cpuRequests": sum(cpuRequests),
		"gibPerCore": sum(gibPerCore),
		"smallRatio": sum(smallRatio), "largeRatio": sum(largeRatio),
	} {
		if total != 100 {
			t.Errorf("the shares of %s add up to %d", name, total)
		}
	}
}

func sum[T any](distribution []draw[T]) int {
	total := 0
	for _, d := range distribution {
		total += d.percent
	}
	return total
}

func TestGenerateFollowsItsDistributions(t *testing.T) {
	const nodes = 4000
	w := Generate(1, nodes)
	large, tenfold, small := 0, 0, 0
	for _, node := range w.Nodes {
		if node.Status.Allocatable.Cpu().MilliValue() == 32*970 {
			large++
		}
	}
	// 20 % of 4,000 = 800, standard deviation 25.
	if len(w.Nodes) != nodes || large < 700 || large > 900 {
		t.Errorf("%d of %d nodes have 32 cores, want 20 %% of %d", large, len(w.Nodes), nodes)
	}
	for _, pod := range w.Pods {
		requests, limits := resources(pod)
		if requests.Cpu().MilliValue() >= 1000 {
			continue
		}
		small++
		if limits.Cpu().MilliValue() == 10*requests.Cpu().MilliValue() {
			tenfold++
		}
	}
	// Drawn per application, of which there are some thousands.
	if share := float64(tenfold) / float64(small); share < 0.12 || share > 0.18 {
		t.Errorf("%.3f of the pods with small requests may use ten times as much, want 0.15", share)
	}
}

func TestGenerateFillsUpToTheLoad(t *testing.T) {
	for seed := range uint64(5) {
		w := Generate(seed, 300)
		var allocatable, requested machine
		for _, node := range w.Nodes {
			allocatable.cpuMilli += node.Status.Allocatable.Cpu().MilliValue()
			allocatable.memoryMiB += node.Status.Allocatable.Memory().Value() / mib
		}
		for _, pod := range w.Pods {
			requests, _ := resources(pod)
			requested.cpuMilli += requests.Cpu().MilliValue()
			requested.memoryMiB += requests.Memory().Value() / mib
		}
		cpu := float64(requested.cpuMilli) / float64(allocatable.cpuMilli)
		memory := float64(requested.memoryMiB) / float64(allocatable.memoryMiB)
		if load := max(cpu, memory); load > 0.60 || load < 0.59 {
			t.Errorf("seed %d: requested cpu %.3f and memory %.3f of what there is, want the larger one just "+
				"below 0.60", seed, cpu, memory)
		}
	}
}

func TestPodsAreBurstable(t *testing.T) {
	for _, pod := range Generate(3, 300).Pods {
		requests, limits := resources(pod)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			request, limit := requests[name], limits[name]
			if request.Sign() <= 0 || limit.Cmp(request) < 0 {
				t.Fatalf("%s: %s request %v, limit %v", pod.Name, name, request, limit)
			}
		}
		if limits.Cpu().Cmp(*requests.Cpu()) == 0 && limits.Memory().Cmp(*requests.Memory()) == 0 {
			t.Fatalf("%s is Guaranteed", pod.Name)
		}
	}
}

func resources(pod *v1.Pod) (requests, limits v1.ResourceList) {
	container := pod.Spec.Containers[0].Resources
	return container.Requests, container.Limits
}

func TestSeedSettlesEverything(t *testing.T) {
	if !reflect.DeepEqual(Generate(7, 50), Generate(7, 50)) {
		t.Error("the same seed gave two workloads")
	}
	if reflect.DeepEqual(Generate(7, 50).Pods, Generate(8, 50).Pods) {
		t.Error("two seeds gave the same pods")
	}
}

// trace writes a trace of 40 nodes and 200 pods and returns its folder: three quarters of the nodes have no GPU.
func trace(t *testing.T) string {
	t.Helper()
	var nodes, pods strings.Builder
	nodes.WriteString("sn,cpu_milli,memory_mib,gpu,model\n")
	for i := range 40 {
		if i%4 == 0 {
			fmt.Fprintf(&nodes, "n%d,96000,393216,8,G2\n", i)
		} else {
			fmt.Fprintf(&nodes, "n%d,32000,262144,0,\n", i)
		}
	}
	pods.WriteString(
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n")
	for i := range 200 {
		if i%2 == 0 {
			fmt.Fprintf(&pods, "p%d,3152,5600,1,810,,LS,Running,%d,,\n", i, 1000-i) // arrives before its predecessors
		} else {
			fmt.Fprintf(&pods, "p%d,500,1024,0,0,,BE,Running,%d,,\n", i, 1000-i)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, traceNodes), nodes.String())
	write(t, filepath.Join(dir, tracePods), pods.String())
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFromTraceSamplesInProportion(t *testing.T) {
	w, err := FromTrace(trace(t), 5, 20)
	if err != nil {
		t.Fatal(err)
	}
	gpuNodes, gpuPods := 0, 0
	for _, node := range w.Nodes {
		if quantity := node.Status.Allocatable[GPU]; quantity.Value() == 8 {
			gpuNodes++
		}
	}
	for i, pod := range w.Pods {
		requests, limits := resources(pod)
		requested, limited := requests[GPU], limits[GPU]
		if requested.Value() == 1 {
			gpuPods++
		}
		if requested.Cmp(limited) != 0 {
			t.Errorf("%s requests %v GPUs and may use %v", pod.Name, &requested, &limited)
		}
		if want := fmt.Sprintf("pod-%05d", i); pod.Name != want {
			t.Errorf("pod %d is %s, want %s", i, pod.Name, want)
		}
	}
	if len(w.Nodes) != 20 || gpuNodes != 5 {
		t.Errorf("%d nodes, %d with GPUs; want 20 and 5", len(w.Nodes), gpuNodes)
	}
	if len(w.Pods) != 100 || gpuPods != 50 {
		t.Errorf("%d pods, %d with a GPU; want 100 and 50", len(w.Pods), gpuPods)
	}
}

func TestFromTraceKeepsOrderOfArrival(t *testing.T) {
	w, err := FromTrace(trace(t), 5, 40)
	if err != nil {
		t.Fatal(err)
	}
	// Row 199, without a GPU, has the lowest creation_time, and rows alternate.
	for i, pod := range w.Pods {
		requests, _ := resources(pod)
		if _, gpu := requests[GPU]; gpu != (i%2 == 1) {
			t.Fatalf("pod %d of %d: has a GPU: %v", i, len(w.Pods), gpu)
		}
	}
}

func TestPodsOfOneSizeShareLimits(t *testing.T) {
	w, err := FromTrace(trace(t), 9, 40)
	if err != nil {
		t.Fatal(err)
	}
	_, first := resources(w.Pods[0])
	_, third := resources(w.Pods[2])
	if !reflect.DeepEqual(first, third) {
		t.Errorf("limits of two pods of one size: %v and %v", first, third)
	}
}

func TestFromTraceSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ file, content, want string }{
		"no files":   {"", "", traceNodes},
		"no column":  {traceNodes, "sn,cpu\na,1\n", `no column "cpu_milli"`},
		"not number": {traceNodes, "cpu_milli,memory_mib,gpu\n1,2,0\n1,x,0\n", `line 3: memory_mib is "x"`},
		"negative":   {traceNodes, "cpu_milli,memory_mib,gpu\n-1,2,0\n", `line 2: cpu_milli is "-1"`},
		"empty":      {traceNodes, "cpu_milli,memory_mib,gpu\n", "has no rows"},
		"ragged":     {traceNodes, "cpu_milli,memory_mib,gpu\n1,2\n", "wrong number of fields"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.file != "" {
				write(t, filepath.Join(dir, c.file), c.content)
			}
			_, err := FromTrace(dir, 1, 10)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want it to contain %q", err, c.want)
			}
		})
	}
}
