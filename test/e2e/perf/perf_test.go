package perf

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"loadline.dev/shim/freeport"
	"loadline.dev/shim/scheduler"
	"loadline.dev/test/e2e/harness"
)

var (
	caseFlag = flag.String("perf-case", "", "the case to run")
	nodes    = flag.Int("perf-nodes", 500, "nodes")
	pods     = flag.Int("perf-pods", 5000, "pods that are measured")
	dir      = flag.String("perf-dir", "", "an empty folder, of a short path, for sockets and results")
	bin      = flag.String("perf-bin", "", "the folder of loadlined and loadline")
)

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prepareCase starts what a case needs beside the scheduler.
var prepareCase func(testContext) error

// prepare is prepareCase for the context that this Kubernetes has.
func prepare[T testContext](tCtx T) error { return prepareCase(tCtx) }

// BenchmarkPerfScheduling runs one case once. The name is the one that scheduler_perf expects.
func BenchmarkPerfScheduling(b *testing.B) {
	if *caseFlag == "" {
		b.Fatal("name a case with -perf-case; make bench-scheduler runs them all")
	}
	c := Case(*caseFlag)
	address, err := freeport.Address()
	if err != nil {
		b.Fatal(err)
	}
	weights, err := harness.ManifestWeights()
	if err != nil {
		b.Fatal(err)
	}
	s := settings{weights: weights, dir: *dir, socket: filepath.Join(*dir, "s"), extenderAddress: address,
		nodes: *nodes, pods: *pods, minor: harness.Minor()}
	config, err := s.write(c)
	if err != nil {
		b.Fatal(err)
	}
	result := Result{Case: c}
	_, result.Pods, _ = s.podsOf(c)
	result.Nodes = s.nodes
	var batchedPods atomic.Int64
	prepareCase = func(tCtx testContext) error {
		if c.batching() {
			go watchBatches(tCtx, &batchedPods)
		}
		if c.profiles() {
			if err := writeProfiles(tCtx); err != nil {
				return err
			}
		}
		switch {
		case c.transport() == Socket:
			return s.startEngine(tCtx, *bin)
		case c == Extender:
			return s.startGateway(tCtx, *bin, &result)
		}
		return nil
	}
	registry := frameworkruntime.Registry{scheduler.Name: result.newPlugin}
	perf.RunBenchmarkPerfScheduling(b, config, "loadline", registry, perf.WithPrepareFn(prepare))
	if err := result.fill(*dir); err != nil {
		b.Fatal(err)
	}
	result.Batched = int(batchedPods.Load())
	bytes, err := json.Marshal(result)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "result.json"), bytes, 0o600); err != nil {
		b.Fatal(err)
	}
}

// watchBatches notes until ctx ends how many pods batching has placed: scheduler_perf resets that counter at its end.
func watchBatches(ctx context.Context, most *atomic.Int64) {
	for ctx.Err() == nil {
		if now := batched(); now > most.Load() {
			most.Store(now)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func batched() (pods int64) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() != "scheduler_batch_attempts_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "hint_used" {
					pods += int64(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return pods
}

// counted counts the cycles of the plugin for the pods that are measured: scheduler_perf resets the plugin's own
// counters before they can be read.
type counted struct {
	*scheduler.Plugin
	result *Result
}

// newPlugin is a framework PluginFactory. Cycles run one after another.
func (r *Result) newPlugin(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	plugin, err := scheduler.New(ctx, args, handle)
	if err != nil {
		return nil, err
	}
	return &counted{plugin.(*scheduler.Plugin), r}, nil
}

func (c *counted) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	status := c.Plugin.PreScore(ctx, state, pod, nodes)
	if pod.Namespace == measuredNamespace {
		c.result.Cycles++
		if status.IsSuccess() {
			c.result.Answered++
		}
	}
	return status
}

// fill adds what scheduler_perf measured and what our own metrics say.
func (r *Result) fill(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "BenchmarkPerfScheduling_*.json"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("scheduler_perf left %d result files in %s: %v", len(files), dir, err)
	}
	bytes, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	var items perf.DataItems
	if err := json.Unmarshal(bytes, &items); err != nil {
		return err
	}
	for _, item := range items.DataItems {
		switch metric := item.Labels["Metric"]; {
		case metric == "SchedulingThroughput":
			r.PodsPerSecond = item.Data["Average"]
		case metric == "scheduler_framework_extension_point_duration_seconds" &&
			item.Labels["extension_point"] == "PreScore":
			r.PreScoreP50, r.PreScoreP99 = milliseconds(item.Data["Perc50"]), milliseconds(item.Data["Perc99"])
		case metric == "scheduler_framework_extension_point_duration_seconds" &&
			item.Labels["extension_point"] == "Score":
			r.ScoreP50, r.ScoreP99 = milliseconds(item.Data["Perc50"]), milliseconds(item.Data["Perc99"])
		}
	}
	if r.PodsPerSecond == 0 {
		return fmt.Errorf("%s holds no throughput", files[0])
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() == "loadline_scheduler_prescore_duration_seconds" {
			histogram := family.GetMetric()[0].GetHistogram()
			r.PluginP50, r.PluginP99 = quantile(histogram, 0.50), quantile(histogram, 0.99)
		}
	}
	return nil
}

// milliseconds undoes that scheduler_perf gives durations in milliseconds already.
func milliseconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Millisecond))
}

// quantile interpolates within the bucket, as Prometheus does.
func quantile(h *dto.Histogram, q float64) time.Duration {
	rank := q * float64(h.GetSampleCount())
	below, lower := 0.0, 0.0
	for _, bucket := range h.GetBucket() {
		count, upper := float64(bucket.GetCumulativeCount()), bucket.GetUpperBound()
		if count >= rank && count > below {
			return time.Duration((lower + (upper-lower)*(rank-below)/(count-below)) * float64(time.Second))
		}
		below, lower = count, upper
	}
	return time.Duration(lower * float64(time.Second))
}

func TestQuantile(t *testing.T) {
	bucket := func(count uint64, upper float64) *dto.Bucket {
		return &dto.Bucket{CumulativeCount: &count, UpperBound: &upper}
	}
	total := uint64(10)
	h := &dto.Histogram{SampleCount: &total, Bucket: []*dto.Bucket{bucket(0, 1), bucket(8, 2), bucket(10, 4)}}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.4, 1500 * time.Millisecond}, {0.8, 2 * time.Second}, {0.9, 3 * time.Second}} {
		if got := quantile(h, c.q); got != c.want {
			t.Errorf("quantile %v is %v, want %v", c.q, got, c.want)
		}
	}
}

func TestSchedulerConfig(t *testing.T) {
	s := settings{socket: "/tmp/s", extenderAddress: "127.0.0.1:1", weights: harness.Weights{Plugin: 17, Extender: 18}}
	for c, want := range map[Case]string{
		Default: "default-scheduler", InProcess: "engineAddress: inprocess", Socket: "engineAddress: unix:///tmp/s",
		Extender: "urlPrefix: http://127.0.0.1:1", DefaultBatching: "defaultingType: List",
		InProcessBatching: "defaultingType: List", DefaultShared: "defaultingType: List",
		SocketSharedBatching: "engineAddress: unix:///tmp/s", InProcessProfiles: "usageNamespace: " + usageNamespace,
	} {
		config := s.schedulerConfig(c)
		if !strings.Contains(config, want) {
			t.Errorf("the configuration of %s lacks %q:\n%s", c, want, config)
		}
		if strings.Contains(config, "weight: 17") != strings.Contains(config, scheduler.Name) ||
			strings.Contains(config, "weight: 18") != (c == Extender) {
			t.Errorf("the weights of %s:\n%s", c, config)
		}
		if limitAware := strings.Contains(config, scheduler.Name); limitAware != (c == InProcess || c == Socket ||
			c == InProcessBatching || c == SocketSharedBatching || c == InProcessProfiles) {
			t.Errorf("the configuration of %s: limit-aware is %t", c, limitAware)
		}
	}
}

// scheduler_perf refuses fields that it does not know.
func TestPodsSignAlikeWhereTheyAreLabelled(t *testing.T) {
	for minor, want := range map[string]int{"1.36": 0, "1.37": 2} {
		s := settings{dir: t.TempDir(), nodes: 500, pods: 5000, minor: minor}
		path, err := s.write(DefaultSharedBatching)
		if err != nil {
			t.Fatal(err)
		}
		config, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(config), "signatureBatchSize"); got != want {
			t.Errorf("%s: %d operations say how many pods sign alike, want %d:\n%s", minor, got, want, config)
		}
		if minor != "1.36" && !strings.Contains(string(config), "signatureBatchSize: 5000\n") {
			t.Errorf("not all measured pods sign alike:\n%s", config)
		}
	}
}

func TestBaseline(t *testing.T) {
	for c, want := range map[Case]Case{Default: Default, Socket: Default, SocketProfiles: Default, Extender: Default,
		InProcessSharedBatching: DefaultSharedBatching} {
		if got := c.baseline(); got != want {
			t.Errorf("%s is compared with %s, want %s", c, got, want)
		}
	}
}

// By hand: of 500 nodes InProcess is at 96/100 and gains 0.06 ms, Socket at 92/100 and gains 0.6 ms.
func TestReportTellsTargets(t *testing.T) {
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	results := []Result{
		{Case: Default, Nodes: 500, PodsPerSecond: 100, PreScoreP50: ms(0.3), ScoreP50: ms(0.5)},
		{Case: InProcess, Nodes: 500, PodsPerSecond: 96, PreScoreP50: ms(0.31), ScoreP50: ms(0.55)},
		{Case: Socket, Nodes: 500, PodsPerSecond: 92, PreScoreP50: ms(0.8), ScoreP50: ms(0.6)},
		{Case: Extender, Nodes: 500, PodsPerSecond: 69, PreScoreP50: ms(0.3), ScoreP50: ms(0.5)},
		{Case: Extender, Nodes: 5000, PodsPerSecond: 49},
	}
	var out strings.Builder
	if err := Report(&out, results); err != nil {
		t.Fatal(err)
	}
	_, targets, _ := strings.Cut(out.String(), "\n\n")
	want := `InProcess, 500 nodes: ratio 0.960, at least 0.970: missed
InProcess, 500 nodes: gain 0.060 ms, at most 0.100 ms: met
Socket, 500 nodes: ratio 0.920, at least 0.920: met
Socket, 500 nodes: gain 0.600 ms, at most 0.500 ms: missed
Extender, 500 nodes: ratio 0.690, at least 0.700: missed
`
	if targets != want {
		t.Errorf("got\n%swant\n%s", targets, want)
	}
	if table, _, _ := strings.Cut(out.String(), "\n\n"); !strings.Contains(table, "gain") ||
		!strings.Contains(table, "0.060ms") {
		t.Errorf("the table has no gain:\n%s", table)
	}
}

// Only the pods that are measured count; the requests to the extender tell nothing of namespaces.
func TestCheckCounts(t *testing.T) {
	for _, c := range []struct {
		result Result
		ok     bool
	}{
		{Result{Case: InProcess, Pods: 5000, Cycles: 5000, Answered: 4995}, true},
		{Result{Case: InProcess, Pods: 5000, Cycles: 5000, Answered: 4994}, false},
		{Result{Case: InProcess, Pods: 5000, Cycles: 4000, Answered: 4000}, false},
		{Result{Case: Extender, Pods: 5000, Cycles: 6000, Answered: 6000}, true},
		{Result{Case: Extender, Pods: 5000, Cycles: 5000, Answered: 5000}, false},
		{Result{Case: InProcessBatching, Pods: 500, Cycles: 5, Answered: 5, Batched: 0}, false},
		{Result{Case: InProcessBatching, Pods: 500, Cycles: 5, Answered: 5, Batched: 495}, true},
		{Result{Case: Default}, true},
		{Result{Case: DefaultShared}, true},
		{Result{Case: DefaultSharedBatching}, false},
		{Result{Case: SocketShared, Pods: 500, Cycles: 499, Answered: 499}, false},
	} {
		if err := c.result.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.result, err)
		}
	}
}
