package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	f := &Flags{set: set, values: Default()}
	_ = eachField(&f.values, func(_, flag, help string, value any) error {
		switch v := value.(type) {
		case *string:
			set.StringVar(v, flag, *v, help)
		case *[]string:
			set.StringSliceVar(v, flag, *v, help)
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
			panic(fmt.Sprintf("no flag can be a %T", value))
		}
		return nil
	})
	set.StringVar(&f.expander, "expander", "", "Cluster Autoscaler's name of --strategies: what decides between node "+
		"groups, one after the other; without either groups grow together, by the cheapest plan")
	set.IntVar(&f.empties, "max-empty-bulk-delete", 10, "older name of --max-scale-down-parallelism")
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
	given := map[string]any{}
	_ = eachField(&f.values, func(_, flag, _ string, value any) error {
		if f.set.Changed(flag) {
			given[flag] = value
		}
		return nil
	})
	_ = eachField(&c, func(_, flag, _ string, value any) error {
		if from, ok := given[flag]; ok {
			reflect.ValueOf(value).Elem().Set(reflect.ValueOf(from).Elem())
		}
		return nil
	})
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

// eachField calls f with the key, the flag and the address of each setting, at any depth.
func eachField(of any, f func(key, flag, help string, value any) error) error {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := field.Tag.Get("json")
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		address := v.Field(i).Addr().Interface()
		if _, ok := address.(*Duration); !ok && field.Type.Kind() == reflect.Struct {
			if err := eachField(address, f); err != nil {
				return err
			}
			continue
		}
		flag := field.Tag.Get("flag")
		if flag == "" {
			flag = kebab(key)
		}
		if err := f(key, flag, field.Tag.Get("help"), address); err != nil {
			return err
		}
	}
	return nil
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

// kebab makes "scan-interval" of "scanInterval".
func kebab(key string) string {
	var out strings.Builder
	for _, r := range key {
		if unicode.IsUpper(r) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
