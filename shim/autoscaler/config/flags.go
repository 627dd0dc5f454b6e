package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/slack"
)

// Flags override what a file says.
type Flags struct {
	set    *pflag.FlagSet
	values Configuration
	// empties is --max-empty-bulk-delete.
	empties int
	// expander is --expander.
	expander string
}

// AddFlags adds a flag for each setting.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := AddSomeFlags(set, "")
	set.StringVar(&f.expander, "expander", "", "Cluster Autoscaler's name of --strategies: what decides between node "+
		"groups, one after the other; without either groups grow together, by the cheapest plan")
	set.IntVar(&f.empties, "max-empty-bulk-delete", 10, "older name of --max-scale-down-parallelism")
	return f
}

// AddSomeFlags adds a flag for each setting whose flag begins with one of these.
func AddSomeFlags(set *pflag.FlagSet, prefixes ...string) *Flags {
	f := &Flags{set: set, values: Default()}
	for _, s := range settingsOf(&f.values, "") {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s.flag, prefix) }) {
			continue
		}
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
	return f
}

// Configuration returns the defaults, overridden by the file, if there is one, overridden by the flags that were given;
// and a warning, if one is due.
func (f *Flags) Configuration(file string) (c Configuration, warning string, err error) {
	c = Default()
	if file != "" {
		if err := c.Load(file); err != nil {
			return c, "", err
		}
	}
	from := settingsOf(&f.values, "")
	for i, s := range settingsOf(&c, "") {
		if f.set.Changed(s.flag) {
			s.value.Set(from[i].value)
		}
	}
	if f.set.Changed("max-empty-bulk-delete") {
		warning = "--max-empty-bulk-delete is the older name of --max-scale-down-parallelism, which also bounds " +
			"nodes with pods to move"
		if !f.set.Changed("max-scale-down-parallelism") {
			c.ScaleDown.MaxScaleDownParallelism = f.empties
		}
	}
	if f.set.Changed("expander") {
		if f.set.Changed("strategies") {
			return c, "", errors.New("--expander is another name of --strategies: give one of them")
		}
		if c.ScaleUp.Strategies, err = strategiesOf(f.expander); err != nil {
			return c, "", err
		}
	}
	return c, warning, c.Check()
}

// strategiesOf returns the strategies that Cluster Autoscaler's --expander names.
func strategiesOf(expander string) ([]string, error) {
	names := strings.Split(expander, ",")
	for i, name := range names {
		switch names[i] = strings.TrimSpace(name); names[i] {
		case "random":
			return nil, errors.New("--expander random: no decision is left to chance here; ties go by the name of the group")
		case "grpc":
			return nil, errors.New("--expander grpc: no other process is asked here")
		}
	}
	return names, nil
}
