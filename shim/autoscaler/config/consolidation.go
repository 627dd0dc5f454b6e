package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/timewindow"
)

// Consolidation says which moves make the cluster cheaper enough: the decision ReplaceDecision.
type Consolidation struct {
	LeastSaving        float64  `json:"leastSaving" range:"0:1000000" help:"nodes are replaced by cheaper ones if that saves at least this many US dollars per hour"`
	LeastSavingPercent float64  `json:"leastSavingPercent" range:"0:100" help:"and so much of what the nodes cost that are replaced"`
	PodDisruptionCost  float64  `json:"podDisruptionCost" range:"0:1000000" help:"what it costs to disturb a pod once, in US dollars"`
	PodDisruptionCosts []string `json:"podDisruptionCosts" range:":64" help:"other costs for pods from some priority on: PRIORITY=USD, such as 1000=0.01"`
	PaybackHours       float64  `json:"paybackHours" range:"0.000001:8760" help:"a move saves what it costs to disturb its pods within so many hours, or within the time for which the load has stood still, a week at most"`
	MaxNodesPerMove    int      `json:"maxNodesPerMove" range:"1:10000" help:"nodes that are replaced by one move at most"`
	LeastSpotGroups    int      `json:"leastSpotGroups" range:"0:2147483647" help:"spot nodes replace spot nodes only if this many spot groups cost less than the removed nodes"`
	MaxNodesAtOnce     int      `json:"maxNodesAtOnce" range:"1:2147483647" help:"nodes that are replaced at once"`
	MaxPodsAtOnce      int      `json:"maxPodsAtOnce" range:"1:2147483647" help:"pods that are disturbed at once, as budgets let them go"`
	ReplacementWindows []string `json:"replacementWindows" range:":64" help:"moves begin only in these windows: the five fields of a cron schedule, for how long, and a time zone (UTC without one), such as '0 22 * * 1-5 6h Europe/Berlin'; none: at any time"`
	ReplacementRest    Duration `json:"replacementRest" help:"for so long nodes stay that came in the place of others, or took their pods"`
}

func defaultConsolidation() Consolidation {
	return Consolidation{LeastSaving: 0.001, LeastSavingPercent: 2, PodDisruptionCost: 0.1, PaybackHours: 1.5,
		MaxNodesPerMove: 24, LeastSpotGroups: 15, MaxNodesAtOnce: 10, MaxPodsAtOnce: 200,
		ReplacementRest: duration(30 * time.Minute)}
}

func (s *Consolidation) check() error {
	_, err1 := s.Windows()
	_, err2 := s.CostsByPriority()
	return cmp.Or(err1, err2)
}

// Windows returns those in which moves begin; none: at any time.
func (s *Consolidation) Windows() ([]timewindow.Window, error) {
	return readEach("consolidation.replacementWindows", s.ReplacementWindows, timewindow.Parse)
}

// CostsByPriority returns what disturbed pods cost that have a priority of at least some value.
func (s *Consolidation) CostsByPriority() ([]*loadlinev1.DisturbancePrice, error) {
	const path = "consolidation.podDisruptionCosts"
	costs, err := readEach(path, s.PodDisruptionCosts, func(text string) (*loadlinev1.DisturbancePrice, error) {
		from, usd, _ := strings.Cut(text, "=")
		priority, notPriority := strconv.ParseInt(strings.TrimSpace(from), 10, 32)
		cost, notCost := strconv.ParseFloat(strings.TrimSpace(usd), 64)
		if notPriority != nil || notCost != nil || !(cost >= 0 && cost <= 1e6) {
			return nil, fmt.Errorf("%q must be PRIORITY=USD with 0 to 1000000 US dollars, such as 1000=0.01", text)
		}
		return &loadlinev1.DisturbancePrice{FromPriority: int32(priority), Usd: cost}, nil
	})
	return costs, cmp.Or(err, once(path, costs, (*loadlinev1.DisturbancePrice).GetFromPriority))
}
