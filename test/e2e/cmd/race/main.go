// Command race lets autoscalers run through the same load one after the other, and shows what each has cost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/race"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

type options struct {
	scenarios, contestants []string
	seeds, first           uint64
	folder                 string
	again                  bool
}

func parse() (o options, err error) {
	root, err := harness.Root()
	if err != nil {
		return o, err
	}
	scenarios := flag.String("scenario", race.Services, "scenarios, by comma: "+strings.Join(race.Names(), ", "))
	contestants := flag.String("contestants", "loadline;loadline-no-slack;loadline-replace;loadline-order;"+karpenter,
		"who runs, by semicolon, of "+strings.Join(names(), ", ")+
			"; NAME:FLAG FLAG is Loadline with further flags")
	flag.Uint64Var(&o.seeds, "seeds", 1, "loads of each scenario, each of a seed of its own")
	flag.Uint64Var(&o.first, "first-seed", 1, "the first seed")
	flag.StringVar(&o.folder, "out", filepath.Join(root, "build", "race"), "where to write data and pages")
	flag.BoolVar(&o.again, "add", false, "add to what is there already, in place of runs of the same contestant and seed")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	o.scenarios, o.contestants = strings.Split(*scenarios, ","), strings.Split(*contestants, ";")
	return o, nil
}

const (
	karpenter = "karpenter"
	// nodeClaims is Loadline with Karpenter's hands.
	nodeClaims = "loadline-nodeclaims"
)

// known are the contestants that have a name, beside Karpenter.
var known = map[string]race.Settings{
	"loadline":          {SlackPercent: 10, Threshold: 0.5},
	"loadline-no-slack": {Threshold: 0.5},
	"loadline-tight":    {Threshold: 0.99},
	"loadline-replace":  {Threshold: 0.5, Replace: true},
	"loadline-order":    {Threshold: 0.5, Replace: true, DownscaleOrder: true},
	"loadline-line":     {Threshold: 0.5, Replace: true, MemoryLine: 1.5},
}

func names() []string { return append(slices.Sorted(maps.Keys(known)), nodeClaims, karpenter) }

func contestant(ctx context.Context, name string, log harness.Logf) (*race.Contestant, error) {
	name, flags, given := strings.Cut(name, ":")
	if name == karpenter || name == nodeClaims {
		built, err := harness.BuildKarpenter(ctx, log)
		if err != nil {
			return nil, err
		}
		if name == nodeClaims {
			return race.LoadlineByClaims(name, built, race.Settings{Threshold: 0.5, Replace: true}), nil
		}
		return race.Karpenter(built), nil
	}
	if !given {
		settings, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("no contestant %q, only %v, and NAME:FLAGS", name, names())
		}
		return race.LoadlineWith(name, settings), nil
	}
	return race.Loadline(name, strings.Fields(flags)...), nil
}

func run(ctx context.Context) error {
	o, err := parse()
	if err != nil {
		return err
	}
	result := &race.Result{}
	if o.again {
		if result, err = race.Read(o.folder); errors.Is(err, fs.ErrNotExist) {
			result = &race.Result{}
		} else if err != nil {
			return err
		}
	}
	result.Date, result.Machine = time.Now().Format("2 January 2006"), fmt.Sprintf("%d cores", runtime.NumCPU())
	result.Command = "make race " + strings.Join(os.Args[1:], " ")
	log := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	for _, scenario := range o.scenarios {
		for seed := o.first; seed < o.first+o.seeds; seed++ {
			if err := heat(ctx, o, result, scenario, seed, log); err != nil {
				return err
			}
		}
	}
	if err := result.Table(os.Stdout); err != nil {
		return err
	}
	files, err := result.Write(o.folder)
	fmt.Println()
	for _, file := range files {
		fmt.Println(file)
	}
	return err
}

// heat lets all contestants run through one load. What has run is written at once: a race takes long.
func heat(ctx context.Context, o options, result *race.Result, scenario string, seed uint64, log harness.Logf) error {
	s, err := race.Draw(scenario, seed)
	if err != nil {
		return err
	}
	for _, name := range o.contestants {
		who, err := contestant(ctx, name, log)
		if err != nil {
			return err
		}
		log("%s, seed %d: %s runs for %v, up to %d pods", s.Name, seed, who.Name, s.Duration, s.Peak())
		run, err := race.Compete(ctx, s, who, log)
		if err != nil {
			return err
		}
		log("%s: %.3f USD, %d evictions, wait p95 %.1f s", who.Name, run.USD, run.Evictions, run.Waits.P95)
		result.Put(s, run)
		if err := simulate(ctx, s, who, result, filepath.Join(o.folder, "scenarios")); err != nil {
			return err
		}
		if _, err := result.Write(o.folder); err != nil {
			return err
		}
	}
	return nil
}

// simulate lets the simulator play the same with the same contestant, where it can.
func simulate(ctx context.Context, s *race.Scenario, who *race.Contestant, result *race.Result, folder string) error {
	if who.Simulated == nil {
		return nil
	}
	run, err := race.Simulate(ctx, s, who, folder)
	if errors.Is(err, race.ErrNotSimulated) {
		return nil
	}
	if err != nil {
		return err
	}
	result.Put(s, run)
	return nil
}
