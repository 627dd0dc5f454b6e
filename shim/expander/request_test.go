package expander

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"loadline.dev/shim/internal/testing/randompod"
)

// decodeBytes decodes a request that came in buffers of `size` bytes.
func decodeBytes(data []byte, size int) (*question, error) {
	var buffers mem.BufferSlice
	for part := range slices.Chunk(data, size) {
		buffers = append(buffers, mem.SliceBuffer(part))
	}
	reader := buffers.Reader()
	defer reader.Close()
	return decode(reader, keptOfPod)
}

// twoGroups asks about a small and a large machine. Of its four pods two ask for the same.
func twoGroups() asked {
	a, b := ordinaryPod("web-a", "500m", "1Gi"), ordinaryPod("web-b", "500m", "1Gi")
	b.Spec.Containers[0].Env = b.Spec.Containers[0].Env[3:] // what was there before is of another length
	big, small := ordinaryPod("db", "3", "8Gi"), ordinaryPod("tool", "100m", "64Mi")
	return asked{
		options: []askedOption{{"small", 3, []*v1.Pod{a, small, b}}, {"large", 1, []*v1.Pod{small, big, b, a}}},
		templates: map[string]*v1.Node{"small": templateNode("n1-standard-2", "2", "7500Mi"),
			"large":   templateNode("n1-standard-8", "8", "30000Mi"),
			"unasked": templateNode("n1-standard-1", "1", "3750Mi")},
	}
}

// cpuOf returns the cpu request of a pod that was kept.
func cpuOf(t *testing.T, shape []byte) string {
	t.Helper()
	var pod v1.Pod
	if err := pod.Unmarshal(shape); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.Containers[0].Resources.Requests.Cpu().String()
}

func TestEveryGenerationIsRead(t *testing.T) {
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			data := g.encode(t, twoGroups())
			for _, size := range []int{1, 7, 16 << 10, len(data)} {
				got, err := decodeBytes(data, size)
				if err != nil {
					t.Fatal(err)
				}
				if got.pods != map[bool]int{false: 7, true: 14}[g.old && g.fresh] {
					t.Errorf("%d pods", got.pods)
				}
				var cpus []string
				for _, shape := range got.shapes {
					cpus = append(cpus, cpuOf(t, shape))
				}
				if want := []string{"500m", "100m", "3"}; !slices.Equal(cpus, want) {
					t.Fatalf("shapes %v, want %v", cpus, want)
				}
				want := []option{{"small", 3, []podRun{{0, 2}, {1, 1}}}, {"large", 1, []podRun{{0, 2}, {1, 1}, {2, 1}}}}
				if !reflect.DeepEqual(got.options, want) {
					t.Errorf("options %+v, want %+v", got.options, want)
				}
				checkTemplate(t, got.templates["small"], "n1-standard-2", "2")
				checkTemplate(t, got.templates["large"], "n1-standard-8", "8")
			}
		})
	}
}

func checkTemplate(t *testing.T, data []byte, instanceType, cpu string) {
	t.Helper()
	var node v1.Node
	if err := node.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	if got := node.Labels[v1.LabelInstanceTypeStable]; got != instanceType {
		t.Errorf("instance type %q, want %q", got, instanceType)
	}
	if got := node.Status.Capacity.Cpu().String(); got != cpu {
		t.Errorf("capacity of %s cpu, want %s", got, cpu)
	}
	if len(node.Status.Images) > 0 {
		t.Error("images are kept, which play no part")
	}
}

// If a request says the same twice and differently, the bytes count.
func TestBytesCountBeforeMessages(t *testing.T) {
	old, fresh := generations[0], generations[2]
	stale := asked{options: []askedOption{{"g", 1, []*v1.Pod{ordinaryPod("a", "1", "1Gi")}}},
		templates: map[string]*v1.Node{"g": templateNode("old", "1", "1Gi")}}
	good := asked{options: []askedOption{{"g", 1, []*v1.Pod{ordinaryPod("a", "2", "1Gi")}}},
		templates: map[string]*v1.Node{"g": templateNode("new", "2", "1Gi")}}
	option := func(pods ...[]byte) []byte {
		return lengthDelimited(1, slices.Concat(lengthDelimited(1, "g"), number(2, 1), slices.Concat(pods...)))
	}
	oldPod := lengthDelimited(4, marshal(t, stale.options[0].pods[0]))
	freshPod := lengthDelimited(5, marshal(t, good.options[0].pods[0]))
	oldNode := old.encode(t, asked{templates: stale.templates})
	freshNode := fresh.encode(t, asked{templates: good.templates})
	for name, data := range map[string][]byte{
		"messages first": slices.Concat(option(oldPod, freshPod), oldNode, freshNode),
		"bytes first":    slices.Concat(freshNode, oldNode, option(freshPod, oldPod)),
	} {
		got, err := decodeBytes(data, len(data))
		if err != nil {
			t.Fatal(err)
		}
		checkTemplate(t, got.templates["g"], "new", "2")
		if runs := got.options[0].pods; len(runs) != 1 || cpuOf(t, got.shapes[runs[0].shape]) != "2" {
			t.Errorf("%s: pods %+v", name, runs)
		}
	}
}

// Cluster Autoscaler looks an answer up in a map that holds the last option of each id.
func TestOfOptionsWithOneIDTheLastCounts(t *testing.T) {
	a := twoGroups()
	a.options = append(a.options, askedOption{"small", 9, a.options[1].pods[:1]})
	data := generations[2].encode(t, a)
	got, err := decodeBytes(data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	want := []option{{"small", 9, []podRun{{1, 1}}}, {"large", 1, []podRun{{0, 2}, {1, 1}, {2, 1}}}}
	if !reflect.DeepEqual(got.options, want) {
		t.Errorf("options %+v, want %+v", got.options, want)
	}
}

// The part that is kept of a pod asks for exactly what the pod asks for.
func TestWhatIsKeptAsksForTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	for i := range 20_000 {
		pod, _ := randompod.New(r, fmt.Sprint(i), "")
		kept, err := keptOfPod.prune(nil, marshal(t, pod))
		if err != nil {
			t.Fatal(err)
		}
		var again v1.Pod
		if err := again.Unmarshal(kept); err != nil {
			t.Fatal(err)
		}
		want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		got := resourcehelper.PodRequests(&again, resourcehelper.PodResourcesOptions{})
		for name, amount := range want {
			if other := got[name]; amount.Cmp(other) != 0 {
				t.Fatalf("pod %d: %s of %s, want %s", i, other.String(), name, amount.String())
			}
		}
		if len(got) != len(want) {
			t.Fatalf("pod %d: %v, want %v", i, got, want)
		}
	}
}

func TestPodsThatAskForTheSameAreOne(t *testing.T) {
	same := ordinaryPod("other-name", "500m", "1Gi")
	same.Labels, same.Spec.Volumes, same.Spec.Containers[0].Resources.Limits = nil, nil, nil
	same.Spec.NodeSelector, same.Status = nil, v1.PodStatus{}
	overhead, sidecar := ordinaryPod("web-0", "500m", "1Gi"), ordinaryPod("web-0", "500m", "1Gi")
	overhead.Spec.Overhead = v1.ResourceList{"cpu": resource.MustParse("10m")}
	always := v1.ContainerRestartPolicyAlways
	sidecar.Spec.InitContainers = []v1.Container{{Name: "s", RestartPolicy: &always,
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("10m")}}}}
	data := generations[2].encode(t, asked{options: []askedOption{{"g", 1, []*v1.Pod{
		ordinaryPod("web-0", "500m", "1Gi"), same, ordinaryPod("web-0", "501m", "1Gi"), overhead, sidecar}}}})
	got, err := decodeBytes(data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	if want := []podRun{{0, 2}, {1, 1}, {2, 1}, {3, 1}}; !slices.Equal(got.options[0].pods, want) {
		t.Errorf("runs %v, want %v", got.options[0].pods, want)
	}
}

func TestAnnotationsOfOthersAreDropped(t *testing.T) {
	node := templateNode("x", "1", "1Gi")
	node.Annotations = map[string]string{"loadline.dev/node-usd-per-hour": "0.1",
		"cluster-autoscaler/gce/boot-disk-size": "50", "example.com/huge": strings.Repeat("x", 200_000)}
	kept, err := keptOfNode.prune(nil, marshal(t, node))
	if err != nil {
		t.Fatal(err)
	}
	var again v1.Node
	if err := again.Unmarshal(kept); err != nil {
		t.Fatal(err)
	}
	delete(node.Annotations, "example.com/huge")
	if !reflect.DeepEqual(again.Annotations, node.Annotations) {
		t.Errorf("annotations %v, want %v", again.Annotations, node.Annotations)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	good := generations[2].encode(t, twoGroups())
	pod := lengthDelimited(5, []byte{0x12, 0x05, 0x12}) // a spec that ends behind its pod
	for name, data := range map[string][]byte{
		"ends in a tag":          {0x80},
		"ends in a length":       {0x0a, 0x80},
		"ends in an option":      good[:len(good)/3],
		"field number 0":         {0x02, 0x00},
		"a group as wire type":   {0x0b},
		"reserved wire type":     {0x0f},
		"length beyond the end":  {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"length of 11 bytes":     {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"fixed64 beyond the end": {0x79, 1, 2, 3},
		"fixed64 across the end": append(lengthDelimited(1, []byte{0x79, 1, 2, 3}), make([]byte, 16)...),
		"a broken pod":           lengthDelimited(1, slices.Concat(lengthDelimited(1, "g"), pod)),
		"a broken node": lengthDelimited(3,
			slices.Concat(lengthDelimited(1, "g"), lengthDelimited(2, []byte{0x0a, 0x7f}))),
		"an id that is not UTF-8": lengthDelimited(1, lengthDelimited(1, "\xff")),
	} {
		if got, err := decodeBytes(data, len(data)); err == nil || errors.Is(err, errTooMuch) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRequestsWithNothing(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing": {},
		"unknown fields": slices.Concat(number(99, 7), lengthDelimited(98, "x"),
			[]byte{0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4}),
		"nodes only":      generations[1].encode(t, asked{templates: twoGroups().templates}),
		"an odd map item": lengthDelimited(3, number(1, 5)),
	} {
		got, err := decodeBytes(data, max(len(data), 1))
		if err != nil || len(got.options) != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := decodeBytes([]byte{0x0a, 0x00}, 2)
	if err != nil || !reflect.DeepEqual(got.options, []option{{pods: []podRun{}}}) {
		t.Errorf("an empty option: %+v, %v", got, err)
	}
}

func TestMoreThanIsHeldIsRefused(t *testing.T) {
	pods := make([][]byte, maxShapes+1)
	for i := range pods {
		request := lengthDelimited(2,
			slices.Concat(lengthDelimited(1, "cpu"), lengthDelimited(2, lengthDelimited(1, fmt.Sprint(i)))))
		pods[i] = lengthDelimited(5, lengthDelimited(2, lengthDelimited(2, lengthDelimited(8, request))))
	}
	options := make([][]byte, maxOptions+1)
	for i := range options {
		options[i] = lengthDelimited(1, lengthDelimited(1, fmt.Sprint(i)))
	}
	for name, all := range map[string][2][]byte{
		"pods":    {lengthDelimited(1, slices.Concat(pods[:maxShapes]...)), lengthDelimited(1, slices.Concat(pods...))},
		"options": {slices.Concat(options[:maxOptions]...), slices.Concat(options...)},
	} {
		if _, err := decodeBytes(all[0], 16<<10); err != nil {
			t.Errorf("%s: as many as are held: %v", name, err)
		}
		if _, err := decodeBytes(all[1], 16<<10); !errors.Is(err, errTooMuch) {
			t.Errorf("%s: one more: %v", name, err)
		}
	}
}
