// Demo shows Loadline on a real control plane; see package demo. It exits with 1 when it does not show what it
// claims, and when anything fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := harness.Root()
	if err != nil {
		return err
	}
	var options demo.Options
	flag.StringVar(&options.Trace, "trace", "",
		"folder of the openb trace: sample nodes and pods from there instead of generating them")
	flag.Uint64Var(&options.Seed, "seed", 1, "settles what is drawn")
	flag.IntVar(&options.Nodes, "nodes", 300, "number of nodes")
	flag.StringVar(&options.Page, "page", filepath.Join(root, "build", "demo", "placement.html"),
		"where to write the HTML page of the placements")
	flag.StringVar(&options.ScalingPage, "scaling-page", filepath.Join(root, "build", "demo", "scaling.html"),
		"where to write the HTML page of the autoscaler")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if options.Nodes < 1 {
		return fmt.Errorf("-nodes must be at least 1")
	}
	return demo.Run(context.Background(), os.Stdout, options)
}
