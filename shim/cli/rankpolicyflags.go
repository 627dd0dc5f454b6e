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
}

// addRankPolicyFlags adds the flags; the one for the file has a name of the command's choice.
func addRankPolicyFlags(flags *pflag.FlagSet, f *rankPolicyFlags, file string) {
	flags.StringVar(&f.file, file, "", "file with a rank policy, YAML or JSON; flags override what it says")
	flags.StringVar(&f.preset, "rank-preset", "",
		"bundle of settings: "+ranking.DefaultPreset+" (default), what it ships, or proposal")
	flags.StringSliceVar(&f.strategies, "strategies", nil, "what decides between node groups, one after the other: "+
		"price (default), least-waste, most-pods, least-nodes, priority, joint")
	flags.StringArrayVar(&f.catalogues, "prices", nil,
		"price list, CSV, asked after those of the policy; may be repeated")
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
	return p, nil
}

// given says whether the command line holds any.
func (f *rankPolicyFlags) given() bool { return f.ranks() || len(f.catalogues) > 0 }

// ranks says whether the command line holds any that says how to rank, and not what nodes cost alone.
func (f *rankPolicyFlags) ranks() bool {
	return f.file != "" || f.preset != "" || len(f.strategies) > 0
}
