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
	// Page is the part that does not change any more as time passes, without the nodes.
	Page report.Autoscaler
	// loads are the nodes, as the engine had them when somebody first wanted to see them.
	loads func() (report.Placement, error)
}

// describeTime is how long the page waits for the engine.
const describeTime = 3 * time.Second

// snapshotOf returns what there is to be seen of a loop that took so long and ended at that time of the wall clock:
// what the report tells, and what only this process knows.
func (t *Teller) snapshotOf(o *plan.Loop, told *loadlinev1.LoopReport, wall time.Time, took time.Duration) *snapshot {
	s := &snapshot{at: wall.Add(-took), took: took, outcome: o.Outcome, Page: report.FromLoop(told)}
	page, status := &s.Page, told.Status
	problem := status.Message
	if o.Problem != nil && o.Plan == nil {
		problem = "The last loop has no plan: " + problem
	} else if o.Problem != nil {
		problem = "The last plan is not carried out: " + problem
	}
	page.Warnings = slices.DeleteFunc(slices.Concat([]string{problem, o.LeftOut.Line(mostShownRows)}, page.Warnings,
		status.Warnings), func(warning string) bool { return warning == "" })
	waiting, pending := waitingPods(t.cluster, o.Now)
	page.Tables = append([]report.TitledGrid{waiting, goingNodes(o, told.NodesThatGo, page.Notes)}, page.Tables...)
	page.Lines = slices.Concat(page.Lines, billLine(status.ClusterWide.Replacement.GetBill()), []string{
		fmt.Sprintf("%s, %s, %d of them waiting for a node.", report.Counted(len(t.cluster.Nodes), "node"),
			report.Counted(len(t.cluster.Pods), "pod"), pending)})
	notePlaceholders(t.cluster, page.Notes)
	text.BoundAll(page, plan.MostPageText, mostPageEntries)
	s.loads = sync.OnceValues(func() (report.Placement, error) {
		p, err := t.Loads()
		p.PendingPods = pending
		return p, err
	})
	return s
}

// goingNodes returns the nodes whose removal is under way, then those that could go, and notes what the former do.
func goingNodes(o *plan.Loop, could *loadlinev1.PageTable, notes map[string]string) report.TitledGrid {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(o.UnderWay)) {
		d := o.UnderWay[name]
		notes[name] = "going: " + d.Stage
		rows = append(rows, []string{name, d.Group, d.Stage, lasted(o.Now, d.Since), ""})
	}
	table, total := report.FromTable(could), int(could.RowsTotal)+len(o.UnderWay)
	for _, row := range table.Rows {
		if _, goes := o.UnderWay[row[0]]; !goes {
			rows = append(rows, row)
		} else {
			total-- // its removal has begun since the plan
		}
	}
	table.Rows = rows[:min(len(rows), mostShownRows)]
	table.Note = report.Others(total-len(table.Rows), could.RowsAre)
	return table
}

// lasted writes for how long something has been so.
func lasted(now, since time.Time) string { return max(0, now.Sub(since)).Round(time.Second).String() }

// billLine tells what nodes cost; nil: nobody has looked.
func billLine(bill *loadlinev1.BillStatus) []string {
	if bill == nil {
		return nil
	}
	least := fmt.Sprintf("nothing costs less than %.4f", bill.GetBound())
	if bill.Bound == nil || !bill.Proven {
		least = "what costs least is not known"
	}
	return []string{fmt.Sprintf("When moves were looked for last, nodes cost %.4f USD per hour; moves reach %.4f, %s.",
		bill.Now, bill.Reachable, least)}
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
		text := "keeps room for " + report.Counted(count, "placeholder")
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
		table.Rows = append(table.Rows, []string{w.name, strconv.Itoa(w.count), lasted(now, w.since), w.pod})
	}
	table.Note = report.Others(len(owners)-mostShownRows, "owner")
	return table, len(c.Unbound)
}

func ownerOf(pod *v1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return pod.Namespace + ", " + owner.Kind + " " + owner.Name
	}
	return pod.Namespace + ", " + pod.Name
}
