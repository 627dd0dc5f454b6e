// Package demo shows on a real control plane what Loadline does: KEP 217's own example, a cluster filled once by the
// stock kube-scheduler and once by loadline-scheduler, and the autoscaler on a simulated cloud. `make demo` runs it;
// the end-to-end tests check what it claims.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loadline.dev/shim/report"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

// Options of the demo.
type Options struct {
	// Trace is the folder of the openb trace; empty: the generated workload.
	Trace string
	// Seed settles what is drawn.
	Seed uint64
	// Nodes is how many; the pods follow from them.
	Nodes int
	// Page is where the HTML page of the placements is written, ScalingPage that of the autoscaler.
	Page, ScalingPage string
}

// Names of the two placements in table and page.
const (
	StockName = "kube-scheduler"
	OursName  = "loadline-scheduler"
)

// ErrNotShown is what Run returns when everything ran and did not show what the demo claims.
var ErrNotShown = errors.New("the demo does not show what it claims")

// Run runs the whole demo and writes what a person should see to `out`.
func Run(ctx context.Context, out io.Writer, options Options) error {
	begin := time.Now()
	step := func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	w, err := load(options)
	if err != nil {
		return err
	}
	exampleError := showExample(ctx, out, step)
	if exampleError != nil && !errors.Is(exampleError, ErrNotShown) {
		return exampleError
	}
	fillingError := showFilling(ctx, out, step, w, options.Page)
	if fillingError != nil && !errors.Is(fillingError, ErrNotShown) {
		return errors.Join(exampleError, fillingError)
	}
	return errors.Join(exampleError, fillingError, showScaling(ctx, out, step, options.ScalingPage))
}

func load(options Options) (workload.Workload, error) {
	if options.Trace != "" {
		return workload.FromTrace(options.Trace, options.Seed, options.Nodes)
	}
	return workload.Generate(options.Seed, options.Nodes), nil
}

// showExample runs the stock scheduler and ours side by side, as manifests/second-scheduler has it.
func showExample(ctx context.Context, out io.Writer, step harness.Logf) (err error) {
	cluster, err := harness.Start(ctx, harness.Options{Log: step})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	fmt.Fprintf(out, "\n(a) KEP 217's example: two nodes of 8 cores. "+
		"node1: requests 4, limits 10. node2: requests 5, limits 5.\n"+
		"    Where does pod5 go, which requests 1 core and may use 4?\n")
	if err := StartExample(ctx, cluster); err != nil {
		return err
	}
	stockNode, err := PlaceExamplePod(ctx, cluster, StockScheduler)
	if err != nil {
		return err
	}
	step("%-18s puts pod5 on %s", StockName, stockNode)
	ourNode, err := PlaceExamplePod(ctx, cluster, OurScheduler)
	if err != nil {
		return err
	}
	step("%-18s puts pod5 on %s", OursName, ourNode)
	why, err := cluster.CLI(ctx, "why", ExampleNamespace+"/"+ExamplePod)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n    $ loadline why %s/%s\n%s\n", ExampleNamespace, ExamplePod, indent(why))
	if stockNode != "node1" || ourNode != "node2" {
		return fmt.Errorf("%w: expected node1 from %s and node2 from %s", ErrNotShown, StockName, OursName)
	}
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

func showFilling(ctx context.Context, out io.Writer, step harness.Logf, w workload.Workload, page string) error {
	fmt.Fprintf(out, "(b) The same pods in the same order on the same nodes, placed once by each scheduler, as\n"+
		"    manifests/replacement configures it; the stock scheduler with the same configuration "+
		"without the plugin.\n")
	for _, line := range w.Stated {
		fmt.Fprintf(out, "    %s\n", line)
	}
	fmt.Fprintln(out)
	stock, err := FillWithStock(ctx, w, step)
	if err != nil {
		return err
	}
	ours, err := FillWithOurs(ctx, w, step)
	if err != nil {
		return err
	}
	lined, err := FillWithLine(ctx, WithMoreNodes(w, MoreNodes), MemoryLine, step)
	if err != nil {
		return err
	}
	placements := []report.Placement{stock.Placement, ours.Placement, lined.Placement}
	fmt.Fprintln(out)
	if err := report.Table(out, placements); err != nil {
		return err
	}
	if err := writePage(page, placements); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nHistograms and heat maps: %s\n", page)
	broken := append(CheckClaim(stock.Placement, ours.Placement), CheckAnswered(ours)...)
	broken = append(broken, CheckLine(WithMoreNodes(w, MoreNodes).Nodes, lined.Pods, MemoryLine)...)
	if len(broken) > 0 {
		return fmt.Errorf("%w:\n  %s", ErrNotShown, strings.Join(broken, "\n  "))
	}
	fmt.Fprintf(out, "p95 and maximum of limits/allocatable are lower with %s, for cpu and memory; "+
		"no more pods are pending.\nUnder a load line of %v for memory no node was ever above it; on %d nodes instead of "+
		"%d, %d pods are pending.\n", OursName, MemoryLine, len(lined.Placement.Nodes), len(ours.Placement.Nodes),
		lined.Placement.PendingPods)
	return nil
}

func writePage(file string, placements []report.Placement) error {
	var page bytes.Buffer
	if err := report.Page(&page, "Limits over allocatable, node by node", placements); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, page.Bytes(), 0o644)
}
