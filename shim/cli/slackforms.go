package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/report"
)

// slackAnswer is the answer of `slack` as data.
type slackAnswer struct {
	// Placeholders are grouped by their source and size; a group has its number, and how many of it fit now.
	Placeholders []slackShape    `json:"placeholders"`
	Classes      []slackClass    `json:"classes"`
	Mirrored     []slackMirrored `json:"mirrored"`
	// Nodes are asked for, for placeholders that fit nowhere now.
	Nodes   []slackNodes  `json:"nodes"`
	Literal *slackLiteral `json:"literal,omitempty"`
	// Errors are the requests for copies that cannot be met. ErrorsTotal and ClassesTotal are set if the lists are not
	// complete.
	Errors       []slackError `json:"errors,omitempty"`
	ErrorsTotal  int64        `json:"errorsTotal,omitempty"`
	ClassesTotal int64        `json:"classesTotal,omitempty"`
	// OtherNodes hold no slack.
	OtherNodes []otherNode `json:"otherNodes,omitempty"`
	// CutShortBy names the budget that ended before all placeholders had room: work, time or memory.
	CutShortBy string `json:"cutShortBy,omitempty"`
	// Remarks are about pods that are not planned for as others are.
	Remarks []string `json:"remarks,omitempty"`
}

// slackError is what is wrong with a wish for copies, and who has it: "Deployment shop/web".
type slackError struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

type slackShape struct {
	Shape       string `json:"shape"`
	Kind        string `json:"kind"`
	CPUMilli    int64  `json:"cpuMilli"`
	MemoryBytes int64  `json:"memoryBytes"`
	Count       int64  `json:"count"`
	Placed      int64  `json:"placed"`
}

type slackAmounts struct {
	CPUMilli    int64 `json:"cpuMilli"`
	MemoryBytes int64 `json:"memoryBytes"`
}

type slackClass struct {
	Name   string       `json:"name"`
	Nodes  int64        `json:"nodes"`
	Basis  slackAmounts `json:"basis"`
	Wanted slackAmounts `json:"wanted"`
	Kept   slackAmounts `json:"kept"`
	Ready  slackAmounts `json:"ready"`
	Count  int64        `json:"count"`
	Placed int64        `json:"placed"`
	Status string       `json:"status"`
	Reason string       `json:"reason,omitempty"`
	// MoreNodes are asked for, for its placeholders that fit nowhere now.
	MoreNodes int64 `json:"moreNodes"`
}

type slackMirrored struct {
	Shape   string   `json:"shape"`
	Sources []string `json:"sources"`
	Wanted  int64    `json:"wanted"`
	Count   int64    `json:"count"`
	Placed  int64    `json:"placed"`
	Status  string   `json:"status"`
	Reason  string   `json:"reason,omitempty"`
}

type slackNodes struct {
	Class string `json:"class"`
	Nodes int64  `json:"nodes"`
}

// slackLiteral is what the formulas of the proposal come to as they stand. Remaining room below 0 is no request at all.
type slackLiteral struct {
	Placeholders      int64   `json:"placeholders"`
	CPUMilli          float64 `json:"cpuMilli"`
	MemoryBytes       float64 `json:"memoryBytes"`
	PercentOfCapacity float64 `json:"percentOfCapacity"`
	RemainingCPU2a    float64 `json:"remainingCpuMilli2a"`
	RemainingMemory2a float64 `json:"remainingMemoryBytes2a"`
	RemainingCPU2b    float64 `json:"remainingCpuMilli2b"`
	RemainingMemory2b float64 `json:"remainingMemoryBytes2b"`
}

func slackAmountsOf(a *loadlinev1.CpuAndMemory) slackAmounts {
	return slackAmounts{a.GetMilliCpu(), a.GetMemoryBytes()}
}

func slackStatus(status loadlinev1.SlackStatus) string {
	switch status {
	case loadlinev1.SlackStatus_SLACK_READY:
		return "ready"
	case loadlinev1.SlackStatus_SLACK_MISSING:
		return "missing"
	case loadlinev1.SlackStatus_SLACK_LIMITED:
		return "limited"
	case loadlinev1.SlackStatus_SLACK_UNPLACEABLE:
		return "unplaceable"
	}
	return status.String()
}

func slackKind(kind loadlinev1.Placeholder_Kind) string {
	switch kind {
	case loadlinev1.Placeholder_STANDARD:
		return "standard"
	case loadlinev1.Placeholder_RESERVED:
		return "biggest pod"
	case loadlinev1.Placeholder_MIRRORED:
		return "copy"
	}
	return kind.String()
}

// shapeLabel names what placeholders stand for: a class, or who asks for copies.
func (p *slackPlan) shapeLabel(s *loadlinev1.ShapeSlack) string {
	for _, mirrored := range p.GetMirrored() {
		if mirrored.GetKey() == s.GetOwner() && len(mirrored.GetSources()) > 0 {
			return mirrored.GetSources()[0]
		}
	}
	return s.GetOwner()
}

func (p *slackPlan) data() slackAnswer {
	out := slackAnswer{Placeholders: []slackShape{}, Classes: []slackClass{}, Mirrored: []slackMirrored{},
		Nodes: []slackNodes{}}
	for _, s := range p.GetShapes() {
		out.Placeholders = append(out.Placeholders, slackShape{p.shapeLabel(s), slackKind(s.GetKind()),
			s.GetSize().GetMilliCpu(), s.GetSize().GetMemoryBytes(), s.GetCount(), s.GetPlaced()})
	}
	for _, c := range p.GetClasses() {
		out.Classes = append(out.Classes,
			slackClass{c.GetName(), c.GetNodes(), slackAmountsOf(c.GetBasis()), slackAmountsOf(c.GetExtra()),
				slackAmountsOf(c.GetSum()), slackAmountsOf(c.GetReady()), c.GetCount(), c.GetPlaced(),
				slackStatus(c.GetStatus()), c.GetReason(), p.nodesFor(c.GetName())})
	}
	for _, m := range p.GetMirrored() {
		out.Mirrored = append(out.Mirrored, slackMirrored{m.GetKey(), m.GetSources(), m.GetWanted(), m.GetCount(),
			m.GetPlaced(), slackStatus(m.GetStatus()), m.GetReason()})
	}
	for _, d := range p.GetDemands() {
		out.Nodes = append(out.Nodes, slackNodes{d.GetClassName(), d.GetNodes()})
	}
	for _, wrong := range p.GetErrors() {
		out.Errors = append(out.Errors, slackError{wrong.GetSource(), wrong.GetText()})
	}
	if total := p.GetErrorsTotal(); total > int64(len(out.Errors)) {
		out.ErrorsTotal = total
	}
	if total := p.GetClassesTotal(); total > int64(len(out.Classes)) {
		out.ClassesTotal = total
	}
	out.OtherNodes = otherNodesOf(p.GetOtherNodes())
	out.CutShortBy, out.Remarks = p.GetCutShort(), p.remarks
	if l := p.GetLiteral(); l != nil {
		out.Literal = &slackLiteral{Placeholders: l.GetPlaceholders(), CPUMilli: l.GetMilliCpu(),
			MemoryBytes:    l.GetMemoryBytes(),
			RemainingCPU2a: l.GetAfterBiggestMilliCpu(), RemainingMemory2a: l.GetAfterBiggestMemoryBytes(),
			RemainingCPU2b: l.GetAfterHullMilliCpu(), RemainingMemory2b: l.GetAfterHullMemoryBytes()}
		if cpu := l.GetCapacity().GetMilliCpu(); cpu > 0 {
			out.Literal.PercentOfCapacity = 100 * l.GetMilliCpu() * float64(l.GetPlaceholders()) / float64(cpu)
		}
	}
	return out
}

// slackTables show the placeholders, and how much room each class of nodes keeps.
var slackTables = []table{
	{rows: "placeholders", columns: []column{{header: "PLACEHOLDER", path: "kind"},
		{header: "FOR", text: classOf("shape")},
		amount("CPU", "cpu", "cpuMilli"), amount("MEMORY", "memory", "memoryBytes"),
		{header: "COUNT", path: "count", right: true}, {header: "FIT NOW", path: "placed", right: true}}},
	{rows: "classes", columns: []column{{header: "CLASS", text: classOf("name")},
		{header: "NODES", path: "nodes", right: true},
		amount("WANTED CPU", "cpu", "wanted.cpuMilli"), amount("MEMORY", "memory", "wanted.memoryBytes"),
		amount("READY CPU", "cpu", "ready.cpuMilli"), amount("MEMORY", "memory", "ready.memoryBytes"),
		{header: "MORE NODES", path: "moreNodes", right: true},
		{header: "STATUS", text: func(r row) string {
			return reasonText(r.str("status"), classText(r.str("reason")), "")
		}}}},
}

var memoryOfClass = regexp.MustCompile(`\bmemory \d+\b`)

// classOf shows the name of a class, or of who asks for copies, with memory as people write it.
func classOf(key string) func(row) string {
	return func(r row) string { return classText(r.str(key)) }
}

// classText returns a text with the memory of each class in it as people write it.
func classText(text string) string {
	return memoryOfClass.ReplaceAllStringFunc(text, func(memory string) string {
		bytes, err := strconv.ParseInt(strings.TrimPrefix(memory, "memory "), 10, 64)
		if err != nil {
			return memory
		}
		return "memory " + report.FormatAmount("memory", bytes)
	})
}

// shown is the answer of `slack` in tables and lines.
func (p *slackPlan) shown() answer {
	return answer{verdict: p.verdict(), tables: slackTables, lines: slices.Concat(p.mirroredNotes(), p.notes())}
}

func (p *slackPlan) forms() answer {
	a := p.shown()
	a.data, a.page, a.leftOut = p.data(), p.page, &p.leftOut
	return a
}

// mirroredNotes say why copies are not kept as wished.
func (p *slackPlan) mirroredNotes() (notes []string) {
	for _, m := range p.data().Mirrored {
		if m.Reason != "" {
			notes = append(notes, fmt.Sprintf("%v: %s", m.Sources, classText(m.Reason)))
		}
	}
	return notes
}

// isOnlyMissing says whether all that does not fit now waits for nodes which are to come: nothing keeps it away.
func (p *slackPlan) isOnlyMissing() bool {
	var all []loadlinev1.SlackStatus
	for _, c := range p.GetClasses() {
		all = append(all, c.GetStatus())
	}
	for _, m := range p.GetMirrored() {
		all = append(all, m.GetStatus())
	}
	return slices.Contains(all, loadlinev1.SlackStatus_SLACK_MISSING) &&
		!slices.Contains(all, loadlinev1.SlackStatus_SLACK_LIMITED) &&
		!slices.Contains(all, loadlinev1.SlackStatus_SLACK_UNPLACEABLE)
}

// verdict is the outcome in one line.
func (p *slackPlan) verdict() string {
	var count, placed, nodes int64
	for _, s := range p.GetShapes() {
		count, placed = count+s.GetCount(), placed+s.GetPlaced()
	}
	for _, d := range p.GetDemands() {
		nodes += d.GetNodes()
	}
	if count == 0 {
		return "no room is to be kept free"
	}
	verb := agree(count, "fits", agree(placed, "fits", "fit"))
	text := fmt.Sprintf("%d of %s %s now", placed, plural(int(count), "placeholder"), verb)
	if placed == count {
		return text
	}
	others, fits := agree(count-placed, "the other", "the others"), agree(count-placed, " fits", " fit")
	if placed == 0 {
		others, fits = agree(count, "it", "them"), agree(count, "it fits", "they fit")
	} else {
		fits = others + fits
	}
	if nodes > 0 {
		text += fmt.Sprintf("; %s would take %s", plural(int(nodes), "more node"), others)
	} else if p.isOnlyMissing() {
		text += "; " + fits + " on nodes that are to come anyway"
	}
	return text
}

// notes are sentences on what holds for all classes.
func (p *slackPlan) notes() []string {
	of := "what pods request"
	if p.basis == "capacity" {
		of = "what nodes offer"
	}
	notes := []string{fmt.Sprintf("Wanted: %s of %s, without what comes with each node.", p.rate, of)}
	if p.pending > 0 {
		text := fmt.Sprintf("%s for a node, and %s before placeholders", plural(p.pending, "pod")+waits(p.pending),
			agree(int64(p.pending), "comes", "come"))
		if p.forPods > 0 {
			text += fmt.Sprintf(": %s for pods would come", plural(int(p.forPods), "new node"))
		}
		notes = append(notes, text+".")
	}
	notes = append(notes, p.remarks...)
	notes = append(notes, noteOtherNodes(p.GetOtherNodes(), [2]string{"holds no slack", "hold no slack"})...)
	for _, node := range p.GetOvercommittedNodes() {
		notes = append(notes, "Pods on "+node+" request more than it has.")
	}
	if shown := len(p.GetClasses()); p.GetClassesTotal() > int64(shown) {
		notes = append(notes, fmt.Sprintf("The first %d of %d classes are told.", shown, p.GetClassesTotal()))
	}
	notes = append(notes,
		cutShortLines("Some placeholders may have no node, and no node is asked for them", p.GetCutShort())...)
	return append(notes, p.literalNotes()...)
}

// wrong says which wishes for copies cannot be met.
func (p *slackPlan) wrong() []string {
	var out []string
	for _, wrong := range p.GetErrors() {
		out = append(out, fmt.Sprintf("%s: %s", wrong.GetSource(), wrong.GetText()))
	}
	if further := p.GetErrorsTotal() - int64(len(out)); further > 0 {
		out = append(out, fmt.Sprintf("%d more %s for copies cannot be met", further, agree(further, "wish", "wishes")))
	}
	return out
}

func waits(count int) string { return agree(int64(count), " waits", " wait") }

// agree returns the form of a verb that agrees with a number.
func agree(count int64, one, many string) string {
	if count == 1 {
		return one
	}
	return many
}

// literalNotes say what the formulas as they stand lead to.
func (p *slackPlan) literalNotes() []string {
	l := p.GetLiteral()
	if l == nil {
		return nil
	}
	notes := []string{
		fmt.Sprintf("As the proposal's version 1 is written: %s of %s cpu and %s memory, which is the "+
			"whole cluster over again at every rate; a cluster that grows for them never comes to rest.",
			plural(int(l.GetPlaceholders()), "placeholder"), report.FormatAmount("cpu", int64(l.GetMilliCpu())),
			report.FormatAmount("memory", int64(l.GetMemoryBytes())))}
	for _, idea := range []struct {
		name        string
		cpu, memory float64
	}{{"2, first idea", l.GetAfterBiggestMilliCpu(), l.GetAfterBiggestMemoryBytes()},
		{"2, second idea", l.GetAfterHullMilliCpu(), l.GetAfterHullMemoryBytes()}} {
		note := fmt.Sprintf("Version %s: %.0fm cpu and %s memory remain for %s", idea.name, idea.cpu,
			signed(idea.memory), plural(int(l.GetPlaceholders()), "placeholder"))
		if idea.cpu < 0 || idea.memory < 0 {
			note += ": less than nothing, which no pod can request"
		}
		notes = append(notes, note+".")
	}
	return notes
}

// signed writes an amount of memory that may be below zero.
func signed(bytes float64) string {
	if bytes < 0 {
		return "-" + report.FormatAmount("memory", int64(-bytes))
	}
	return report.FormatAmount("memory", int64(bytes))
}

func (p *slackPlan) nodesFor(class string) int64 {
	for _, d := range p.GetDemands() {
		if d.GetClassName() == class {
			return d.GetNodes()
		}
	}
	return 0
}

func (p *slackPlan) page(w io.Writer) error {
	page := report.SlackPage{Title: "Room for pods to come", Verdict: p.verdict(),
		Lines: slices.Concat(p.notes(), leftOutLines(&p.leftOut), p.mirroredNotes())}
	data := p.data()
	for _, c := range data.Classes {
		reason := reasonText(c.Status, classText(c.Reason), "")
		if c.MoreNodes > 0 {
			reason += "; " + plural(int(c.MoreNodes), "more node")
		}
		page.Classes = append(page.Classes,
			report.SlackClass{Name: classText(c.Name), Note: plural(int(c.Nodes), "node"), Reason: reason,
				Bars: []report.SlackBar{
					{Resource: "cpu", Wanted: c.Wanted.CPUMilli, Kept: c.Kept.CPUMilli, Ready: c.Ready.CPUMilli},
					{Resource: "memory", Wanted: c.Wanted.MemoryBytes, Kept: c.Kept.MemoryBytes,
						Ready: c.Ready.MemoryBytes}}})
	}
	d, err := documentOf(data)
	if err != nil {
		return err
	}
	if page.Grid, err = slackTables[0].gridOf(d); err != nil {
		return err
	}
	return report.Slack(w, page)
}
