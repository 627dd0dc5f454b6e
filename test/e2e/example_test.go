package e2e

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// KEP 217's own example: by requests node1 is the better node for pod5, by limits node2, 9/8 against 14/8.
func TestProposalsExample(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	if err := demo.StartExample(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scheduler, want string }{
		{demo.StockScheduler, "node1"}, {demo.OurScheduler, "node2"},
	} {
		node, err := demo.PlaceExamplePod(ctx, cluster, c.scheduler)
		if err != nil {
			t.Fatal(err)
		}
		if node != c.want {
			t.Errorf("%s puts pod5 on %s, want %s", c.scheduler, node, c.want)
		}
	}
	why, err := cluster.CLI(ctx, "why", demo.ExampleNamespace+"/"+demo.ExamplePod)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(why, "\n")
	for _, part := range []string{"default/pod5", "node2", "9/8 cpu", "node1", "14/8 cpu"} {
		if !strings.Contains(line, part) {
			t.Errorf("the first line of why does not contain %q:\n%s", part, line)
		}
	}
}

// With one node both schedulers put every pod there, so there is nothing to show, and the demo says so. Its third part
// shows what it claims: load arrives and the cheapest mix of nodes appears; a burst is placed at once where slack is
// kept, and waits for a node where it is not; load leaves, and nodes drain in parallel within budgets. By the records
// of API server and cloud, nothing happened that must not. Invariants D1, D2, D3.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	var out bytes.Buffer
	options := demo.Options{Seed: 1, Nodes: 1, Page: filepath.Join(t.TempDir(), "page.html"),
		ScalingPage: filepath.Join(t.TempDir(), "scaling.html")}
	err := demo.Run(ctx, &out, options)
	t.Log(out.String())
	if !errors.Is(err, demo.ErrNotShown) {
		t.Fatalf("error %v, want that the demo does not show a part", err)
	}
	for _, part := range []string{"p95 of cpu", "max of memory", "not below"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
	if parts := strings.Count(err.Error(), demo.ErrNotShown.Error()); parts != 1 ||
		!strings.Contains(out.String(), "With slack the burst had its nodes after ") {
		t.Errorf("%d parts do not show what they claim, want that of the placements alone: %v", parts, err)
	}
	for _, page := range []string{options.Page, options.ScalingPage} {
		if _, err := os.Stat(page); err != nil {
			t.Error(err)
		}
	}
}
