package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/report"
	"loadline.dev/shim/view"
)

// Rows of a table of the page.
const mostShownRows = 20

// snapshot is what a loop leaves behind for people to see. Nobody changes it once it is published.
type snapshot struct {
	at      time.Time
	took    time.Duration
	outcome string
	// page is what does not change any more while time goes on, without the nodes.
	page report.Autoscaler
	// loads are the nodes, as the engine had them when somebody first wanted to see them.
	loads func() (report.Placement, error)
}

// describeTime is how long the page waits for the engine.
const describeTime = 3 * time.Second

// snapshotOf returns what there is to be seen of a loop.
func (l *leader) snapshotOf(o *loop, status *Status) *snapshot {
	took := l.clock.now().Sub(o.now)
	s := &snapshot{at: l.clock.wall().Add(-took), took: took, outcome: o.outcome}
	if o.problem != nil {
		s.page.Warnings = append(s.page.Warnings, "The last loop has no plan: "+o.problem.Error())
	} else if status.Message != "" {
		s.page.Warnings = append(s.page.Warnings, status.Message)
	}
	if brake := status.ClusterWide.ScaleDown.Brake; brake != "" {
		s.page.Warnings = append(s.page.Warnings, "No node goes: "+brake)
	}
	if limit := status.ClusterWide.ScaleDown.Limit; limit != "" {
		s.page.Lines = append(s.page.Lines, limit+" holds nodes back that could go.")
	}
	if line := o.leftOut.Line(mostShownRows); line != "" {
		s.page.Warnings = append(s.page.Warnings, line)
	}
	s.page.Groups, s.page.Notes = l.shownGroups(o, status), map[string]string{}
	s.addGrowth(&status.ClusterWide.ScaleUp)
	s.addSizes(status)
	waiting, pending := waitingPods(l.cluster, o.now)
	s.page.Tables = []report.TitledGrid{waiting, l.goingNodes(o, s.page.Notes), stayingNodes(o)}
	if replacement := status.ClusterWide.Replacement; replacement != nil {
		s.addReplacement(replacement)
		s.page.Tables = append(s.page.Tables, movesTable(o.replacement()))
	}
	if o.plan != nil {
		s.page.Slack = shownSlack(o.plan.loop.GetSlack())
		notePlaceholders(l.cluster, s.page.Notes)
	}
	s.page.Lines = append(s.page.Lines, fmt.Sprintf("%s, %s, %d of them waiting for a node.",
		counted(len(l.cluster.Nodes), "node"), counted(len(l.cluster.Pods), "pod"), pending))
	text.BoundAll(&s.page, mostPageText, mostPageEntries)
	s.loads = sync.OnceValues(func() (report.Placement, error) {
		p, err := l.loads()
		p.PendingPods = pending
		return p, err
	})
	return s
}

// addGrowth tells which groups grow, and why others do not.
func (s *snapshot) addGrowth(up *ScaleUpStatus) {
	for _, growth := range up.Growth {
		s.page.Lines = append(s.page.Lines, "Grows: "+growth+".")
	}
	if up.Unplaced > 0 {
		s.page.Warnings = append(s.page.Warnings,
			fmt.Sprintf("%d of %d pods that wait get no node: %s", up.Unplaced, up.PendingPods, up.Why))
	}
}

// shownSlack returns the room that is kept, the classes of nodes first that lack most of it.
func shownSlack(slack *loadlinev1.PlanSlackResponse) []report.SlackClass {
	classes := slices.Clone(slack.GetClasses())
	missing := func(c *loadlinev1.ClassSlack) int64 { return c.GetSum().GetMilliCpu() - c.GetReady().GetMilliCpu() }
	slices.SortStableFunc(classes, func(a, b *loadlinev1.ClassSlack) int { return cmp.Compare(missing(b), missing(a)) })
	nodes := map[string]int64{}
	for _, demand := range slack.GetDemands() {
		nodes[demand.GetClassName()] += demand.GetNodes()
	}
	var shown []report.SlackClass
	for _, c := range classes[:min(len(classes), mostShownRows)] {
		reason := cmp.Or(c.GetReason(), strings.ToLower(strings.TrimPrefix(c.GetStatus().String(), "SLACK_")))
		if more := nodes[c.GetName()]; more > 0 {
			reason += "; asks for " + counted(int(more), "more node")
		}
		shown = append(shown, report.SlackClass{Name: c.GetName(), Note: counted(int(c.GetNodes()), "node"),
			Reason: reason, Bars: []report.SlackBar{
				{Resource: "cpu", Wanted: c.GetExtra().GetMilliCpu(), Kept: c.GetSum().GetMilliCpu(),
					Ready: c.GetReady().GetMilliCpu()},
				{Resource: "memory", Wanted: c.GetExtra().GetMemoryBytes(), Kept: c.GetSum().GetMemoryBytes(),
					Ready: c.GetReady().GetMemoryBytes()}}})
	}
	return shown
}

// notePlaceholders tells on which nodes room is kept.
func notePlaceholders(c *watch.Cluster, notes map[string]string) {
	counts := map[string]int{}
	for _, pods := range []map[types.NamespacedName]*v1.Pod{c.Pods, c.Standing} {
		for _, pod := range pods {
			if pod.Spec.NodeName != "" && c.IsPlaceholder(pod) {
				counts[pod.Spec.NodeName]++
			}
		}
	}
	for node, count := range counts {
		text := "keeps room for " + counted(count, "placeholder")
		if notes[node] != "" {
			text = notes[node] + "; " + text
		}
		notes[node] = text
	}
}

// describeView asks an engine for the nodes of a view.
func describeView(client loadlinev1.ClusterStateClient, name string) func() (report.Placement, error) {
	return func() (report.Placement, error) {
		ctx, cancel := context.WithTimeout(context.Background(), describeTime)
		defer cancel()
		states, err := view.States(ctx, client, name)
		return report.FromNodeStates(name, states, 0), err
	}
}

// shownGroups returns the groups, those first with which something happens.
func (l *leader) shownGroups(o *loop, s *Status) []report.AutoscalerGroup {
	going := map[string]int{}
	for _, g := range o.states {
		going[g.ID] = int(g.found.GetGoing())
	}
	for _, removal := range o.underWay {
		going[removal.Group]++
	}
	var shown []report.AutoscalerGroup
	for _, g := range s.NodeGroups {
		h := &g.Health
		row := report.AutoscalerGroup{Name: g.Name, Min: h.MinSize, Max: h.MaxSize, Target: h.Target,
			Nodes: h.NodeCounts.Registered.Total, Going: going[g.Name]}
		if candidates := g.ScaleDown.Candidates; candidates > 0 {
			row.Note = fmt.Sprintf("%d could go", candidates)
		}
		if g.Size != nil {
			row.Note = "sized: " + g.Size.Reason
		}
		if b := g.ScaleUp.BackoffInfo; b != nil {
			row.Note = fmt.Sprintf("backs off until %s: %s", b.Until, b.ErrorMessage)
		}
		shown = append(shown, row)
	}
	busy := func(g report.AutoscalerGroup) int { return g.Going + max(0, g.Target-g.Nodes) }
	slices.SortStableFunc(shown, func(a, b report.AutoscalerGroup) int { return cmp.Compare(busy(b), busy(a)) })
	return shown
}

// waitingPods returns the pods without a node, by owner, those that wait longest first.
func waitingPods(c *watch.Cluster, now time.Time) (table report.TitledGrid, count int) {
	table = report.TitledGrid{Title: "Pods that wait", None: "No pod waits for a node.",
		Grid: report.Grid{Header: []string{"PODS", "COUNT", "LONGEST", "SUCH AS"}}}
	type waiting struct {
		name, pod string
		count     int
		since     time.Time
	}
	byOwner := map[string]*waiting{}
	for _, pod := range c.Unbound {
		owner := ownerOf(pod)
		w := byOwner[owner]
		if w == nil {
			w = &waiting{name: owner, since: pod.CreationTimestamp.Time, pod: pod.Name}
			byOwner[owner] = w
		}
		w.count++
		w.pod = min(w.pod, pod.Name)
		if pod.CreationTimestamp.Time.Before(w.since) {
			w.since = pod.CreationTimestamp.Time
		}
	}
	owners := slices.SortedFunc(maps.Values(byOwner), func(a, b *waiting) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.name, b.name))
	})
	for _, w := range owners[:min(len(owners), mostShownRows)] {
		table.Rows = append(table.Rows, []string{w.name, strconv.Itoa(w.count), ago(now, w.since), w.pod})
	}
	table.Note = others(len(owners), "owner")
	return table, len(c.Unbound)
}

func ownerOf(pod *v1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return pod.Namespace + ", " + owner.Kind + " " + owner.Name
	}
	return pod.Namespace + ", " + pod.Name
}

// goingNodes returns the nodes whose removal is under way, and those that could go, in the order of the plan; and notes
// on those that are shown.
func (l *leader) goingNodes(o *loop, notes map[string]string) report.TitledGrid {
	table := report.TitledGrid{Title: "Nodes that go", None: "None is going, and none could.",
		Grid: report.Grid{Header: []string{"NODE", "NODE GROUP", "STATE", "NOT NEEDED FOR", "PODS TO MOVE"}}}
	for _, name := range slices.Sorted(maps.Keys(o.underWay)) {
		d := o.underWay[name]
		notes[name] = "going: " + string(d.Stage)
		table.Rows = append(table.Rows, []string{name, d.Group, string(d.Stage), ago(o.now, d.Since), ""})
	}
	count := len(o.underWay)
	for _, r := range o.candidates() {
		name := o.plan.nameOf[r.GetSlot()]
		if _, underWay := o.underWay[name]; underWay {
			continue
		}
		if count++; count <= mostShownRows {
			notes[name] = "could go"
			table.Rows = append(table.Rows, candidateRow(name, r, o.now))
		}
	}
	table.Rows = table.Rows[:min(len(table.Rows), mostShownRows)]
	table.Note = others(count, "node")
	return table
}

// candidates returns the nodes of the plan, if there is one.
func (o *loop) candidates() []*loadlinev1.NodeRemoval {
	if o.plan == nil {
		return nil
	}
	return o.plan.GetRemove()
}

func candidateRow(name string, r *loadlinev1.NodeRemoval, now time.Time) []string {
	state := "can go now"
	if !r.GetStart() {
		state = "waits: " + r.GetWaits()
		if left := time.Unix(r.GetReadyAtS(), 0).Sub(now); left > 0 {
			state += ", timer ends in " + left.Round(time.Second).String()
		}
	}
	return []string{name, r.GetNodeGroup(), state, ago(now, time.Unix(r.GetSinceS(), 0)),
		strconv.FormatInt(r.GetPodsToMove(), 10)}
}

// stayingNodes returns why nodes stay, the most frequent reasons first.
func stayingNodes(o *loop) report.TitledGrid {
	table := report.TitledGrid{Title: "Why nodes stay", None: "There is no plan that says so.",
		Grid: report.Grid{Header: []string{"REASON", "NODES", "SUCH AS", "POD", "WHAT WOULD HELP"}}}
	if o.plan == nil {
		return table
	}
	reasons := slices.SortedFunc(slices.Values(o.plan.GetStay()), func(a, b *loadlinev1.StayReason) int {
		return cmp.Or(cmp.Compare(len(b.GetSlots()), len(a.GetSlots())), strings.Compare(stayText(a), stayText(b)))
	})
	for _, r := range reasons[:min(len(reasons), mostShownRows)] {
		first := r.GetFirst()
		pod := first.GetPodName()
		if pod != "" {
			pod = first.GetPodNamespace() + "/" + pod
		}
		table.Rows = append(table.Rows,
			[]string{stayText(r), strconv.Itoa(len(r.GetSlots())), o.plan.nameOf[first.GetSlot()], pod,
				first.GetAdvice()})
	}
	table.Note = others(len(reasons), "reason")
	return table
}

// stayText names why nodes stay.
func stayText(r *loadlinev1.StayReason) string {
	text := r.GetFirst().GetReason()
	for _, more := range []string{r.GetFirst().GetPodReason(), r.GetFirst().GetBudgetRefusal()} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// others says how many rows of a table are not shown.
func others(rows int, what string) string {
	if rows <= mostShownRows {
		return ""
	}
	return "And " + counted(rows-mostShownRows, "other "+what) + "."
}

// counted writes a number with what it counts.
func counted(number int, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}

// ago writes how long something has lasted.
func ago(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return max(0, now.Sub(since)).Round(time.Second).String()
}
