package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/timewindow"
)

const (
	mostWindows = 64
	mostCosts   = 64
)

// Consolidation says which moves make the cluster cheaper enough: the decision ReplaceDecision.
type Consolidation struct {
	LeastSaving        float64  `json:"leastSaving" help:"nodes are replaced by cheaper ones if that saves so many US dollars per hour"`
	LeastSavingPercent float64  `json:"leastSavingPercent" help:"and so much of what the nodes cost that are replaced"`
	PodDisruptionCost  float64  `json:"podDisruptionCost" help:"what it costs to disturb a pod once, in US dollars; with the decision replace, drains pay it as well"`
	PodDisruptionCosts []string `json:"podDisruptionCosts" help:"other costs for pods from some priority on: PRIORITY=USD, such as 1000=0.01"`
	PaybackHours       float64  `json:"paybackHours" help:"within so many hours a move, or with the decision replace any drain, saves what it costs to disturb its pods"`
	MaxNodesPerMove    int      `json:"maxNodesPerMove" help:"nodes that are replaced by one move at most"`
	LeastSpotGroups    int      `json:"leastSpotGroups" help:"spot nodes come in the place of spot nodes only where so many spot groups cost less than those that go"`
	MaxNodesAtOnce     int      `json:"maxNodesAtOnce" help:"nodes that are replaced at once"`
	MaxPodsAtOnce      int      `json:"maxPodsAtOnce" help:"pods that are disturbed at once, as budgets let them go"`
	ReplacementWindows []string `json:"replacementWindows" help:"moves begin only in these windows: the five fields of a cron schedule, for how long, and a time zone (UTC without one), such as '0 22 * * 1-5 6h Europe/Berlin'; none: at any time"`
	ReplacementRest    Duration `json:"replacementRest" help:"for so long nodes stay that came in the place of others, or took their pods"`
}

func defaultConsolidation() Consolidation {
	return Consolidation{LeastSaving: 0.001, LeastSavingPercent: 2, PodDisruptionCost: 0.1, PaybackHours: 1.5,
		MaxNodesPerMove: 24, LeastSpotGroups: 15, MaxNodesAtOnce: 10, MaxPodsAtOnce: 200,
		ReplacementRest: duration(30 * time.Minute)}
}

func (s *Consolidation) check() error {
	for key, value := range map[string]float64{"leastSaving": s.LeastSaving, "podDisruptionCost": s.PodDisruptionCost} {
		if !(value >= 0 && value <= 1e6) {
			return fmt.Errorf("consolidation.%s: %v must be between 0 and 1000000", key, value)
		}
	}
	if !(s.LeastSavingPercent >= 0 && s.LeastSavingPercent <= 100) {
		return fmt.Errorf("consolidation.leastSavingPercent: %v must be between 0 and 100", s.LeastSavingPercent)
	}
	if !(s.PaybackHours >= 1e-6 && s.PaybackHours <= 8760) {
		return fmt.Errorf("consolidation.paybackHours: %v must be above 0 and at most 8760", s.PaybackHours)
	}
	if s.MaxNodesPerMove < 1 || s.MaxNodesPerMove > 10_000 {
		return fmt.Errorf("consolidation.maxNodesPerMove: %d must be between 1 and 10000", s.MaxNodesPerMove)
	}
	if s.LeastSpotGroups < 0 || s.LeastSpotGroups > math.MaxInt32 {
		return fmt.Errorf("consolidation.leastSpotGroups: %d is out of range", s.LeastSpotGroups)
	}
	for key, value := range map[string]int{"maxNodesAtOnce": s.MaxNodesAtOnce, "maxPodsAtOnce": s.MaxPodsAtOnce} {
		if value < 1 || value > math.MaxInt32 {
			return fmt.Errorf("consolidation.%s: %d must be at least 1", key, value)
		}
	}
	if _, err := s.Windows(); err != nil {
		return err
	}
	if _, err := s.CostsByPriority(); err != nil {
		return err
	}
	return checkDurations("consolidation", s)
}

// Windows returns those in which moves begin; none: at any time.
func (s *Consolidation) Windows() (windows []timewindow.Window, err error) {
	if len(s.ReplacementWindows) > mostWindows {
		return nil, fmt.Errorf("consolidation.replacementWindows: %d are more than %d", len(s.ReplacementWindows),
			mostWindows)
	}
	for _, text := range s.ReplacementWindows {
		window, err := timewindow.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("consolidation.replacementWindows: %w", err)
		}
		windows = append(windows, window)
	}
	return windows, nil
}

// CostsByPriority returns what disturbed pods cost that have a priority of at least some value.
func (s *Consolidation) CostsByPriority() (costs []*loadlinev1.DisturbancePrice, err error) {
	if len(s.PodDisruptionCosts) > mostCosts {
		return nil, fmt.Errorf("consolidation.podDisruptionCosts: %d are more than %d", len(s.PodDisruptionCosts), mostCosts)
	}
	for _, text := range s.PodDisruptionCosts {
		from, usd, _ := strings.Cut(text, "=")
		priority, notPriority := strconv.ParseInt(strings.TrimSpace(from), 10, 32)
		cost, notCost := strconv.ParseFloat(strings.TrimSpace(usd), 64)
		if notPriority != nil || notCost != nil || !(cost >= 0 && cost <= 1e6) {
			return nil, fmt.Errorf("consolidation.podDisruptionCosts: %q must be PRIORITY=USD with 0 to 1000000 US "+
				"dollars, such as 1000=0.01", text)
		}
		known := func(c *loadlinev1.DisturbancePrice) bool { return c.GetFromPriority() == int32(priority) }
		if slices.ContainsFunc(costs, known) {
			return nil, fmt.Errorf("consolidation.podDisruptionCosts: priority %d is there twice", priority)
		}
		costs = append(costs, &loadlinev1.DisturbancePrice{FromPriority: int32(priority), Usd: cost})
	}
	return costs, nil
}
