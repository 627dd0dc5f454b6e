package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"loadline.dev/shim/freeport"
)

// An Engine is a running loadlined.
type Engine struct {
	*Process
	// Address is the address for clients: unix:// and the path of its socket.
	Address string

	cluster *Cluster
	spec    processSpec
}

// StartEngine starts loadlined on a socket of its own and waits until it accepts connections.
func (c *Cluster) StartEngine(ctx context.Context, name string) (*Engine, error) {
	path, err := Loadlined.Path()
	if err != nil {
		return nil, err
	}
	socket := c.path(name + ".sock")
	e := &Engine{Address: "unix://" + socket, cluster: c, spec: processSpec{
		name:  name,
		path:  path,
		args:  EngineArgs(socket),
		ready: func(ctx context.Context) error { return dialUnix(ctx, socket) },
	}}
	return e, e.Restart(ctx)
}

// EngineArgs are the arguments of loadlined for a socket, as manifests/ has them.
func EngineArgs(socket string) []string { return []string{"--socket=" + socket} }

// SecondEngine starts another loadlined on the same socket and waits until it ends, which it should at once.
func (e *Engine) SecondEngine(ctx context.Context) (*Process, error) {
	second := e.spec
	second.name += "-second"
	second.ready = nil
	process, err := e.cluster.sandbox.start(ctx, second)
	if err != nil {
		return nil, err
	}
	defer e.cluster.sandbox.forget(process)
	if err := process.Wait(ctx); err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

// Restart starts loadlined again on the same socket, after it was stopped or killed.
func (e *Engine) Restart(ctx context.Context) error {
	if e.Process != nil {
		if e.Running() {
			return errors.New(e.Name + " still runs")
		}
		e.cluster.sandbox.forget(e.Process)
	}
	process, err := e.cluster.sandbox.start(ctx, e.spec)
	e.Process = process
	return err
}

// Stop stops loadlined and waits until it has ended.
func (e *Engine) Stop() error { return e.cluster.sandbox.stop(e.Process) }

// A Gateway is a running `loadline gateway`.
type Gateway struct {
	*Process
	// URL is what the urlPrefix of an extender names.
	URL string

	cluster *Cluster
}

// GatewayArgs are the arguments of `loadline` for a gateway at an address and with an engine, as
// manifests/extender has them.
func GatewayArgs(address, engineAddress string) []string {
	return []string{"gateway", "--extender-address=" + address, "--engine=" + engineAddress}
}

// StartGateway starts the gateway for HTTP extenders, acting as whom the kubeconfig says, and waits until it is
// ready: it has sent the cluster to the engine.
func (c *Cluster) StartGateway(ctx context.Context, name, kubeconfig, engineAddress string) (*Gateway, error) {
	return c.startGateway(ctx, name, kubeconfig, engineAddress, "/readyz")
}

// StartGatewayUnready starts the gateway and waits only until it is alive.
func (c *Cluster) StartGatewayUnready(ctx context.Context, name, kubeconfig, engineAddress string) (*Gateway, error) {
	return c.startGateway(ctx, name, kubeconfig, engineAddress, "/livez")
}

func (c *Cluster) startGateway(ctx context.Context, name, kubeconfig, engineAddress, waitFor string) (*Gateway, error) {
	path, err := LoadlineCLI.Path()
	if err != nil {
		return nil, err
	}
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	g := &Gateway{URL: "http://" + address, cluster: c}
	g.Process, err = c.sandbox.start(ctx, processSpec{
		name:  name,
		path:  path,
		args:  append(GatewayArgs(address, engineAddress), "--kubeconfig="+kubeconfig),
		env:   passOn("LOADLINE_LIBRARY"),
		ready: func(ctx context.Context) error { return c.getOK(ctx, g.URL+waitFor) },
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Ready returns nil when the gateway says that it is ready, else what it lacks.
func (g *Gateway) Ready(ctx context.Context) error { return g.cluster.getOK(ctx, g.URL+"/readyz") }

// Stop stops the gateway and waits until it has ended.
func (g *Gateway) Stop() error { return g.cluster.sandbox.stop(g.Process) }

// Metrics returns the gateway's metrics.
func (g *Gateway) Metrics(ctx context.Context) (Metrics, error) {
	return g.cluster.metrics(ctx, g.URL+"/metrics")
}

// CLI runs a command of `loadline` on the cluster and returns what it prints.
func (c *Cluster) CLI(ctx context.Context, args ...string) (string, error) {
	path, err := LoadlineCLI.Path()
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(args, "--kubeconfig="+c.Kubeconfig)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("loadline %v: %w\n%s", args, err, lastLines(stderr.String(), 20))
	}
	return stdout.String(), nil
}
