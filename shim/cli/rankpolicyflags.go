package cli

import (
	"github.com/spf13/pflag"

	"loadline.dev/shim/ranking"
)

// rankPolicyFlags are the ways to say how to rank node groups.
type rankPolicyFlags struct {
	file, preset string
	strategies   []string
	catalogues   []string
	spotFactor   float64
}

// addRankPolicyFlags adds the flags; the one for the file has a name of the command's choice.
func addRankPolicyFlags(flags *pflag.FlagSet, f *rankPolicyFlags, file string) {
	flags.StringVar(&f.file, file, "", "file with a rank policy, YAML or JSON; flags override what it says")
	flags.StringVar(&f.preset, "rank-preset", "",
		"bundle of settings: "+ranking.DefaultPreset+" (default), what it ships, or proposal")
	flags.StringSliceVar(&f.strategies, "strategies", nil, "what decides between node groups, one after the other: "+
		"price (default), least-waste, most-pods, least-nodes, priority, joint")
	flags.StringArrayVar(&f.catalogues, "prices", nil,
		"price list, CSV or CSV.gz, asked after those of the policy; may be repeated")
	addSpotFactorFlag(flags, &f.spotFactor)
}

// policy returns the policy of file and flags, checked.
func (f *rankPolicyFlags) policy() (*ranking.Policy, error) {
	p := ranking.Default()
	if f.file != "" {
		var err error
		if p, err = ranking.Load(f.file); err != nil {
			return nil, err
		}
	}
	if f.preset != "" {
		p.Preset = f.preset
	}
	if len(f.strategies) > 0 {
		p.Strategies = f.strategies
	}
	if err := p.Validate(); err != nil {
		return nil, usageError{err}
	}
	for _, name := range f.catalogues {
		if err := p.AddCatalogue(name); err != nil {
			return nil, err
		}
	}
	return p, setSpotFactor(p, f.spotFactor)
}

// addSpotFactorFlag adds what overrides the average share.
func addSpotFactorFlag(flags *pflag.FlagSet, factor *float64) {
	flags.Float64Var(factor, "spot-factor", 0, "share of the on-demand price that a spot node costs of which no price "+
		"list has the spot price; 0: the factor of a list of GCE, else 0.4, an average")
}

// setSpotFactor writes the flag into a policy; 0 leaves what it says.
func setSpotFactor(p *ranking.Policy, factor float64) error {
	if !(factor >= 0 && factor <= 1) {
		return usagef("--spot-factor %v: must be in [0, 1]", factor)
	}
	if factor > 0 {
		p.Prices.SpotFactor = &factor
	}
	return nil
}

// given says whether the command line holds any.
func (f *rankPolicyFlags) given() bool { return f.ranks() || len(f.catalogues) > 0 || f.spotFactor > 0 }

// ranks says whether the command line holds any that says how to rank, and not what nodes cost alone.
func (f *rankPolicyFlags) ranks() bool {
	return f.file != "" || f.preset != "" || len(f.strategies) > 0
}
