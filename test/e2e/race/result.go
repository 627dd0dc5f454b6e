package race

import (
	"fmt"
	"time"
)

// Waits are those of pods from their creation to their node, in seconds.
type Waits struct {
	Pods int     `json:"pods"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// Measured is what was seen of one contestant.
type Measured struct {
	// USD is what all nodes have cost for as long as there were nodes; USDWithStarts also counts the time from the order
	// of a machine to its node, as clouds do. BoundUSD is what nodes for the pods that had one cost at least.
	USD           float64 `json:"usd"`
	USDWithStarts float64 `json:"usdWithStarts"`
	BoundUSD      float64 `json:"boundUsd"`
	Waits         Waits   `json:"podWaitSeconds"`
	LeftWaiting   int     `json:"leftWaiting"`
	Evictions     int     `json:"evictions"`
	NodesAdded    int     `json:"nodesAdded"`
	NodesRemoved  int     `json:"nodesRemoved"`
	// MemoryLimitsMost is the most that limits of memory were at any time of what a node has.
	MemoryLimitsMost float64  `json:"memoryLimitsMost,omitempty"`
	Series           []Moment `json:"series"`
}

// Run is one contestant in one scenario.
type Run struct {
	Contestant string `json:"contestant"`
	// Simulated: by the simulator, and not on a control plane.
	Simulated bool   `json:"simulated"`
	Settings  string `json:"settings"`
	Measured
}

// Heat is one scenario with all that ran through it.
type Heat struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"`
	Marks    []Mark  `json:"marks"`
	Runs     []*Run  `json:"runs"`
}

// Result is what the race prints.
type Result struct {
	Date    string  `json:"date"`
	Machine string  `json:"machine"`
	Command string  `json:"command"`
	Heats   []*Heat `json:"heats"`
}

// At returns the moment at a time: the last one before it.
func (m *Measured) At(at time.Duration) (moment Moment) {
	for _, candidate := range m.Series {
		if candidate.Seconds <= at.Seconds() {
			moment = candidate
		}
	}
	return moment
}

// AtRest is the cost over the bound in the last tenth of the time.
func (m *Measured) AtRest() float64 {
	if len(m.Series) == 0 {
		return 0
	}
	end := m.Series[len(m.Series)-1].Seconds
	usd, least := 0.0, 0.0
	for _, moment := range m.Series {
		if moment.Seconds >= end*0.9 {
			usd, least = usd+moment.USDPerHour, least+moment.BoundUSDPerHour
		}
	}
	if least == 0 {
		return 0
	}
	return usd / least
}

// Name is the name of a run for people.
func (r *Run) Name() string {
	if r.Simulated {
		return fmt.Sprintf("%s, simulated", r.Contestant)
	}
	return r.Contestant
}
