package ranking

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/cpu"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// priced is an option as Cluster Autoscaler's price expander sees it.
type priced struct {
	nodes     int
	nodePrice float64
	nodeCPU   int64
	gpu       bool
	exists    bool
	pods      []int // of which shape each is
}

// expanderScore is written after expander/price/price.go, in its order of operations, one pod after the other.
func expanderScore(o priced, podPrices []float64, stabilization float64, preferredCPU int64) float64 {
	totalNodePrice := o.nodePrice * float64(o.nodes)
	totalPodPrice := 0.0
	for _, pod := range o.pods {
		totalPodPrice += podPrices[pod]
	}
	priceSubScore := (totalNodePrice + stabilization) / (totalPodPrice + stabilization)
	unfitness := math.Max(float64(preferredCPU)/float64(o.nodeCPU), float64(o.nodeCPU)/float64(preferredCPU))
	suppressed := (unfitness-1.0)*(1.0-math.Tanh(float64(o.nodes-1)/15.0)) + 1.0
	if o.gpu {
		suppressed = 1000.0
	}
	score := suppressed * priceSubScore
	if !o.exists {
		score *= 2.0
	}
	return score
}

// podPrice is written after GcePriceModel.PodPrice.
func podPrice(milliCPU, memory, ephemeral, gpus int64) float64 {
	cpuPrice, memoryPrice, gpuPrice, ephemeralPrice := 0.033174, 0.004446, 0.700, 0.100/720
	const gib = 1 << 30
	price := float64(milliCPU) / 1000.0 * cpuPrice
	price += float64(memory) / gib * memoryPrice
	price += float64(ephemeral) / gib * ephemeralPrice
	return price + float64(gpus*1000)/1000.0*gpuPrice
}

// sameScore compares bits. Go's own math.Tanh has other last bits on a processor other than amd64 with FMA, where the
// engine's has the same everywhere: a unit in its last place, times an unfitness below 2^16, is all that they may
// differ by.
func sameScore(got, want float64) bool {
	if cpu.X86.HasFMA {
		return math.Float64bits(got) == math.Float64bits(want)
	}
	return math.Abs(got-want) <= want*0x1p-36
}

// The preset cluster-autoscaler gives the scores of Go's arithmetic to the last bit.
func TestClusterAutoscalerScoresBitForBit(t *testing.T) {
	client := loadlinev1.NewAutoscalerClient(enginetest.Open(t))
	random := rand.New(rand.NewPCG(20260217, 7))
	for range 200 {
		clusterNodes := random.IntN(300)
		request := &loadlinev1.RankOptionsRequest{
			ClusterNodes: proto.Int32(int32(clusterNodes)),
			Policy:       &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_CLUSTER_AUTOSCALER},
		}
		podPrices := randomPods(t, random, request)
		var options []priced
		for i := range 10 {
			options = append(options, randomOption(t, random, len(podPrices), request))
			request.Options[i].NodeGroup = fmt.Sprint("group-", i)
		}
		response, err := client.RankOptions(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		preferred := preferredCPU(clusterNodes)
		for _, ranked := range response.GetOptions() {
			want := expanderScore(options[ranked.GetOption()], podPrices, podPrice(500, 500<<20, 0, 0), preferred)
			if got := ranked.GetScore(); !sameScore(got, want) {
				t.Fatalf("%+v: score %v (%x), want %v (%x)", options[ranked.GetOption()], got, math.Float64bits(got),
					want, math.Float64bits(want))
			}
		}
	}
}

// preferredCPU is the table of expander/price/preferred.go.
func preferredCPU(nodes int) int64 {
	for i, bound := range []int{2, 6, 20, 60, 200} {
		if nodes <= bound {
			return 1000 << i
		}
	}
	return 32000
}

// randomPods adds pod shapes to the request and returns their prices.
func randomPods(t *testing.T, random *rand.Rand, request *loadlinev1.RankOptionsRequest) []float64 {
	var prices []float64
	for range 1 + random.IntN(5) {
		milliCPU, memory := random.Int64N(4000), random.Int64N(16<<30)
		ephemeral, gpus := random.Int64N(2)*random.Int64N(100<<30), random.Int64N(4)/3
		requests := v1.ResourceList{
			v1.ResourceCPU:              *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			v1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
			v1.ResourceEphemeralStorage: *resource.NewQuantity(ephemeral, resource.BinarySI),
			"nvidia.com/gpu":            *resource.NewQuantity(gpus, resource.DecimalSI),
		}
		pod := v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
			{Name: "app", Resources: v1.ResourceRequirements{Requests: requests}}}}}
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		request.Pods = append(request.Pods, data)
		prices = append(prices, podPrice(milliCPU, memory, ephemeral, gpus))
	}
	return prices
}

// randomOption adds an option to the request, its pods in runs, and returns it with its pods one by one.
func randomOption(t *testing.T, random *rand.Rand, shapes int, request *loadlinev1.RankOptionsRequest) priced {
	o := priced{nodes: 1 + random.IntN(400), nodePrice: random.Float64() * 5, nodeCPU: 1 + random.Int64N(64000),
		gpu: random.IntN(4) == 0, exists: random.IntN(4) != 0}
	capacity := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(o.nodeCPU, resource.DecimalSI)}
	node := v1.Node{Status: v1.NodeStatus{Capacity: capacity}}
	if o.gpu {
		node.Labels = map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
	}
	data, err := node.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	option := &loadlinev1.ExpansionOption{NodeCount: int32(o.nodes), TemplateNode: data, ToBeCreated: !o.exists,
		NodeUsdPerHour: proto.Float64(o.nodePrice)}
	for range 1 + random.IntN(20) {
		shape, count := random.IntN(shapes), 1+random.IntN(300)
		option.Pods = append(option.Pods, &loadlinev1.PodRun{Pod: int32(shape), Count: int32(count)})
		for range count {
			o.pods = append(o.pods, shape)
		}
	}
	request.Options = append(request.Options, option)
	return o
}
