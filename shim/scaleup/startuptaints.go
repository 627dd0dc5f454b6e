package scaleup

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"loadline.dev/shim/api/loadlinev1"
)

// StartupTaints names taints that come and go with the life of a node, beside those that the engine knows. The flags
// are those of Cluster Autoscaler.
type StartupTaints struct {
	StartupTaints        []string `json:"startupTaints" flag:"startup-taint" range:":50" help:"key of a taint that a new node has until it can run pods: until then it is on its way, and pods wait for it; may be given more than once"`
	IgnoreTaints         []string `json:"ignoreTaints" flag:"ignore-taint" range:":50" help:"older name of --startup-taint; may be given more than once"`
	StartupTaintPrefixes []string `json:"startupTaintPrefixes" flag:"startup-taint-prefix" range:":100" help:"what the keys of such taints begin with; may be given more than once"`
	StatusTaints         []string `json:"statusTaints" flag:"status-taint" range:":100" help:"key of a taint that says how a node is now, and that no new node has; may be given more than once"`
}

// taintFlag is a field with its tags.
type taintFlag struct {
	keys       *[]string
	path, name string // the key of the field, and the flag
	begins     bool   // the keys of taints only begin with these
}

func (t *StartupTaints) flags() (all []taintFlag) {
	fields := reflect.ValueOf(t).Elem()
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		keys := fields.Field(i).Addr().Interface().(*[]string)
		all = append(all, taintFlag{keys, tag.Get("json"), tag.Get("flag"), keys == &t.StartupTaintPrefixes})
	}
	return all
}

// Check says which of the names cannot be the key of a taint, or the beginning of one. An error begins with the key of
// the field.
func (t *StartupTaints) Check() error {
	for _, flag := range t.flags() {
		for _, key := range *flag.keys {
			what := "the key of a taint"
			if flag.begins {
				what = "the beginning of " + what
			}
			if problem := flag.problemOf(key); problem != "" {
				return fmt.Errorf("%s: %q is not %s: %s", flag.path, key, what, problem)
			}
		}
	}
	return nil
}

// problemOf says why no taint can have a key, or one that begins with it; empty: one can. A beginning may end in the
// domain of a key or in its name.
func (f taintFlag) problemOf(key string) string {
	problems := validation.IsQualifiedName(key)
	for _, end := range []string{"x", "/x", "x/x"} {
		if f.begins && key != "" && len(validation.IsQualifiedName(key+end)) == 0 {
			return ""
		}
	}
	return strings.Join(problems, "; ")
}

// LeaveOutOthers leaves out the names that Check refuses, and returns them as flags.
func (t *StartupTaints) LeaveOutOthers() (left []string) {
	for _, flag := range t.flags() {
		*flag.keys = slices.DeleteFunc(slices.Clone(*flag.keys), func(key string) bool {
			refused := flag.problemOf(key) != ""
			if refused {
				left = append(left, fmt.Sprintf("--%s=%s", flag.name, key))
			}
			return refused
		})
	}
	return left
}

// DefaultMaxNodeStartupTime is the default of --max-node-startup-time of Cluster Autoscaler, and of the engine.
const DefaultMaxNodeStartupTime = 15 * time.Minute

// Proto returns the names, and the time that a node may take to start, for a question; nil: there are no names, and
// the time is the default.
func (t *StartupTaints) Proto(maxStartup time.Duration) *loadlinev1.StartupTaints {
	message := &loadlinev1.StartupTaints{Startup: slices.Concat(t.StartupTaints, t.IgnoreTaints),
		StartupPrefixes: t.StartupTaintPrefixes, Status: t.StatusTaints}
	if maxStartup != DefaultMaxNodeStartupTime {
		message.MaxStartupMilliseconds = max(1, maxStartup.Milliseconds())
	} else if len(message.Startup)+len(message.StartupPrefixes)+len(message.Status) == 0 {
		return nil
	}
	return message
}
