package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/providers"
)

// tolerate changes what Cluster Autoscaler takes on its command line, and the settings here do not: the command line of
// a cluster that works must not end the program that takes its place. It returns a line for each change.
func (f *Flags) tolerate(c *Configuration) (warnings []string) {
	warnings = f.intoRanges(c)
	s := &c.ScaleUp
	if least := s.InitialNodeGroupBackoffDuration; s.MaxNodeGroupBackoffDuration.Duration < least.Duration {
		warnings = append(warnings, fmt.Sprintf("--max-node-group-backoff-duration=%v is below "+
			"--initial-node-group-backoff-duration, and counts as %v", s.MaxNodeGroupBackoffDuration.Duration, least.Duration))
		s.MaxNodeGroupBackoffDuration = least
	}
	for name, keys := range map[string]*[]string{"startup-taint": &s.StartupTaints.StartupTaints,
		"ignore-taint": &s.StartupTaints.IgnoreTaints, "status-taint": &s.StartupTaints.StatusTaints} {
		for i, text := range *keys {
			if key := text[:max(0, strings.IndexAny(text+":", "=:"))]; key != text {
				warnings = append(warnings, fmt.Sprintf("--%s=%s counts as the key %s, with any value and effect", name, text, key))
				*keys = slices.Replace(slices.Clone(*keys), i, i+1, key)
			}
		}
	}
	for _, flag := range s.StartupTaints.LeaveOutOthers() {
		warnings = append(warnings, flag+" has no effect: it is not the key of a taint")
	}
	if len(s.BalancingLabels) > 0 && len(s.BalancingIgnoreLabels) > 0 {
		warnings = append(warnings, asGiven("balancing-ignore-label", s.BalancingIgnoreLabels)+
			" has no effect: the labels of --balancing-label decide alone")
		s.BalancingIgnoreLabels = nil
	}
	slices.Sort(warnings)
	return append(warnings, slices.Concat(f.tolerateSchedulers(s), tolerateGPUs(&c.ScaleDown.RemovalLimits),
		toleratePriorities(&c.ScaleDown.Evictions))...)
}

// givenAs returns the name of the flag that a setting was given by; empty: by none.
func (f *Flags) givenAs(s setting) string {
	switch {
	case f.changed(s):
		return s.flag
	case s.path == "scaleDown.maxScaleDownParallelism" && f.set.Changed("max-empty-bulk-delete"):
		return "max-empty-bulk-delete"
	case s.path == "scaleUp.strategies" && f.set.Changed("expander"):
		return "expander"
	}
	return ""
}

// intoRanges changes numbers and durations of flags that are outside of what their settings may be. One that is zero or
// below, where that means nothing here, becomes the default; others the end of the range.
func (f *Flags) intoRanges(c *Configuration) (warnings []string) {
	base := f.base
	defaults := settingsOf(&base, "")
	for i, s := range settingsOf(c, "") {
		allowed := s.tag.Get("range")
		if s.value.Type() == reflect.TypeFor[Duration]() && allowed == "" {
			allowed = durations
		}
		number, is := numberOf(s.value.Interface())
		flag := f.givenAs(s)
		if allowed == "" || !is || flag == "" || inRange(s.path, s.value.Interface(), allowed) == nil {
			continue
		}
		low, high, _ := strings.Cut(allowed, ":")
		least, most := limit(low, -math.MaxFloat64), limit(strings.TrimPrefix(high, "<"), math.MaxFloat64)
		was := asText(s.value.Interface())
		switch {
		case math.IsNaN(number) || number <= 0 && least > 0 || strings.HasPrefix(high, "<"):
			s.value.Set(defaults[i].value)
		case number < least:
			setNumber(s.value, least)
		default:
			setNumber(s.value, most)
		}
		warnings = append(warnings, fmt.Sprintf("--%s=%s counts as %s", flag, was, asText(s.value.Interface())))
	}
	return warnings
}

func asText(value any) string {
	if d, is := value.(Duration); is {
		value = d.Duration
	}
	return fmt.Sprint(value)
}

// numberOf returns the number of a setting; false: it is of another kind.
func numberOf(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case Duration:
		return float64(v.Duration), true
	}
	return 0, false
}

func setNumber(to reflect.Value, number float64) {
	switch v := to.Addr().Interface().(type) {
	case *int:
		*v = int(number)
	case *float64:
		*v = number
	case *Duration:
		v.Duration = time.Duration(number)
	}
}

// tolerateSchedulers leaves out names of schedulers that are empty, and those whose pods make no group grow.
func (f *Flags) tolerateSchedulers(s *ScaleUp) (warnings []string) {
	empty := func(name string) bool { return strings.TrimSpace(name) == "" }
	for name, all := range map[string]*[]string{"bypassed-scheduler-names": &s.BypassedSchedulerNames,
		"allowed-scheduler-names": &s.AllowedSchedulerNames} {
		if f.set.Changed(name) && slices.ContainsFunc(*all, empty) {
			*all = slices.DeleteFunc(slices.Clone(*all), empty)
		}
	}
	s.BypassedSchedulerNames = slices.DeleteFunc(slices.Clone(s.BypassedSchedulerNames), func(name string) bool {
		if !s.Allows(name) {
			warnings = append(warnings, fmt.Sprintf("--bypassed-scheduler-names: %s has no effect: it is not among "+
				"--allowed-scheduler-names", name))
		}
		return !s.Allows(name)
	})
	return warnings
}

// tolerateGPUs leaves out entries without a type of GPU, which no node has, and all but the last entry of each type,
// which counts in Cluster Autoscaler.
func tolerateGPUs(s *RemovalLimits) (warnings []string) {
	lastOf := map[string]int{}
	kindOf := func(entry string) string {
		kind, _, _ := strings.Cut(entry, ":")
		return kind
	}
	for i, entry := range s.GPUTotal {
		lastOf[kindOf(entry)] = i
	}
	var kept []string
	for i, entry := range s.GPUTotal {
		switch {
		case kindOf(entry) == "":
			warnings = append(warnings, fmt.Sprintf("--gpu-total=%s has no effect: it names no type of GPU", entry))
		case lastOf[kindOf(entry)] == i:
			kept = append(kept, entry)
		default:
			warnings = append(warnings, fmt.Sprintf("--gpu-total=%s has no effect: a later one is of the same type", entry))
		}
	}
	s.GPUTotal = kept
	return warnings
}

// toleratePriorities leaves out all but the first entry of each priority, which counts in Cluster Autoscaler for pods
// of exactly that priority.
func toleratePriorities(s *Evictions) (warnings []string) {
	given := map[int]bool{}
	var kept []string
	for entry := range strings.SplitSeq(s.DrainPriorityConfig, ",") {
		left, _, _ := strings.Cut(entry, ":")
		priority, err := strconv.Atoi(strings.TrimSpace(left))
		if err == nil && given[priority] {
			warnings = append(warnings, fmt.Sprintf("--drain-priority-config: %s has no effect: an earlier entry is of the "+
				"same priority", entry))
			continue
		}
		given[priority] = given[priority] || err == nil
		kept = append(kept, entry)
	}
	s.DrainPriorityConfig = strings.Join(kept, ",")
	return warnings
}

// unusedByProvider returns a line for each flag of a provider that another one takes no notice of.
func (f *Flags) unusedByProvider(c *Configuration) (warnings []string) {
	if c.CloudProvider.Kind == providers.ClusterAPI {
		return nil
	}
	o := &c.CloudProvider.ClusterAPI
	if f.set.Changed("node-group-auto-discovery") {
		warnings = append(warnings, asGiven("node-group-auto-discovery", o.NodeGroupAutoDiscovery)+
			" has no effect: only --cloud=cluster-api looks for its node groups in this way")
	}
	if read := c.CloudProvider.Kind == providers.ExternalGRPC && f.set.Changed("cloud-provider"); !read &&
		f.set.Changed("cloud-config") {
		warnings = append(warnings, asGiven("cloud-config", []string{o.CloudConfig})+" has no effect: it is read with "+
			"--cloud=cluster-api, and with --cloud-provider=externalgrpc")
	}
	return warnings
}
