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
	"k8s.io/kubernetes/test/utils/ktesting"

	"loadline.dev/shim/scheduler"
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

// BenchmarkPerfScheduling runs one case once. The name is the one that scheduler_perf expects.
func BenchmarkPerfScheduling(b *testing.B) {
	if *caseFlag == "" {
		b.Fatal("name a case with -perf-case; make bench-scheduler runs them all")
	}
	c := Case(*caseFlag)
	address, err := freeAddress()
	if err != nil {
		b.Fatal(err)
	}
	s := settings{dir: *dir, socket: filepath.Join(*dir, "s"), extenderAddress: address, nodes: *nodes, pods: *pods}
	config, err := s.write(c)
	if err != nil {
		b.Fatal(err)
	}
	result := Result{Case: c}
	_, result.Pods, _ = s.podsOf(c)
	result.Nodes = s.nodes
	var batchedPods atomic.Int64
	start := func(tCtx ktesting.TContext) error {
		switch c {
		case DefaultBatching, InProcessBatching:
			go watchBatches(tCtx, &batchedPods)
		case Socket:
			return s.startEngine(tCtx, *bin)
		case Extender:
			return s.startGateway(tCtx, *bin, &result)
		}
		return nil
	}
	registry := frameworkruntime.Registry{scheduler.Name: result.newPlugin}
	perf.RunBenchmarkPerfScheduling(b, config, "loadline", registry, perf.WithPrepareFn(start))
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

// counted counts the cycles of the plugin: scheduler_perf resets the plugin's own counters before they can be read.
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
	c.result.Cycles++
	if status.IsSuccess() {
		c.result.Answered++
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
		case metric == "scheduler_framework_extension_point_duration_seconds" && item.Labels["extension_point"] == "PreScore":
			r.PreScoreP50, r.PreScoreP99 = milliseconds(item.Data["Perc50"]), milliseconds(item.Data["Perc99"])
		case metric == "scheduler_framework_extension_point_duration_seconds" && item.Labels["extension_point"] == "Score":
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
	s := settings{socket: "/tmp/s", extenderAddress: "127.0.0.1:1"}
	for c, want := range map[Case]string{
		Default: "default-scheduler", InProcess: "engineAddress: inprocess", Socket: "engineAddress: unix:///tmp/s",
		Extender: "urlPrefix: http://127.0.0.1:1", DefaultBatching: "defaultingType: List", InProcessBatching: "defaultingType: List",
	} {
		config := s.schedulerConfig(c)
		if !strings.Contains(config, want) {
			t.Errorf("the configuration of %s lacks %q:\n%s", c, want, config)
		}
		if limitAware := strings.Contains(config, scheduler.Name); limitAware != (c == InProcess || c == Socket || c == InProcessBatching) {
			t.Errorf("the configuration of %s: limit-aware is %t", c, limitAware)
		}
	}
}
