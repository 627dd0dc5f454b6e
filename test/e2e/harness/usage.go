package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"loadline.dev/shim/freeport"
)

// A Server is a component that answers HTTP at URL.
type Server struct {
	*Process
	URL     string
	cluster *Cluster
}

// Stop stops the server and waits until it has ended.
func (s *Server) Stop() error { return s.cluster.sandbox.stop(s.Process) }

// ErrNoPrometheus says that the machine has no Prometheus, which `make deps` installs.
var ErrNoPrometheus = errors.New("prometheus or promtool is not installed: make deps installs it")

// StartPrometheus starts a Prometheus server that scrapes nothing and has the series of a text in OpenMetrics.
func (c *Cluster) StartPrometheus(ctx context.Context, series string) (*Server, error) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, ErrNoPrometheus
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		return nil, ErrNoPrometheus
	}
	text, data, config := c.path("series.om"), c.path("prometheus"), c.path("prometheus.yml")
	if err := errors.Join(os.WriteFile(text, []byte(series), 0o600), os.WriteFile(config, nil, 0o600)); err != nil {
		return nil, err
	}
	load := exec.CommandContext(ctx, tool, "tsdb", "create-blocks-from", "openmetrics", text, data)
	if out, err := load.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("promtool: %w\n%s", err, out)
	}
	args := []string{"--config.file=" + config, "--storage.tsdb.path=" + data, "--storage.tsdb.retention.time=1y"}
	spec := processSpec{name: "prometheus", path: program, args: args}
	return c.startServer(ctx, "/-/ready", spec, "--web.listen-address=")
}

// StartUsage starts `loadline usage` with the identity that the kubeconfig gives, and waits until it is ready.
func (c *Cluster) StartUsage(ctx context.Context, kubeconfig string, args ...string) (*Server, error) {
	path, err := LoadlineCLI.Path()
	if err != nil {
		return nil, err
	}
	return c.startServer(ctx, "/readyz", processSpec{name: "usage", path: path,
		args: append([]string{"usage", "--kubeconfig=" + kubeconfig}, args...)}, "--bind-address=")
}

// startServer starts a process that listens where its last argument says, and waits until a path is answered with 200.
func (c *Cluster) startServer(ctx context.Context, ready string, spec processSpec, listen string) (*Server, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := &Server{URL: "http://" + address, cluster: c}
	spec.args = append(spec.args, listen+address)
	spec.ready = func(ctx context.Context) error { return c.getOK(ctx, s.URL+ready) }
	s.Process, err = c.sandbox.start(ctx, spec)
	return s, err
}
