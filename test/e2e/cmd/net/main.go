// Command net holds the answers of one library against those of another. It records the questions of random loops and
// simulated days with the answers of a first library, asks a second one the same, and lists what differs, by kind.
//
//	go run ./cmd/net record  --library BASE --in FOLDER
//	go run ./cmd/net compare --library OTHER --in FOLDER [--kinds] [--show TEXT] [--allow REGEXP]
//	go run ./cmd/net pick    --library BASE --in FOLDER --out ../upgrade
//
// pick takes states out of a recording that another release has to go on from: see test/upgrade.
// A recording is a file for each seed; recordings are made again from the seeds, and are kept by nobody.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	differs, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "net:", err)
		os.Exit(2)
	}
	if differs {
		os.Exit(1)
	}
}

func run(ctx context.Context) (differs bool, err error) {
	flags := flag.NewFlagSet("net", flag.ContinueOnError)
	library := flags.String("library", "../../build/lib/libloadline.so", "the engine: a libloadline.so")
	folder := flags.String("in", "../../build/net", "where recordings are")
	out := flags.String("out", "../upgrade", "of pick: where states go")
	worlds := flags.Uint64("worlds", 1000, "how many worlds, of 20 loops each")
	scenarios := flags.Uint64("scenarios", 2000, "how many clusters with pods of all rules, of three loops each")
	days := flags.Uint64("simulations", 334, "how many simulations, of one or two days each, 501 in all")
	o := &options{}
	flags.BoolVar(&o.kinds, "kinds", false, "list all kinds of differences, not only those from which others follow")
	flags.BoolVar(&o.cover, "cover", false, "count what happens in the recorded answers")
	flags.StringVar(&o.show, "show", "", "show the differences of answers that have one of a kind with this text")
	flags.IntVar(&o.most, "most", 3, "with --show: how many answers")
	flags.StringVar(&o.allow, "allow", "", "kinds of differences that match this regular expression do not count")
	if len(os.Args) < 2 {
		return false, fmt.Errorf("record, compare or pick?")
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		return false, err
	}
	all := tasks(map[string]uint64{ofLoops: *worlds, ofScenarios: *scenarios, ofDays: *days})
	switch os.Args[1] {
	case "record":
		if err := os.MkdirAll(*folder, 0o755); err != nil {
			return false, err
		}
		return false, each(all, func(t task) (int, error) {
			return 0, record(ctx, *library, *folder, t)
		}, func(task, int) {})
	case "compare":
		r, err := newReport(o)
		if err != nil {
			return false, err
		}
		err = each(all, func(t task) (*part, error) {
			return r.compare(ctx, *library, *folder, t)
		}, r.add)
		r.print(os.Stdout)
		return r.differ > 0, err
	case "pick":
		return false, pick(ctx, *library, *folder, *out, *worlds)
	default:
		return false, fmt.Errorf("%q: record, compare or pick?", os.Args[1])
	}
}
