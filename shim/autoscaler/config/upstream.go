package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// UpstreamKind says what becomes of a flag of Cluster Autoscaler.
type UpstreamKind string

const (
	// Setting is a flag that is a setting here under the same name.
	Setting UpstreamKind = "the same"
	// Meaning is a flag that changes settings of other names.
	Meaning UpstreamKind = "another name"
	// Always is a flag for what is done here in any case.
	Always UpstreamKind = "always so"
	// NoEffect is a flag that is taken and does nothing.
	NoEffect UpstreamKind = "no effect"
)

// UpstreamFlag is a flag of Cluster Autoscaler.
type UpstreamFlag struct {
	Name string
	Kind UpstreamKind
	// Text says which settings it changes, or why it changes none.
	Text string

	boolean bool
	// silent is the value that asks for what is done here in any case: nothing is said of it.
	silent string
	apply  func(c *Configuration, values []string) error
}

// text is a flag without effect that takes a value.
func text(name, why string) UpstreamFlag { return UpstreamFlag{Name: name, Kind: NoEffect, Text: why} }

// boolean is a switch without effect. Nothing is said of one that is off.
func boolean(name, why string) UpstreamFlag {
	return UpstreamFlag{Name: name, Kind: NoEffect, Text: why, boolean: true, silent: "false"}
}

// always is a flag whose value `silent` asks for what is done in any case.
func always(name, silent, why string) UpstreamFlag {
	return UpstreamFlag{Name: name, Kind: Always, Text: why, boolean: silent == "true", silent: silent}
}

// meaning is a flag that changes settings of other names.
func meaning(name, what string, apply func(*Configuration, []string) error) UpstreamFlag {
	return UpstreamFlag{Name: name, Kind: Meaning, Text: what, apply: apply}
}

// switching is a switch that changes settings of other names.
func switching(name, what string, apply func(*Configuration, bool)) UpstreamFlag {
	return UpstreamFlag{Name: name, Kind: Meaning, Text: what, boolean: true,
		apply: func(c *Configuration, values []string) error {
			apply(c, last(values) == "true")
			return nil
		}}
}

func last(values []string) string { return values[len(values)-1] }

// UpstreamFlags returns what becomes of the flags of Cluster Autoscaler, by name, beside those that only have to do
// with the log and the kubeconfig file.
func UpstreamFlags() []UpstreamFlag {
	all := slices.Clone(upstreamFlags)
	for _, s := range settingsOf(new(Default()), "") {
		all = append(all, UpstreamFlag{Name: s.flag, Kind: Setting, Text: s.tag.Get("help")})
	}
	slices.SortFunc(all, func(a, b UpstreamFlag) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// given are the values of a flag of Cluster Autoscaler, in the order in which they were given.
type given struct {
	boolean bool
	values  []string
}

// Set adds a value.
func (g *given) Set(value string) error {
	if g.boolean {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		value = strconv.FormatBool(on)
	}
	g.values = append(g.values, value)
	return nil
}

// String returns the values.
func (g *given) String() string { return strings.Join(g.values, ",") }

// Type returns what help calls a value.
func (g *given) Type() string {
	if g.boolean {
		return "bool"
	}
	return "string"
}

// addUpstreamFlags adds the flags of the table, which help does not show.
func addUpstreamFlags(set *pflag.FlagSet) map[string]*given {
	all := map[string]*given{}
	for _, f := range upstreamFlags {
		all[f.Name] = &given{boolean: f.boolean}
		flag := set.VarPF(all[f.Name], f.Name, "", f.Text)
		flag.Hidden = true
		if f.boolean {
			flag.NoOptDefVal = "true"
		}
	}
	return all
}

// applyUpstream changes a configuration as the flags of the table say, in the order of the table, and returns a line
// for each that has no effect.
func (f *Flags) applyUpstream(c *Configuration) (warnings []string, err error) {
	for _, flag := range upstreamFlags {
		if f.upstream[flag.Name] == nil {
			continue // not asked for
		}
		values := f.upstream[flag.Name].values
		switch {
		case len(values) == 0 || flag.silent != "" && last(values) == flag.silent:
		case flag.apply != nil:
			if err := flag.apply(c, values); err != nil {
				return nil, fmt.Errorf("--%s: %w", flag.Name, err)
			}
		default:
			warnings = append(warnings, fmt.Sprintf("%s has no effect: %s", asGiven(flag.Name, values), flag.Text))
		}
	}
	return warnings, nil
}

// asGiven returns a flag with its values, as on a command line.
func asGiven(name string, values []string) string {
	var all []string
	for _, value := range slices.Compact(slices.Clone(values)) {
		all = append(all, "--"+name+"="+value)
	}
	return strings.Join(all, " ")
}

// withoutScaleDown takes scale-down from the decisions, and what needs it.
func (c *Configuration) withoutScaleDown(off bool) {
	if !off {
		return
	}
	c.Decisions = slices.DeleteFunc(slices.Clone(c.Decisions), func(decision string) bool {
		return decision == ScaleDownDecision || decision == ReplaceDecision || decision == DownscaleOrderDecision
	})
}
