package config

import (
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
)

// Loaded is what the files say that a configuration names.
type Loaded struct {
	// Prices are what nodes cost of which the provider tells no price.
	Prices *loadlinev1.PriceModel
	// Ranking says how node groups are ranked; nil: they grow together, by a joint plan. With a Ranking, Priorities are
	// those of the groups.
	Ranking    *loadlinev1.RankPolicy
	Priorities ranking.Priorities
	// Fit says how filters are configured; nil: as by default.
	Fit *loadlinev1.FitOptions
	// Warnings name what of the scheduler's configuration plans do not see.
	Warnings []string
}

// ReadFiles reads the files that the configuration names, but those of groups that are sized; see Sizing.Load.
func (c *Configuration) ReadFiles() (*Loaded, error) {
	policy, ranks, err := c.ScaleUp.Ranking()
	if err != nil {
		return nil, err
	}
	out := &Loaded{Prices: c.ScaleUp.PriceModel(policy)}
	if ranks {
		out.Ranking, out.Priorities = policy.Proto(), policy.Matcher()
	}
	scheduler, err := c.Filters.Scheduler()
	if err != nil {
		return nil, fmt.Errorf("filters: %w", err)
	}
	out.Fit, out.Warnings = scheduler.Fit, scheduler.Warnings
	return out, nil
}
