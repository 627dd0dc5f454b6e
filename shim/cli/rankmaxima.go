package cli

import (
	"context"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/view"
)

// clusterMaximum is what all nodes of a cluster may come to together, in one respect.
type clusterMaximum struct {
	resource  string // as the engine names it; empty: nodes
	most, now int64  // those on their way included
	of        func(*v1.Node) int64
	grown     int64 // nodes of `now` that a plan adds
}

// clusterMaxima are those that a question states, with what the nodes come to that are there or on their way.
type clusterMaxima []clusterMaximum

// newClusterMaxima returns the maxima that the question of a loop states.
func newClusterMaxima(q *loadlinev1.PlanLoopRequest) (out clusterMaxima) {
	if most := int64(q.GetMaxNodesTotal()); most > 0 {
		out = append(out, clusterMaximum{most: most, of: func(*v1.Node) int64 { return 1 }})
	}
	if q.MaxCoresTotal != nil && q.GetMaxCoresTotal() < math.MaxInt32 {
		out = append(out, clusterMaximum{resource: "cpu", most: q.GetMaxCoresTotal() * 1000,
			of: func(node *v1.Node) int64 { return node.Status.Allocatable.Cpu().MilliValue() }})
	}
	if q.MaxMemoryTotal != nil {
		out = append(out, clusterMaximum{resource: "memory", most: q.GetMaxMemoryTotal(),
			of: func(node *v1.Node) int64 { return node.Status.Allocatable.Memory().Value() }})
	}
	return out
}

// maxima returns the maxima of the cluster, with what its nodes come to after what a loop has seen and has grow; `e` is
// what groups grow by alone.
func (c *cluster) maxima(ctx context.Context, asked *plan.Plan, loop *loadlinev1.PlanLoopResponse, e *estimated,
	models map[string]*v1.Node) (clusterMaxima, error) {
	countAll := func(virtual map[string]bool) clusterMaxima {
		out := newClusterMaxima(asked.Question)
		for name, node := range c.watched.Nodes {
			out.add(node, !virtual[name])
		}
		for _, sight := range loop.GetFleet().GetGroups() {
			out.count(models[sight.GetNodeGroup()], sight.GetComing())
		}
		for _, growth := range loop.GetGrowth() {
			out.grow(models[growth.GetNodeGroup()], growthOf(growth))
		}
		return out
	}
	out := countAll(nil)
	if !out.bind(e, models) {
		return out, nil
	}
	virtual, err := c.virtualNodes(ctx, asked.Question.GetChanges().GetView(), e.problem)
	return countAll(virtual), err
}

// virtualNodes returns the virtual nodes of no group: what they state is nobody's machine.
func (c *cluster) virtualNodes(ctx context.Context, of string, problem *loadlinev1.ScaleUpProblem) (map[string]bool,
	error) {
	states, err := view.States(ctx, loadlinev1.NewClusterStateClient(c.conn), of)
	if err != nil {
		return nil, err
	}
	grouped := map[int32]bool{}
	for _, group := range problem.GetGroups() {
		for _, slot := range group.GetNodeSlots() {
			grouped[slot] = true
		}
	}
	out := map[string]bool{}
	for _, state := range states {
		if state.GetKind() == loadlinev1.NodeKind_VIRTUAL && !grouped[state.GetSlot()] {
			out[state.GetName()] = true
		}
	}
	return out, nil
}

// add adds a node that is there; one that is no machine offers nothing.
func (m clusterMaxima) add(node *v1.Node, machine bool) {
	for i := range m {
		if machine || m[i].resource == "" {
			m[i].now += m[i].of(node)
		}
	}
}

// count adds nodes of a model, which is nil where nobody knows it.
func (m clusterMaxima) count(model *v1.Node, nodes int64) {
	for i := range m {
		if model != nil || m[i].resource == "" {
			m[i].now += nodes * m[i].of(model)
		}
	}
}

// grow adds nodes that a plan has a group grow by.
func (m clusterMaxima) grow(model *v1.Node, nodes int64) {
	m.count(model, nodes)
	for i := range m {
		m[i].grown += nodes
	}
}

// room returns how many nodes of a model may come, and the text that says why no more may.
func (m clusterMaxima) room(model *v1.Node) (nodes int64, why string) {
	nodes = math.MaxInt64
	for _, maximum := range m {
		if model == nil && maximum.resource != "" {
			continue
		}
		each := maximum.of(model)
		if each <= 0 {
			continue
		}
		if room := max(0, maximum.most-maximum.now) / each; room < nodes {
			maximum.now += room * each
			nodes, why = room, maximum.text(room+maximum.grown, each)
		}
	}
	return nodes, why
}

// text says that no further node may come, each of which counts for so much, after `more` that come.
func (m *clusterMaximum) text(more, each int64) string {
	if m.resource == "" {
		return fmt.Sprintf("the cluster may have %s in all", plural(int(m.most), "node"))
	}
	with, flag, amount, unit := "", "--cores-total", cores, "cores"
	if m.resource == "memory" {
		flag, amount, unit = "--memory-total", gigabytes, "GiB of memory"
	}
	if more > 0 {
		with = fmt.Sprintf("with %d more ", more)
	}
	text := fmt.Sprintf("%sthe cluster has %s of at most %s %s (%s)", with, amount(m.now), amount(m.most), unit, flag)
	if m.now < m.most {
		text += ", and a new node has " + amount(each)
	}
	return text
}

func cores(milli int64) string { return sixDecimals(float64(milli) / 1000) }

func gigabytes(bytes int64) string { return fmt.Sprintf("%.4g", float64(bytes)/(1<<30)) }

// bind says whether some group may grow by less than one node, or than an estimate has it grow.
func (m clusterMaxima) bind(e *estimated, models map[string]*v1.Node) bool {
	return slices.ContainsFunc(e.answer.GetGroups(), func(estimate *loadlinev1.GroupEstimate) bool {
		room, _ := m.room(models[estimate.GetNodeGroup()])
		return room < max(1, int64(estimate.GetNodeCount()))
	})
}

// cap bounds the groups that an estimate has grow further than these maxima allow, and says why, by group; nil: it has
// none do so.
func (m clusterMaxima) cap(e *estimated, models map[string]*v1.Node) (capped map[string]string) {
	for i, estimate := range e.answer.GetGroups() {
		group := e.problem.GetGroups()[i]
		room, why := m.room(models[group.GetNodeGroup()])
		if int64(estimate.GetNodeCount()) <= room {
			continue
		}
		group.MaxNodes = group.GetCurrentNodes() + int32(room)
		if capped == nil {
			capped = map[string]string{}
		}
		capped[group.GetNodeGroup()] = why
	}
	return capped
}

// models returns what new nodes of groups are, as far as that is known.
func (e *estimated) models() (map[string]*v1.Node, error) {
	models := map[string]*v1.Node{}
	for i, estimate := range e.answer.GetGroups() {
		group := e.problem.GetGroups()[i]
		data := estimate.GetModelNode()
		if len(data) == 0 {
			data = group.GetTemplateNode()
		}
		if len(data) == 0 {
			continue
		}
		node := &v1.Node{}
		if err := node.Unmarshal(data); err != nil {
			return nil, err
		}
		models[group.GetNodeGroup()] = node
	}
	return models, nil
}
