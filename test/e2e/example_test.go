package e2e

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// KEP 217's own example: by requests node1 is the better node for pod5, by limits node2, 9/8 against 14/8.
func TestProposalsExample(t *testing.T) {
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

// One node: both schedulers put every pod there, so there is nothing to show, and the demo says so.
func TestDemoSaysWhenItShowsNothing(t *testing.T) {
	ctx := deadline(t)
	var out bytes.Buffer
	err := demo.Run(ctx, &out, demo.Options{Seed: 1, Nodes: 1, Page: filepath.Join(t.TempDir(), "page.html")})
	if !errors.Is(err, demo.ErrNotShown) {
		t.Fatalf("error %v, want that the demo shows nothing; it printed\n%s", err, out.String())
	}
	for _, part := range []string{"p95 of cpu", "max of memory", "not below"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
}
