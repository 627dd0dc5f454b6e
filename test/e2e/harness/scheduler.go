package harness

import (
	"context"
	"fmt"
	"os"
	"slices"

	"loadline.dev/shim/freeport"
)

// SchedulerOptions say which scheduler to start and how.
type SchedulerOptions struct {
	// Name tells the schedulers of one cluster apart, in logs and errors.
	Name string
	// Executable is the path of the scheduler; empty takes the stock kube-scheduler.
	Executable string
	// Config is a KubeSchedulerConfiguration in YAML, as it is in manifests/.
	Config []byte
	// Args are further flags, such as those in manifests/. The harness's own override them: files, address, port.
	Args []string
	// Site replaces what Config cannot know.
	Site Site
}

// A Scheduler is a running scheduler.
type Scheduler struct {
	*Process
	cluster *Cluster
	url     string
}

// StartScheduler starts a scheduler and waits until it is ready: informers synced, and with leader election
// leading. On an error it is not left running.
func (c *Cluster) StartScheduler(ctx context.Context, options SchedulerOptions) (*Scheduler, error) {
	if options.Executable == "" {
		options.Executable = c.component(StockScheduler)
	}
	if options.Site.Kubeconfig == "" {
		options.Site.Kubeconfig = c.Kubeconfig
	}
	config, err := options.Site.Apply(options.Config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", options.Name, err)
	}
	file := c.path(options.Name + ".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	s := &Scheduler{cluster: c, url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	s.Process, err = c.sandbox.start(ctx, processSpec{
		name: options.Name,
		path: options.Executable,
		args: append(slices.Clone(options.Args),
			"--config="+file,
			"--authentication-kubeconfig="+options.Site.Kubeconfig,
			"--authorization-kubeconfig="+options.Site.Kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port),
			"-v=2",
		),
		env:   passOn("LOADLINE_LIBRARY"),
		ready: func(ctx context.Context) error { return c.getOK(ctx, s.url+"/readyz") },
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// passOn returns the settings of environment variables that are set here, for a child.
func passOn(names ...string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Stop stops the scheduler and waits until it has ended.
func (s *Scheduler) Stop() error { return s.cluster.sandbox.stop(s.Process) }

// Metrics returns the scheduler's metrics.
func (s *Scheduler) Metrics(ctx context.Context) (Metrics, error) {
	return s.cluster.metrics(ctx, s.url+"/metrics")
}
