package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/sweep"
	"loadline.dev/shim/sweep/indexedjob"
)

const sweepHelp = `Simulate many months: each point of a sweep, a set of settings, for each cluster and
each seed. The file is of kind Sweep: its inputs are scenarios or dumps, its settings lists or ranges,
and its search is Grid, Random or Halving, which looks for the cheapest settings within a goal for waiting
times.

Rows go to the folder --results, one when it is done. Who starts again with the same file goes on where it
was. At the end rows.csv and rows.parquet are written there; the same inputs give the same rows, in
whichever order and on however many machines. 'loadline simulate --row N FILE' runs one of them again.

With --on-cluster it runs as an Indexed Job of Kubernetes: its shards leave their rows in ConfigMaps, and
this program collects them; a shard that is evicted or fails is run again by the Job controller. It needs
manifests/sweep, and nothing else.`

// sweepFlags are the flags of `sweep`.
type sweepFlags struct {
	results     string
	workers     int
	writeInputs string
	cluster     clusterFlags
	job         sweepJobFlags
	engine      engineFlags
	output      outputFlag
}

const formCSV = "csv"

func (a *app) newSweep() *cobra.Command {
	var f sweepFlags
	command := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Simulate months of many settings, loads and clusters, here or as an Indexed Job, and say what to choose",
		Long:  sweepHelp,
		Example: `  loadline sweep sweep.yaml
  loadline sweep sweep.yaml -o html > sweep.html
  loadline sweep sweep.yaml --on-cluster --image registry.example/loadline/loadline:v` + Version +
			` -n loadline-sweeps --shards 200 --parallelism 50`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.output.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), args[0], a.streams)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.results, "results", "", "folder of the rows (default: the sweep's name, in front of it sweep-)")
	flags.IntVar(&f.workers, "workers", runtime.NumCPU(),
		"months that are simulated at a time, each by an engine of its own")
	flags.StringVar(&f.writeInputs, "write-inputs", "", "write the inputs into this folder, for --inputs-claim, and end")
	f.job.addTo(flags)
	addClusterFlags(flags, &f.cluster)
	flags.Lookup("namespace").Usage = "namespace of the job (default: that of the context)"
	addEngineFlag(flags, &f.engine)
	addOutputFlag(flags, &f.output, formTable, formJSON, formYAML, formHTML, formCSV)
	f.output.nameless, f.output.ordered = true, true
	command.AddCommand(a.newSweepShard())
	return command
}

func (f *sweepFlags) run(ctx context.Context, file string, streams Streams) error {
	if f.workers < 1 {
		return usagef("--workers %d: must be at least 1", f.workers)
	}
	plan, err := readSweep(ctx, file, f.engine)
	if err != nil {
		return err
	}
	switch {
	case f.writeInputs != "":
		return writeInputs(plan, f.writeInputs)
	case f.job.dryRun:
		return f.job.print(plan, &f.cluster, streams.Out)
	}
	if f.results == "" {
		f.results = "sweep-" + plan.Name
	}
	journal, err := sweep.OpenJournal(f.results, plan, Version)
	if err != nil {
		return err
	}
	defer journal.Close()
	progress := newSweepProgress(plan, journal, streams.Err)
	if f.job.onCluster {
		err = f.job.run(ctx, plan, journal, &f.cluster, progress)
	} else {
		err = f.runHere(ctx, plan, journal, progress)
	}
	// The rows that are there are written even if shards have failed.
	if failed := (*indexedjob.Failed)(nil); err != nil && !errors.As(err, &failed) {
		return err
	}
	return errors.Join(f.write(plan, journal, streams.Out), err)
}

func writeInputs(plan *sweep.Plan, dir string) error {
	bundle, err := plan.Bundle()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, indexedjob.BundleName(plan)), bundle, 0o644)
}

// runHere simulates in this process: each worker has an engine of its own.
func (f *sweepFlags) runHere(ctx context.Context, plan *sweep.Plan, journal *sweep.Journal,
	progress *sweepProgress) error {
	engines, closeAll, err := openSimulators(f.engine, f.workers)
	if err != nil {
		return err
	}
	defer closeAll()
	for {
		rows := plan.Next(journal.Rows())
		if len(rows) == 0 {
			return nil
		}
		progress.round(len(rows))
		err := plan.Run(ctx, rows, engines, func(row *sweep.Row) error {
			defer progress.done()
			return journal.Add(row)
		})
		if err != nil {
			return err
		}
	}
}

func openSimulators(engine engineFlags, count int) (all []sweep.Simulate, closeAll func(), err error) {
	var closers []io.Closer
	closeAll = func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	for range count {
		conn, err := engine.open()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		closers = append(closers, conn)
		all = append(all, func(ctx context.Context,
			request *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
			answer, err := simulateScenario(ctx, conn, request)
			if err != nil {
				return nil, &simulateError{code: status.Code(err), err: engineError(err)}
			}
			return answer, nil
		})
	}
	return all, closeAll, nil
}

// simulateError is why a month could not be simulated.
type simulateError struct {
	code codes.Code
	err  error
}

func (e *simulateError) Error() string { return e.err.Error() }

func (e *simulateError) Unwrap() error { return e.err }

// wrongInput says whether an error would come again each time.
func wrongInput(err error) bool {
	of := (*simulateError)(nil)
	return errors.As(err, &of) && of.code == codes.InvalidArgument
}

// write writes the files of the results folder, and the answer.
func (f *sweepFlags) write(plan *sweep.Plan, journal *sweep.Journal, out io.Writer) error {
	rows := sweep.Sorted(journal.Rows())
	if err := journal.WriteFile("rows.csv", func(w io.Writer) error { return plan.WriteCSV(w, rows) }); err != nil {
		return err
	}
	if err := journal.WriteFile("rows.parquet", func(w io.Writer) error {
		return plan.WriteParquet(w, rows)
	}); err != nil {
		return err
	}
	if f.output.form == formCSV {
		return plan.WriteCSV(out, rows)
	}
	return f.output.write(out, (&sweepAnswer{plan: plan, rows: rows, folder: f.results}).forms())
}

// sweepProgress tells how far a sweep is, each few seconds.
type sweepProgress struct {
	out     io.Writer
	mu      sync.Mutex
	rows    int // of the round that are to be done; guarded by mu, as all below
	ready   int
	told    time.Time
	started time.Time
}

const progressSeconds = 5

func newSweepProgress(plan *sweep.Plan, journal *sweep.Journal, out io.Writer) *sweepProgress {
	if there := len(journal.Rows()); there > 0 {
		fmt.Fprintf(out, "%s of at most %d are there already.\n", plural(there, "row"), plan.Rows())
	}
	return &sweepProgress{out: out}
}

// round begins with so many rows.
func (p *sweepProgress) round(rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.ready, p.started, p.told = rows, 0, time.Now(), time.Now()
	fmt.Fprintf(p.out, "%s to simulate.\n", plural(rows, "row"))
}

func (p *sweepProgress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready++
	p.tell(p.ready == p.rows)
}

// tell is called with mu locked.
func (p *sweepProgress) tell(now bool) {
	if !now && time.Since(p.told).Seconds() < progressSeconds {
		return
	}
	p.told = time.Now()
	took := time.Since(p.started)
	left := time.Duration(float64(took) / float64(max(1, p.ready)) * float64(p.rows-p.ready))
	fmt.Fprintf(p.out, "%d of %s, %s; %s left.\n", p.ready, plural(p.rows, "row"), took.Round(time.Second),
		left.Round(time.Second))
}

// shards tells of a round on a cluster.
func (p *sweepProgress) shards(done, failed, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done+failed == p.ready && time.Since(p.told).Seconds() < 60 {
		return
	}
	p.ready = done + failed
	if done+failed < all && time.Since(p.told).Seconds() < progressSeconds {
		return
	}
	p.told = time.Now()
	fmt.Fprintf(p.out, "%d of %s collected, %d failed; %d left.\n", done, plural(all, "shard"), failed, all-done-failed)
}
