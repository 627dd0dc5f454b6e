package cli

import (
	"context"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/report"
)

// topLine is how loaded the nodes are under a load line.
type topLine struct {
	// NodesAbove are above it: they take no more pods that would add to it.
	NodesAbove int           `json:"nodesAbove"`
	Nodes      []topLineNode `json:"nodes"`
}

type topLineNode struct {
	Node     string `json:"node"`
	Resource string `json:"resource"`
	// Line is limits over allocatable, of this node.
	Line string `json:"line"`
	// Limits are what the pods count as, by the rules of the line; AtMost is what they may.
	Limits int64 `json:"limits"`
	AtMost int64 `json:"atMost"`
	// Headroom is what is left; below 0: the node is above the line.
	Headroom int64 `json:"headroom"`
}

// loadLine asks how loaded the nodes are under a line.
func (c *cluster) loadLine(ctx context.Context, line *loadlinev1.LoadLine) (*topLine, error) {
	out := &topLine{}
	err := c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		answer, err := loadlinev1.NewSchedulerExtenderClient(c.conn).CheckLoadLine(ctx,
			&loadlinev1.CheckLoadLineRequest{Changes: at, Line: line, WithNodes: true})
		if err != nil {
			return err
		}
		*out = topLine{NodesAbove: int(answer.GetNodesAbove())}
		for _, node := range answer.GetNodes() {
			for _, amount := range node.GetResources() {
				out.Nodes = append(out.Nodes, topLineNode{Node: node.GetNode(), Resource: amount.GetResource(),
					Line: amount.GetMaxLimitsOverAllocatable(), Limits: amount.GetLimits(), AtMost: amount.GetCeiling(),
					Headroom: amount.GetCeiling() - amount.GetLimits()})
			}
		}
		return nil
	})
	if err != nil {
		return nil, engineError(err)
	}
	return out, nil
}

// of returns the line as it is for these nodes, in their order.
func (l *topLine) of(nodes []report.Node) *topLine {
	if l == nil {
		return nil
	}
	byNode := map[string][]topLineNode{}
	for _, node := range l.Nodes {
		byNode[node.Node] = append(byNode[node.Node], node)
	}
	out := &topLine{NodesAbove: l.NodesAbove, Nodes: []topLineNode{}}
	for _, node := range nodes {
		out.Nodes = append(out.Nodes, byNode[node.Name]...)
	}
	return out
}

// part shows the line below the load of the nodes.
func (l *topLine) part() answer {
	resource := func(header, key string) column {
		return column{header: header, right: true, text: func(r row) string {
			return report.FormatAmount(r.str("resource"), r.whole(key))
		}}
	}
	return answer{at: "line", verdict: plural(l.NodesAbove, "node") + " above the load line.", tables: []table{
		{rows: "nodes", aside: true, columns: []column{{header: "NODE", path: "node"}, {header: "RESOURCE", path: "resource"},
			{header: "LINE", path: "line", right: true}, resource("LIMITS COUNTED", "limits"), resource("AT MOST", "atMost"),
			{header: "HEADROOM", right: true, text: func(r row) string {
				if headroom := r.whole("headroom"); headroom < 0 {
					return "above by " + report.FormatAmount(r.str("resource"), -headroom)
				}
				return report.FormatAmount(r.str("resource"), r.whole("headroom"))
			}}}}}}
}
