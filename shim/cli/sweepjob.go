package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/sweep"
	"loadline.dev/shim/sweep/indexedjob"
	"loadline.dev/shim/unknownfields"
)

// sweepJobFlags are those of `sweep --on-cluster`.
type sweepJobFlags struct {
	onCluster, dryRun   bool
	image, queue, claim string
	cpu, memory         string
	shards, parallelism int
	retries, maxFailed  int32
	keep, poll          time.Duration
}

func (f *sweepJobFlags) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&f.onCluster, "on-cluster", false, "run as an Indexed Job in the namespace -n of the cluster")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --on-cluster: print the objects, and make none")
	flags.StringVar(&f.image, "image", "", "image of the shards, loadline of this version (required with --on-cluster)")
	flags.StringVar(&f.queue, "queue", "", "local queue of Kueue, if it is installed")
	flags.StringVar(&f.claim, "inputs-claim", "", "volume claim with the inputs, see --write-inputs, where they are too "+
		"large for a ConfigMap")
	flags.StringVar(&f.cpu, "shard-cpu", "1", "what a shard requests")
	flags.StringVar(&f.memory, "shard-memory", "512Mi", "what a shard requests, and is limited to")
	flags.IntVar(&f.shards, "shards", 0, "parts in which the rows are done (default: of 20 rows each)")
	flags.IntVar(&f.parallelism, "parallelism", 100, "shards that run at a time")
	flags.Int32Var(&f.retries, "retries", 3, "how often a shard is run again that has failed; evictions do not count")
	flags.Int32Var(&f.maxFailed, "max-failed-shards", 10, "shards that may fail for good before all are ended")
	flags.DurationVar(&f.keep, "keep", 7*24*time.Hour, "how long job and results stay on the cluster after the end")
	flags.DurationVar(&f.poll, "poll", 2*time.Second, "how often results are looked for")
}

// rowsPerShard is how many rows a shard has by default.
const rowsPerShard = 20

func (f *sweepJobFlags) job(plan *sweep.Plan, rows []int, cluster *clusterFlags) (*indexedjob.Job, error) {
	if f.image == "" {
		return nil, usagef("--image is missing: name the image of this version that you have pushed, such as "+
			"registry.example/loadline/loadline:v%s", Version)
	}
	namespace, _, err := cluster.config().Namespace()
	if err != nil {
		return nil, err
	}
	o := indexedjob.Options{Namespace: namespace, Image: f.image, Version: Version, Shards: f.shards,
		Parallelism: f.parallelism, Retries: f.retries, MaxFailed: f.maxFailed, Queue: f.queue, Claim: f.claim,
		KeepSeconds: int32(f.keep.Seconds())}
	if o.Shards == 0 {
		o.Shards = (len(rows) + rowsPerShard - 1) / rowsPerShard
	}
	if o.Shards < 1 || o.Parallelism < 1 || o.Retries < 0 || o.MaxFailed < 0 || f.keep < 0 || f.poll <= 0 {
		return nil, usagef("--shards, --parallelism and --poll must be above 0; --retries, --max-failed-shards and --keep, " +
			"at least 0")
	}
	if o.CPU, err = resource.ParseQuantity(f.cpu); err != nil {
		return nil, usagef("--shard-cpu %q: %w", f.cpu, err)
	}
	if o.Memory, err = resource.ParseQuantity(f.memory); err != nil {
		return nil, usagef("--shard-memory %q: %w", f.memory, err)
	}
	return indexedjob.New(plan, rows, o)
}

// print writes the objects of the first round.
func (f *sweepJobFlags) print(plan *sweep.Plan, cluster *clusterFlags, out io.Writer) error {
	job, err := f.job(plan, plan.Round(nil), cluster)
	if err != nil {
		return err
	}
	for _, object := range []any{job.Inputs, job.Job} {
		content, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", content)
	}
	return nil
}

// run runs each round as a Job.
func (f *sweepJobFlags) run(ctx context.Context, plan *sweep.Plan, journal *sweep.Journal, cluster *clusterFlags,
	progress *sweepProgress) error {
	config, err := cluster.restConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100 // a request for each shard that is complete
	client, err := unknownfields.NewClient(config)
	if err != nil {
		return err
	}
	for {
		done := journal.Rows()
		rows := plan.Round(done)
		if len(rows) == 0 {
			return nil
		}
		job, err := f.job(plan, rows, cluster)
		if err != nil {
			return err
		}
		progress.round(len(rows))
		fmt.Fprintf(progress.out, "job %s in namespace %s: %s.\n", job.Name, job.Job.Namespace,
			plural(job.Shards(), "shard"))
		collector := indexedjob.Collector{Client: client, Version: Version, Poll: f.poll, Add: journal.Add,
			Done: func(row int) bool { return done[row] != nil }, Tell: progress.shards}
		if err := collector.Run(ctx, job); err != nil {
			return err
		}
	}
}

// newSweepShard is what the pods of the Job run.
func (a *app) newSweepShard() *cobra.Command {
	shard := indexedjob.Shard{Version: Version}
	var cluster clusterFlags
	var engine engineFlags
	command := &cobra.Command{
		Use:    "shard",
		Short:  "Simulate the rows of one index of the Job of --on-cluster, and leave them in a ConfigMap",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := runShard(cmd.Context(), &shard, &cluster, engine, a.streams.Err)
			if wrongInput(err) {
				return exitError{indexedjob.ExitWrongInput, err}
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&shard.Inputs, "inputs", "", "file with the inputs")
	flags.StringVar(&shard.Digest, "digest", "", "their digest")
	flags.StringVar(&shard.RowsFile, "rows", "", "file with the numbers of all rows")
	flags.IntVar(&shard.PerShard, "rows-per-shard", 0, "how many each index has")
	flags.StringVar(&shard.Job, "job", "", "name of the job")
	addClusterFlags(flags, &cluster)
	addEngineFlag(flags, &engine)
	return command
}

func runShard(ctx context.Context, shard *indexedjob.Shard, cluster *clusterFlags, engine engineFlags,
	out io.Writer) error {
	var err error
	if shard.Index, err = strconv.Atoi(os.Getenv("JOB_COMPLETION_INDEX")); err != nil {
		return usagef("JOB_COMPLETION_INDEX: %w", err)
	}
	shard.UID, shard.Namespace = os.Getenv("JOB_UID"), os.Getenv("POD_NAMESPACE")
	plan, numbers, err := shard.Plan()
	if err != nil {
		return err
	}
	client, err := cluster.client()
	if err != nil {
		return err
	}
	simulators, closeAll, err := openSimulators(engine, 1)
	if err != nil {
		return err
	}
	defer closeAll()
	var rows []*sweep.Row
	err = plan.Run(ctx, numbers, simulators, func(row *sweep.Row) error {
		rows = append(rows, row)
		_, err := fmt.Fprintf(out, "%s: digest %s\n", plan.Describe(row.Row), row.Digest)
		return err
	})
	if err != nil {
		return err
	}
	return shard.Leave(ctx, client, rows)
}
