package cli

import (
	"fmt"
	"strings"

	"loadline.dev/shim/report"
)

// topAnswer is the answer of `top` as data. Amounts: cpu in millicores, every other resource in its own unit.
type topAnswer struct {
	Nodes []topNode `json:"nodes"`
	// Selector chose the nodes; all else counts all nodes of the cluster. Empty: all are there.
	Selector string `json:"selector,omitempty"`
	// Total sums the nodes that offer a resource, without virtual ones, as does Max.
	Total []topResource `json:"total"`
	// Max is the highest limits ratio of each resource.
	Max         []topMax `json:"max"`
	PendingPods int      `json:"pendingPods"`
	// Line is how loaded the nodes shown are under the load line, if there is one.
	Line *topLine `json:"line,omitempty"`
}

type topNode struct {
	Node string `json:"node"`
	// Kind is "control plane" or "virtual" of a node that is no machine.
	Kind      string        `json:"kind,omitempty"`
	Resources []topResource `json:"resources"`
}

type topResource struct {
	Resource    string `json:"resource"`
	Allocatable int64  `json:"allocatable"`
	Limits      int64  `json:"limits"`
	Requests    int64  `json:"requests"`
	// Ratios over allocatable; null where the resource is not offered.
	LimitsRatio   *float64 `json:"limitsRatio"`
	RequestsRatio *float64 `json:"requestsRatio"`
}

type topMax struct {
	Resource    string  `json:"resource"`
	Node        string  `json:"node"`
	LimitsRatio float64 `json:"limitsRatio"`
}

func (t *top) data() topAnswer {
	out := topAnswer{Nodes: []topNode{}, Total: []topResource{}, Max: []topMax{}, PendingPods: t.placement.PendingPods,
		Selector: t.nodes.text}
	for _, node := range t.shown() {
		line := topNode{Node: node.Name, Kind: kindName(t.kinds[node.Name]), Resources: []topResource{}}
		for _, resource := range t.resources {
			line.Resources = append(line.Resources, newTopResource(resource, node.Resources[resource]))
		}
		out.Nodes = append(out.Nodes, line)
	}
	for _, resource := range t.resources {
		out.Total = append(out.Total, newTopResource(resource, report.Summarize(t.counted, resource).Total))
		if highest, ok := t.highest(resource); ok {
			out.Max = append(out.Max, highest)
		}
	}
	out.Line = t.line.of(t.shown())
	return out
}

func newTopResource(resource string, a report.Amounts) topResource {
	out := topResource{Resource: resource, Allocatable: a.Allocatable, Limits: a.Limits, Requests: a.Requests}
	if limits, ok := a.Ratio(); ok {
		requests, _ := a.RequestsRatio()
		out.LimitsRatio, out.RequestsRatio = &limits, &requests
	}
	return out
}

// highest returns the node with the highest limits ratio, of equals the first by name; false without one.
func (t *top) highest(resource string) (topMax, bool) {
	best, found := topMax{Resource: resource}, false
	for _, node := range t.counted.Nodes {
		ratio, ok := node.Resources[resource].Ratio()
		if !ok {
			continue
		}
		if !found || ratio > best.LimitsRatio || ratio == best.LimitsRatio && node.Name < best.Node {
			best.Node, best.LimitsRatio, found = node.Name, ratio, true
		}
	}
	return best, found
}

// tables has a row for each node, and below them one for all nodes together and one for the highest ratios.
func (t *top) tables() []table {
	columns := []column{{header: "NODE", path: "node"}}
	if len(t.kinds) > 0 {
		columns = append(columns, column{header: "KIND", blank: true, text: func(r row) string { return r.str("kind") }})
	}
	for _, resource := range t.resources {
		name := strings.ToUpper(resource)
		columns = append(columns, shareColumn(name+" LIMITS", resource, "limits"),
			shareColumn(name+" REQUESTS", resource, "requests"))
	}
	return []table{{rows: "nodes", kind: "node", name: "node", columns: columns, foot: func(d document) []row {
		return []row{{"node": "TOTAL", "resources": d["total"]}, {"node": "MAX", "resources": d["max"]}}
	}}}
}

// shareColumn shows limits or requests over allocatable, such as "14.0 cpu / 8.0 = 1.75"; where there is no amount, the
// ratio alone.
func shareColumn(header, resource, amount string) column {
	return column{header: header, right: true, blank: true, text: func(r row) string {
		for _, of := range document(r).list(table{rows: "resources"}) {
			if of.str("resource") != resource {
				continue
			}
			offered := of[amount+"Ratio"] != nil
			ratio := of.num(amount + "Ratio")
			switch _, known := of["allocatable"]; {
			case !known && offered:
				return report.FormatRatio(ratio)
			case !known:
				return ""
			case !offered && amount == "limits":
				return "none offered"
			case !offered:
				return ""
			}
			return fmt.Sprintf("%s / %s = %s", withUnit(resource, of.whole(amount)),
				evenAmount(resource, of.whole("allocatable")), report.FormatRatio(ratio))
		}
		return "-"
	}}
}

// withUnit writes an amount with its unit, where the amount itself does not show it.
func withUnit(resource string, amount int64) string {
	if resource == "cpu" {
		return evenAmount(resource, amount) + " cpu"
	}
	return evenAmount(resource, amount)
}

// evenAmount is report.FormatAmount with at least one decimal for cores, so that columns of them line up.
func evenAmount(resource string, amount int64) string {
	text := report.FormatAmount(resource, amount)
	if resource == "cpu" && !strings.Contains(text, ".") {
		return text + ".0"
	}
	return text
}
