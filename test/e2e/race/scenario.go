// Package race lets autoscalers run one after the other through the same load, on a real control plane with machines
// of the same types, prices and start times, and measures them from outside: by what the API server tells of nodes and
// pods.
package race

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is a load and what it may run on. All times are since its start.
type Scenario struct {
	Name     string
	Seed     uint64
	Duration time.Duration
	// NodeStart is from the order of a machine to its node.
	NodeStart time.Duration
	Types     []Type
	Services  []Service
	Jobs      []Job
	// Marks are for people: what begins when.
	Marks []Mark
}

// Type is a type of machines. Allocatable is what a node of it offers to pods.
type Type struct {
	Name                            string
	MilliCPU, MemoryMiB, Pods, GPUs int64
	USDPerHour                      float64
	Spot                            bool
}

// Group is the name of the node group whose machines are of this type.
func (t *Type) Group() string {
	name := strings.ReplaceAll(t.Name, ".", "-")
	if t.Spot {
		name += "-spot"
	}
	return name
}

// CapacityType is the value of the label of that name.
func (t *Type) CapacityType() string {
	if t.Spot {
		return "spot"
	}
	return "on-demand"
}

// Request is what one pod asks for.
type Request struct {
	MilliCPU, MemoryMiB, GPUs int64
	// LimitMemoryMiB is its limit of memory; 0: it has none.
	LimitMemoryMiB int64
	// OnDemand: not on spot machines.
	OnDemand bool
}

// Service is a Deployment with a disruption budget.
type Service struct {
	Name string
	Request
	// Apart: no two of its pods are on one node.
	Apart bool
	// MaxUnavailablePercent is its disruption budget; 0: it has none.
	MaxUnavailablePercent int
	// Steps are how many replicas it wants from when on. In order of time; before the first: none.
	Steps []Step
	// RolloutEvery is the time between two new revisions; 0: there are none.
	RolloutEvery time.Duration
}

// Step is a number of replicas from a time on.
type Step struct {
	At       time.Duration
	Replicas int
}

// Job is a Job of several pods that all start at once, run for a time and end.
type Job struct {
	Name string
	Request
	At   time.Duration
	Pods int
	Run  time.Duration
}

// Mark is a moment with a name.
type Mark struct {
	At   time.Duration
	Name string
}

// loadStep is what all times of a load are multiples of: those of the simulator are.
const loadStep = 10 * time.Second

// Check returns the first thing that is wrong.
func (s *Scenario) Check() error {
	names := map[string]bool{}
	check := func(name string, request *Request, times ...time.Duration) error {
		if names[name] || name == "" {
			return fmt.Errorf("workload %q: occurs twice, or has no name", name)
		}
		names[name] = true
		if request.LimitMemoryMiB != 0 && request.LimitMemoryMiB < request.MemoryMiB {
			return fmt.Errorf("workload %s: its limit of memory is below its request", name)
		}
		if request.MilliCPU < 1 || request.MemoryMiB < 1 || !slices.ContainsFunc(s.Types, request.fits) {
			return fmt.Errorf("workload %s: no type of machines has room for one of its pods", name)
		}
		for _, at := range times {
			if at%loadStep != 0 || at < 0 {
				return fmt.Errorf("workload %s: %v is not a multiple of %v", name, at, loadStep)
			}
		}
		return nil
	}
	for i := range s.Services {
		service := &s.Services[i]
		times := []time.Duration{service.RolloutEvery}
		for _, step := range service.Steps {
			times = append(times, step.At)
		}
		if !slices.IsSorted(times[1:]) {
			return fmt.Errorf("workload %s: its steps are not in order of time", service.Name)
		}
		if err := check(service.Name, &service.Request, times...); err != nil {
			return err
		}
	}
	for i := range s.Jobs {
		if err := check(s.Jobs[i].Name, &s.Jobs[i].Request, s.Jobs[i].At); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) fits(t Type) bool {
	return r.MilliCPU <= t.MilliCPU && r.MemoryMiB <= t.MemoryMiB && r.GPUs <= t.GPUs && !(r.OnDemand && t.Spot)
}
