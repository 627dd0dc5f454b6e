package harness

import (
	"context"
	"errors"
)

// A Controller is a running program of another project that acts through the API server.
type Controller struct {
	*Process
	cluster *Cluster
	spec    processSpec
}

// startController starts a program and waits until it is ready.
func (c *Cluster) startController(ctx context.Context, spec processSpec) (*Controller, error) {
	process, err := c.sandbox.start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &Controller{Process: process, cluster: c, spec: spec}, nil
}

// Restart starts the program again after it was stopped or killed.
func (c *Controller) Restart(ctx context.Context) error {
	if c.Running() {
		return errors.New(c.Name + " still runs")
	}
	c.cluster.sandbox.forget(c.Process)
	process, err := c.cluster.sandbox.start(ctx, c.spec)
	if err == nil {
		c.Process = process
	}
	return err
}
