package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/providers"
	"loadline.dev/shim/slack"
)

// Flags override what a file says.
type Flags struct {
	set    *pflag.FlagSet
	values Configuration
	// own are the paths of the settings that have a flag here; others may have flags of the same name.
	own map[string]bool
	// empties is --max-empty-bulk-delete.
	empties int
	// expander is --expander.
	expander string
	// upstream are the flags of Cluster Autoscaler that are no settings, by name.
	upstream map[string]*given
	// base is what holds without file and flags.
	base Configuration
	// dropIn says that the program replaces Cluster Autoscaler: what its own command line may say is no error.
	dropIn bool
}

// AddFlags adds a flag for each setting, and for each flag of Cluster Autoscaler. The defaults are those of Default, or
// of DropIn where the program replaces Cluster Autoscaler.
func AddFlags(set *pflag.FlagSet, dropIn bool) *Flags {
	base := Default()
	if dropIn {
		base = DropIn()
	}
	f := addFlags(set, base, func(setting) bool { return true })
	f.dropIn = dropIn
	set.StringVar(&f.expander, "expander", "", "Cluster Autoscaler's name of --strategies: what decides between node "+
		"groups, one after the other; without either groups grow together, by the cheapest plan")
	set.IntVar(&f.empties, "max-empty-bulk-delete", 10, "older name of --max-scale-down-parallelism")
	f.upstream = addUpstreamFlags(set)
	return f
}

// AddSomeFlags adds a flag for each setting whose flag begins with one of these.
func AddSomeFlags(set *pflag.FlagSet, prefixes ...string) *Flags {
	return addFlags(set, Default(), func(s setting) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s.flag, prefix) })
	})
}

// AddFlagsOf adds a flag for each setting of which `has` is true, by its path: the key with those of its sections.
func AddFlagsOf(set *pflag.FlagSet, base Configuration, has func(path string) bool) *Flags {
	return addFlags(set, base, func(s setting) bool { return has(s.path) })
}

// AddFlagsTo adds a flag for each setting of one section, which the flags write to.
func AddFlagsTo(set *pflag.FlagSet, section any) {
	for _, s := range settingsOf(section, "") {
		addFlag(set, s)
	}
}

// Paths returns the path of each setting, in the order in which they are declared.
func Paths() (all []string) {
	c := Default()
	for _, s := range settingsOf(&c, "") {
		all = append(all, s.path)
	}
	return all
}

func addFlags(set *pflag.FlagSet, base Configuration, wanted func(setting) bool) *Flags {
	f := &Flags{set: set, values: base, base: base, own: map[string]bool{}}
	for _, s := range settingsOf(&f.values, "") {
		if !wanted(s) {
			continue
		}
		f.own[s.path] = true
		addFlag(set, s)
	}
	return f
}

// addFlag adds the flag of a setting, which it writes to.
func addFlag(set *pflag.FlagSet, s setting) {
	flag, help := s.flag, s.tag.Get("help")
	switch v := s.value.Addr().Interface().(type) {
	case *string:
		set.StringVar(v, flag, *v, help)
	case *[]string:
		if s.tag.Get("entries") == "whole" { // they may have commas
			set.StringArrayVar(v, flag, *v, help)
		} else {
			set.StringSliceVar(v, flag, *v, help)
		}
	case *bool:
		set.BoolVar(v, flag, *v, help)
	case *int:
		set.IntVar(v, flag, *v, help)
	case *float64:
		set.Float64Var(v, flag, *v, help)
	case *slack.Share:
		set.Var(v, flag, help)
	case *Duration:
		set.DurationVar(&v.Duration, flag, v.Duration, help)
	default:
		panic(fmt.Sprintf("no flag can be a %T", v))
	}
}

// Changed says whether a flag was given of any setting of which `of` is true, by its path.
func (f *Flags) Changed(of func(path string) bool) bool {
	return slices.ContainsFunc(settingsOf(&f.values, ""), func(s setting) bool { return f.changed(s) && of(s.path) })
}

func (f *Flags) changed(s setting) bool { return f.own[s.path] && f.set.Changed(s.flag) }

// Configuration returns the defaults, overridden by the file, if there is one, overridden by the flags that were given;
// and warnings, a line for each, if any are due.
func (f *Flags) Configuration(file string) (c Configuration, warning string, err error) {
	c, wrong, err := f.merged(file)
	if err != nil {
		return c, "", err
	}
	var warnings []string
	if f.set.Changed("max-empty-bulk-delete") {
		warnings = append(warnings, "--max-empty-bulk-delete is the older name of --max-scale-down-parallelism, which "+
			"also bounds nodes with pods to move")
		if !f.set.Changed("max-scale-down-parallelism") {
			c.ScaleDown.MaxScaleDownParallelism = f.empties
		}
	}
	left, err := f.applyExpander(&c)
	if err != nil {
		return c, "", err
	}
	warnings = append(warnings, left...)
	if f.dropIn {
		warnings = append(warnings, f.tolerate(&c)...)
	}
	more, err := f.applyUpstream(&c)
	if err != nil {
		return c, "", err
	}
	warnings = append(warnings, more...)
	if c.lacksProvider() && !f.set.Changed("cloud") && !statesProvider(file) {
		if f.dropIn || f.set.Changed("cloud-provider") {
			c.CloudProvider.Kind = providers.None
			warnings = append(warnings, noProvider)
		}
		if c.onlySlack() && c.Sizing.NodeGroups == "" {
			c.CloudProvider.Kind = providers.None
		}
	}
	warnings = append(warnings, f.unusedByProvider(&c)...)
	return c, strings.Join(warnings, "\n"), f.naming(file, wrong, c.Check())
}

// Question returns the same for a command that asks a question: it acts on nothing, so that no provider is needed.
func (f *Flags) Question(file string) (Configuration, error) {
	c, wrong, err := f.merged(file)
	if c.Mode == Act {
		c.Mode = Observe
	}
	return c, cmp.Or(err, f.naming(file, wrong, c.Check()))
}

// naming returns an error of Check that names the file, if what is wrong with that is the same, else the flag that the
// setting was given by, if it was.
func (f *Flags) naming(file string, wrong, err error) error {
	switch {
	case err == nil:
		return nil
	case wrong != nil && err.Error() == wrong.Error():
		return fmt.Errorf("%s: %w", file, err)
	}
	return asFlag(settingsOf(&f.values, ""), err, f.givenAs)
}

// merged returns the base, overridden by the file and by the flags that were given; and what is wrong with the file
// before flags override it, but for what a mode needs.
func (f *Flags) merged(file string) (c Configuration, wrong, err error) {
	c = f.base
	if file != "" {
		if err := c.Load(file); err != nil {
			return c, nil, err
		}
		alone := c
		alone.Mode = Observe
		wrong = alone.Check()
	}
	from := settingsOf(&f.values, "")
	for i, s := range settingsOf(&c, "") {
		if f.changed(s) {
			s.value.Set(from[i].value)
		}
	}
	return c, wrong, nil
}

// applyExpander changes a configuration as --expander says.
func (f *Flags) applyExpander(c *Configuration) (warnings []string, err error) {
	if !f.set.Changed("expander") {
		return nil, nil
	}
	if f.set.Changed("strategies") {
		return nil, errors.New("--expander is another name of --strategies: give one of them")
	}
	c.ScaleUp.Strategies, warnings, err = f.strategiesOf(f.expander)
	return warnings, err
}

// strategiesOf returns the strategies that Cluster Autoscaler's --expander names. Those that there are none of are left
// out with a warning where the program replaces Cluster Autoscaler, and an error elsewhere.
func (f *Flags) strategiesOf(expander string) (strategies, warnings []string, err error) {
	for name := range strings.SplitSeq(expander, ",") {
		name = strings.TrimSpace(name)
		why := ""
		switch name {
		case "random":
			why = "no decision is left to chance here; ties go by the name of the group"
		case "grpc":
			why = "no other process is asked here"
		default:
			strategies = append(strategies, name)
			continue
		}
		if !f.dropIn {
			return nil, nil, fmt.Errorf("--expander %s: %s. Leave it out, and groups grow by the cheapest plan; or name some "+
				"of price, least-waste, most-pods, least-nodes and priority", name, why)
		}
		warnings = append(warnings, fmt.Sprintf("--expander %s has no effect: %s", name, why))
	}
	return strategies, warnings, nil
}
