package config

import (
	"errors"
	"fmt"
	"time"
)

// LeaderElection is as in other components of Kubernetes.
type LeaderElection struct {
	LeaderElect   bool     `json:"leaderElect" flag:"leader-elect" help:"only one of several acts; without it there must be only one"`
	LeaseDuration Duration `json:"leaseDuration" flag:"leader-elect-lease-duration" range:"0s:" help:"how long others wait for a leader that is gone"`
	RenewDeadline Duration `json:"renewDeadline" flag:"leader-elect-renew-deadline" range:"0s:" help:"how long the leader tries to stay it, before it ends"`
	RetryPeriod   Duration `json:"retryPeriod" flag:"leader-elect-retry-period" range:"0s:" help:"between two attempts"`
	ResourceName  string   `json:"resourceName" flag:"leader-elect-resource-name" help:"name of the lease"`
}

func (l *LeaderElection) check() error {
	if !l.LeaderElect {
		return nil
	}
	if l.ResourceName == "" || l.RetryPeriod.Duration <= 0 || l.RenewDeadline.Duration*5 <= l.RetryPeriod.Duration*6 ||
		l.LeaseDuration.Duration <= l.RenewDeadline.Duration {
		return errors.New("leaderElection: needs a resourceName, and leaseDuration > renewDeadline > 1.2 * " +
			"retryPeriod > 0")
	}
	return nil
}

// mostLag is how late a healthy watch may be.
const mostLag = 5 * time.Second

// checkViewAge checks the age of the view against the lease, whose renewals show how old the view is.
func (c *Configuration) checkViewAge() error {
	e, age := &c.LeaderElection, c.ScaleDown.MaxViewAge.Duration
	if e.LeaderElect && age < 3*e.RetryPeriod.Duration+mostLag {
		return fmt.Errorf("scaleDown.maxViewAge: %v is below three times leaderElection.retryPeriod and %v: "+
			"nodes would seldom go", age, mostLag)
	}
	return nil
}
