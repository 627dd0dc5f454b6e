package race

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Names of the scenarios.
const (
	Services = "services"
	Day      = "day"
	Batch    = "batch"
	Limits   = "limits"
	Smoke    = "smoke"
)

// Names are the scenarios that there are.
func Names() []string { return []string{Services, Day, Batch, Limits, Smoke} }

const second = time.Second

// Draw draws the load of a scenario. The same seed gives the same load.
func Draw(name string, seed uint64) (*Scenario, error) {
	d := &drawn{rand: rand.New(rand.NewPCG(seed, 0x10ad)),
		Scenario: Scenario{Name: name, Seed: seed, NodeStart: 8 * second}}
	types := []string{"c5.large", "c5.xlarge", "c5.2xlarge", "c5.4xlarge", "m5.large", "m5.xlarge", "m5.2xlarge",
		"m5.4xlarge", "r5.large", "r5.xlarge", "r5.2xlarge", "r5.4xlarge"}
	switch name {
	case Services:
		d.services()
	case Day:
		d.day()
	case Batch:
		types = append(types, "g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge")
		d.batch()
	case Limits:
		d.services()
		d.limits()
	case Smoke:
		d.smoke()
	default:
		return nil, fmt.Errorf("no scenario %q, only %v", name, Names())
	}
	var err error
	if d.Types, err = Types(types...); err != nil {
		return nil, err
	}
	if name == Batch {
		d.Types = WithSpot(d.Types, spotShare)
	}
	return &d.Scenario, d.Check()
}

// spotShare is what spot machines cost of the list price, about as in July 2026.
const spotShare = 0.38

type drawn struct {
	Scenario
	rand *rand.Rand
}

// request draws cpu from 0.25 to 3 and memory from 1 to 8 GiB, small ones more often than large ones.
func (d *drawn) request() Request {
	cpus := []int64{250, 250, 500, 500, 500, 1000, 1000, 2000, 3000}
	gibs := []int64{1, 1, 2, 2, 2, 4, 4, 8}
	return Request{MilliCPU: cpus[d.rand.IntN(len(cpus))], MemoryMiB: 1024 * gibs[d.rand.IntN(len(gibs))]}
}

// between draws a number from `low` to `high`.
func (d *drawn) between(low, high int) int { return low + d.rand.IntN(high-low+1) }

func (d *drawn) mark(at time.Duration, name string) { d.Marks = append(d.Marks, Mark{at, name}) }

// services is the load of the first race: four services and eight batch jobs that come, grow, shrink and go.
func (d *drawn) services() {
	d.Duration = 400 * second
	for i := range 4 {
		replicas := d.between(20, 38)
		apart := i == 3
		if apart {
			replicas = d.between(8, 12)
		}
		s := Service{Name: fmt.Sprintf("service-%d", i+1), Request: d.request(), Apart: apart, MaxUnavailablePercent: 20}
		if apart { // such services are small, or each of their pods had a machine for itself
			s.Request = Request{MilliCPU: 500, MemoryMiB: 1024}
		}
		s.Steps = []Step{{0, replicas}, {160 * second, replicas * 85 / 100}, {230 * second, replicas * 160 / 100},
			{310 * second, max(1, replicas*30/100)}}
		d.Services = append(d.Services, s)
	}
	for i := range 8 {
		d.Jobs = append(d.Jobs, Job{Name: fmt.Sprintf("job-%d", i+1), Request: d.request(),
			At: time.Duration(7+d.between(0, 4)) * loadStep, Pods: d.between(6, 20),
			Run: time.Duration(d.between(25, 60)) * second})
	}
	for _, m := range []Mark{{0, "load"}, {70 * second, "batch"}, {160 * second, "batch gone"}, {230 * second, "burst"},
		{310 * second, "evening"}} {
		d.mark(m.At, m.Name)
	}
}

// limits gives all pods a limit of memory: half of them their request, the others one and a half times or twice that.
func (d *drawn) limits() {
	draw := func(r *Request) {
		percent := []int64{100, 100, 150, 200}
		r.LimitMemoryMiB = r.MemoryMiB * percent[d.rand.IntN(len(percent))] / 100
	}
	for i := range d.Services {
		draw(&d.Services[i].Request)
	}
	for i := range d.Jobs {
		draw(&d.Jobs[i].Request)
	}
}

// day is a day in eight minutes: services follow the hours, one of which is 20 s, and are rolled out twice.
func (d *drawn) day() {
	const hour = 20 * second
	d.Duration = 24 * hour
	for i := range 6 {
		peak, lowest := d.between(16, 40), d.between(20, 50)
		s := Service{Name: fmt.Sprintf("service-%d", i+1), Request: d.request(), MaxUnavailablePercent: 20,
			RolloutEvery: time.Duration(7+i) * hour}
		shift := d.between(-2, 2)
		for h := range 24 {
			angle := 2 * math.Pi * float64(h-14-shift) / 24
			share := (100 - float64(lowest)*(1-math.Cos(angle))) / 100
			replicas := max(1, int(math.Round(float64(peak)*share)))
			if n := len(s.Steps); n == 0 || s.Steps[n-1].Replicas != replicas {
				s.Steps = append(s.Steps, Step{time.Duration(h) * hour, replicas})
			}
		}
		d.Services = append(d.Services, s)
	}
	for h := 0; h < 24; h += 6 {
		d.mark(time.Duration(h)*hour, fmt.Sprintf("%02d:00", h))
	}
}

// batch is waves of jobs that may run on spot machines, some with GPUs, beside two services that may not.
func (d *drawn) batch() {
	d.Duration = 400 * second
	for i := range 2 {
		s := Service{Name: fmt.Sprintf("service-%d", i+1), Request: d.request(), MaxUnavailablePercent: 20}
		s.OnDemand = true
		s.Steps = []Step{{0, d.between(10, 20)}}
		d.Services = append(d.Services, s)
	}
	for wave := range 3 {
		at := time.Duration(2+11*wave) * loadStep
		d.mark(at, fmt.Sprintf("wave %d", wave+1))
		for i := range 5 {
			j := Job{Name: fmt.Sprintf("wave-%d-job-%d", wave+1, i+1), Request: d.request(),
				At: at + time.Duration(d.between(0, 2))*loadStep, Pods: d.between(8, 24),
				Run: time.Duration(d.between(30, 80)) * second}
			if i == 4 {
				j.Request, j.Pods = Request{MilliCPU: 3000, MemoryMiB: 8192, GPUs: 1}, d.between(2, 5)
			}
			d.Jobs = append(d.Jobs, j)
		}
	}
}

// smoke is a minute with few pods, which shows that all works.
func (d *drawn) smoke() {
	d.Duration = 60 * second
	d.NodeStart = 3 * second
	d.Services = []Service{{Name: "service-1", Request: Request{MilliCPU: 1000, MemoryMiB: 2048},
		MaxUnavailablePercent: 20, Steps: []Step{{0, 6}, {30 * second, 2}}}}
	d.Jobs = []Job{{Name: "job-1", Request: Request{MilliCPU: 500, MemoryMiB: 1024}, At: 10 * second, Pods: 4,
		Run: 10 * second}}
	d.mark(0, "load")
	d.mark(30*second, "evening")
}

// Replicas returns how many replicas a service wants at a time.
func (s *Service) Replicas(at time.Duration) (replicas int) {
	for _, step := range s.Steps {
		if step.At <= at {
			replicas = step.Replicas
		}
	}
	return replicas
}

// Peak returns the most pods that the load wants at once, were no pod ever late.
func (s *Scenario) Peak() (peak int) {
	for at := time.Duration(0); at < s.Duration; at += loadStep {
		pods := 0
		for i := range s.Services {
			pods += s.Services[i].Replicas(at)
		}
		for _, job := range s.Jobs {
			if job.At <= at && at < job.At+job.Run {
				pods += job.Pods
			}
		}
		peak = max(peak, pods)
	}
	return peak
}
