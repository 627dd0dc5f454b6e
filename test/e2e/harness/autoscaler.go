package harness

import (
	"context"
	"errors"
	"fmt"

	"loadline.dev/shim/freeport"
)

// An Autoscaler is a running `loadline autoscaler`.
type Autoscaler struct {
	*Process
	url     string
	cluster *Cluster
	spec    processSpec
}

// StartAutoscaler starts the autoscaler with a configuration file, with the identity that the kubeconfig gives, and
// waits until it is ready. Of several with the same name, only one may run.
func (c *Cluster) StartAutoscaler(ctx context.Context, name, kubeconfig, config string,
	args ...string) (*Autoscaler, error) {
	path, err := LoadlineCLI.Path()
	if err != nil {
		return nil, err
	}
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	a := &Autoscaler{url: "http://" + address, cluster: c}
	a.spec = processSpec{
		name: name,
		path: path,
		args: append([]string{"autoscaler", "--config=" + config, "--kubeconfig=" + kubeconfig,
			"--bind-address=" + address}, args...),
		env:   passOn("LOADLINE_LIBRARY"),
		ready: func(ctx context.Context) error { return c.getOK(ctx, a.url+"/readyz") },
	}
	return a, a.Restart(ctx)
}

// Restart starts the autoscaler again after it was stopped or killed.
func (a *Autoscaler) Restart(ctx context.Context) error {
	if a.Process != nil {
		if a.Running() {
			return errors.New(a.Name + " still runs")
		}
		a.cluster.sandbox.forget(a.Process)
	}
	process, err := a.cluster.sandbox.start(ctx, a.spec)
	a.Process = process
	return err
}

// Stop stops the autoscaler and waits until it has ended.
func (a *Autoscaler) Stop() error { return a.cluster.sandbox.stop(a.Process) }

// Metrics returns the autoscaler's metrics.
func (a *Autoscaler) Metrics(ctx context.Context) (Metrics, error) {
	return a.cluster.metrics(ctx, a.url+"/metrics")
}

// Get returns what the autoscaler serves at a path.
func (a *Autoscaler) Get(ctx context.Context, path string) (string, error) {
	body, err := a.cluster.get(ctx, a.url+path)
	return string(body), err
}
