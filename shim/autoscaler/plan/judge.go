package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/text"
)

// warn takes note of a warning once, however often the question is put.
func (o *Loop) warn(format string, args ...any) {
	if warning := fmt.Sprintf(format, args...); !slices.Contains(o.Warnings, warning) {
		o.Warnings = append(o.Warnings, warning)
	}
}

// takes says whether the engine accepts a group by its id, and else warns of it.
func (o *Loop) takes(group *cloud.Group) bool {
	if id := group.ID; id == "" || len(id) > cloud.MostNameBytes || !cloud.IsPlain(id) {
		o.warn("node group %s is left out: its id is not one of 1 to %d printable ASCII characters without spaces",
			text.Bound(strconv.Quote(id), 2*cloud.MostNameBytes), cloud.MostNameBytes)
		return false
	}
	return true
}

// judge is what is found out about the options of one group.
type judge struct{ doubts []string }

// share returns a number if it is one in [0, 1].
func (j *judge) share(name string, value float64) *float64 {
	if value >= 0 && value <= 1 {
		return &value
	}
	j.doubts = append(j.doubts, fmt.Sprintf("%s of %v, which is not in [0, 1]", name, value))
	return nil
}

// time returns a duration in a unit if one is stated that can be.
func (j *judge) time(name string, stated *durationpb.Duration, unit time.Duration, most int64) *int64 {
	if stated == nil {
		return nil
	}
	of := stated.AsDuration()
	if units := int64(of / unit); of >= 0 && units <= most {
		return &units
	}
	j.doubts = append(j.doubts, fmt.Sprintf("%s of %v", name, of))
	return nil
}

// optionsOf returns how a group shrinks, and for how long its machines may take. What cannot be counts as not stated.
func (j *judge) optionsOf(g *cloud.Group) (*loadlinev1.DrainGroup, *loadlinev1.CloudGroup) {
	shrinks, seen := &loadlinev1.DrainGroup{MinNodes: Number(g.Min)}, &loadlinev1.CloudGroup{}
	o := g.Options
	if o == nil {
		return shrinks, seen
	}
	milliseconds := func(name string, stated *durationpb.Duration) int64 {
		return *cmp.Or(j.time(name, stated, time.Millisecond, mostFleetTime), new(int64))
	}
	seen.MaxNodeProvisionMilliseconds = milliseconds("maxNodeProvisionDuration", o.GetMaxNodeProvisionDuration())
	seen.MaxNodeStartupMilliseconds = milliseconds("maxNodeStartupDuration", o.GetMaxNodeStartupDuration())
	shrinks.Atomic = o.GetZeroOrMaxNodeScaling()
	shrinks.ScaleDownUtilizationThreshold = j.share("scaleDownUtilizationThreshold", o.ScaleDownUtilizationThreshold)
	shrinks.ScaleDownGpuUtilizationThreshold = j.share("scaleDownGpuUtilizationThreshold",
		o.ScaleDownGpuUtilizationThreshold)
	shrinks.IgnoreDaemonsetsUtilization = &o.IgnoreDaemonSetsUtilization
	shrinks.ScaleDownUnneededTimeS = j.time("scaleDownUnneededDuration", o.GetScaleDownUnneededDuration(), time.Second,
		mostTime)
	shrinks.ScaleDownUnreadyTimeS = j.time("scaleDownUnreadyDuration", o.GetScaleDownUnreadyDuration(), time.Second,
		mostTime)
	return shrinks, seen
}

// templates returns the templates of all groups that the cloud tells, as far as a question holds them: the smallest
// first, so that none keeps others out.
func (o *Loop) templates() map[*Group][]byte {
	all := map[*Group][]byte{}
	var bySize []*Group
	for _, g := range o.Groups {
		if !g.Model.ByCloud {
			continue
		}
		data, err := cloud.WithoutNotes(g.Model.Node).Marshal()
		if err != nil {
			o.warn("node group %s: its template counts as not told: %v", g.ID, err)
			continue
		}
		all[g], bySize = data, append(bySize, g)
	}
	slices.SortStableFunc(bySize, func(a, b *Group) int { return len(all[a]) - len(all[b]) })
	left := mostTemplateBytes
	for _, g := range bySize {
		size := len(all[g])
		if left -= size; size <= mostObjectBytes && left >= 0 {
			continue
		}
		o.warn("node group %s: its template counts as not told: it takes %.1f MiB, one may take %.1f MiB and all of "+
			"them %d MiB", g.ID, float64(size)/(1<<20), float64(mostObjectBytes)/(1<<20), mostTemplateBytes>>20)
		delete(all, g)
	}
	return all
}

// warnOfMarks warns of nodes whose mark says what cannot be: anybody who may annotate a node can write one.
func (o *Loop) warnOfMarks(c *watch.Cluster) {
	first, doubt, others := "", "", 0
	for _, node := range c.SortedNodes() {
		switch text := drain.DoubtOf(node); {
		case text == "":
		case first == "":
			first, doubt = node.Name, text
		default:
			others++
		}
	}
	if first != "" {
		o.warn("node %s: its annotation %s %s%s", first, drain.MarkAnnotation, doubt,
			map[bool]string{true: fmt.Sprintf("; that of %d other nodes is wrong as well", others)}[others > 0])
	}
}
