package tell

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
	"loadline.dev/shim/autoscaler/plan"
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
	// Page is what does not change any more while time goes on, without the nodes.
	Page report.Autoscaler
	// loads are the nodes, as the engine had them when somebody first wanted to see them.
	loads func() (report.Placement, error)
}

// describeTime is how long the page waits for the engine.
const describeTime = 3 * time.Second

// snapshotOf returns what there is to be seen of a loop that took so long and ended at that time of the wall clock.
func (t *Teller) snapshotOf(o *plan.Loop, status *Status, wall time.Time, took time.Duration) *snapshot {
	s := &snapshot{at: wall.Add(-took), took: took, outcome: o.Outcome}
	if o.Problem != nil {
		s.Page.Warnings = append(s.Page.Warnings, "The last loop has no plan: "+o.Problem.Error())
	} else if status.Message != "" {
		s.Page.Warnings = append(s.Page.Warnings, status.Message)
	}
	if brake := status.ClusterWide.ScaleDown.Brake; brake != "" {
		s.Page.Warnings = append(s.Page.Warnings, "No node goes: "+brake)
	}
	if limit := status.ClusterWide.ScaleDown.Limit; limit != "" {
		s.Page.Lines = append(s.Page.Lines, limit+" holds nodes back that could go.")
	}
	if line := o.LeftOut.Line(mostShownRows); line != "" {
		s.Page.Warnings = append(s.Page.Warnings, line)
	}
	s.Page.Groups, s.Page.Notes = t.shownGroups(o, status), map[string]string{}
	s.addGrowth(&status.ClusterWide.ScaleUp)
	s.addSizes(status)
	waiting, pending := waitingPods(t.cluster, o.Now)
	s.Page.Tables = []report.TitledGrid{waiting, t.goingNodes(o, s.Page.Notes), stayingNodes(o)}
	if replacement := status.ClusterWide.Replacement; replacement != nil {
		s.addReplacement(replacement)
		s.Page.Tables = append(s.Page.Tables, movesTable(o.Answer().GetReplacement()))
	}
	if o.Plan != nil {
		s.Page.Slack = shownSlack(o.Plan.Answer.GetSlack())
		notePlaceholders(t.cluster, s.Page.Notes)
	}
	s.Page.Lines = append(s.Page.Lines, fmt.Sprintf("%s, %s, %d of them waiting for a node.",
		counted(len(t.cluster.Nodes), "node"), counted(len(t.cluster.Pods), "pod"), pending))
	text.BoundAll(&s.Page, plan.MostPageText, mostPageEntries)
	s.loads = sync.OnceValues(func() (report.Placement, error) {
		p, err := t.Loads()
		p.PendingPods = pending
		return p, err
	})
	return s
}

// addGrowth tells which groups grow, and why others do not.
func (s *snapshot) addGrowth(up *ScaleUpStatus) {
	for _, growth := range up.Growth {
		s.Page.Lines = append(s.Page.Lines, "Grows: "+growth+".")
	}
	if up.Unplaced > 0 {
		s.Page.Warnings = append(s.Page.Warnings,
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
		reason := cmp.Or(c.GetReason(), slackWords[c.GetStatus()])
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

// DescribeView asks an engine for the nodes of a view.
func DescribeView(client loadlinev1.ClusterStateClient, name string) func() (report.Placement, error) {
	return func() (report.Placement, error) {
		ctx, cancel := context.WithTimeout(context.Background(), describeTime)
		defer cancel()
		states, err := view.States(ctx, client, name)
		return report.FromNodeStates(name, states, 0), err
	}
}

// shownGroups returns the groups, those first with which something happens.
func (t *Teller) shownGroups(o *plan.Loop, s *Status) []report.AutoscalerGroup {
	going := map[string]int{}
	for _, g := range o.Groups {
		going[g.ID] = int(g.Found.GetGoing())
	}
	for _, removal := range o.UnderWay {
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
func (t *Teller) goingNodes(o *plan.Loop, notes map[string]string) report.TitledGrid {
	table := report.TitledGrid{Title: "Nodes that go", None: "None is going, and none could.",
		Grid: report.Grid{Header: []string{"NODE", "NODE GROUP", "STATE", "NOT NEEDED FOR", "PODS TO MOVE"}}}
	for _, name := range slices.Sorted(maps.Keys(o.UnderWay)) {
		d := o.UnderWay[name]
		notes[name] = "going: " + string(d.Stage)
		table.Rows = append(table.Rows, []string{name, d.Group, string(d.Stage), ago(o.Now, d.Since), ""})
	}
	count := len(o.UnderWay)
	for _, r := range o.Answer().GetScaleDown().GetRemove() {
		name := o.Plan.NameOf[r.GetSlot()]
		if _, underWay := o.UnderWay[name]; underWay {
			continue
		}
		if count++; count <= mostShownRows {
			notes[name] = "could go"
			table.Rows = append(table.Rows, candidateRow(name, r, o.Now))
		}
	}
	table.Rows = table.Rows[:min(len(table.Rows), mostShownRows)]
	table.Note = others(count, "node")
	return table
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
func stayingNodes(o *plan.Loop) report.TitledGrid {
	table := report.TitledGrid{Title: "Why nodes stay", None: "There is no plan that says so.",
		Grid: report.Grid{Header: []string{"REASON", "NODES", "SUCH AS", "POD", "WHAT WOULD HELP"}}}
	if o.Plan == nil {
		return table
	}
	reasons := slices.SortedFunc(slices.Values(o.Plan.GetStay()), func(a, b *loadlinev1.StayReason) int {
		return cmp.Or(cmp.Compare(len(b.GetSlots()), len(a.GetSlots())), strings.Compare(stayText(a), stayText(b)))
	})
	for _, r := range reasons[:min(len(reasons), mostShownRows)] {
		first := r.GetFirst()
		pod := first.GetPodName()
		if pod != "" {
			pod = first.GetPodNamespace() + "/" + pod
		}
		table.Rows = append(table.Rows,
			[]string{stayText(r), strconv.Itoa(len(r.GetSlots())), o.Plan.NameOf[first.GetSlot()], pod,
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
