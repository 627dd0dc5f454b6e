package fit

import (
	"context"
	"fmt"
	"slices"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/view"
)

// Engine asks a Loadline engine what Upstream asks kube-scheduler's plugins.
type Engine struct {
	conn     engine.Conn
	extender loadlinev1.SchedulerExtenderClient
	view     *view.View
	held     *Cluster // what the view got
}

// NewEngine opens an engine in this process.
func NewEngine(library string) (*Engine, error) {
	conn, err := engine.Open("inprocess://" + library)
	if err != nil {
		return nil, err
	}
	return &Engine{conn: conn, extender: loadlinev1.NewSchedulerExtenderClient(conn)}, nil
}

// Close ends the engine.
func (e *Engine) Close() error { return e.conn.Close() }

var allKinds = []loadlinev1.ObjectKind{
	loadlinev1.ObjectKind_NAMESPACE, loadlinev1.ObjectKind_PERSISTENT_VOLUME,
	loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM,
	loadlinev1.ObjectKind_STORAGE_CLASS, loadlinev1.ObjectKind_CSI_NODE, loadlinev1.ObjectKind_CSI_DRIVER,
	loadlinev1.ObjectKind_DEVICE_CLASS,
}

// Load starts a view anew, with a whole cluster. There may be more objects than the cluster has of the kinds that are
// not complete.
func (e *Engine) Load(ctx context.Context, c *Cluster, complete ...loadlinev1.ObjectKind) error {
	e.view, e.held = view.NewForFilters(e.conn, "fit"), &Cluster{}
	e.view.Complete(complete...)
	for _, err := range []error{
		setAll(e.view, c.Namespaces), setAll(e.view, c.Volumes), setAll(e.view, c.Claims), setAll(e.view, c.Classes),
		setAll(e.view, c.CSINodes), setAll(e.view, c.CSIDrivers), setAll(e.view, c.Devices),
	} {
		if err != nil {
			return err
		}
	}
	return e.Change(ctx, c)
}

func setAll[T any](v *view.View, objects []T) error {
	for _, o := range objects {
		if err := v.SetObject(o); err != nil {
			return err
		}
	}
	return nil
}

// Change brings nodes and pods of the view to those of a cluster, as informers would: only differences are sent.
func (e *Engine) Change(ctx context.Context, c *Cluster) error {
	for _, pod := range e.held.Pods {
		if !slices.Contains(c.Pods, pod) {
			e.view.DeletePod(pod)
		}
	}
	for _, node := range e.held.Nodes {
		if !slices.Contains(c.Nodes, node) {
			e.view.DeleteNode(node.Name)
		}
	}
	for _, node := range c.Nodes {
		if !slices.Contains(e.held.Nodes, node) {
			e.view.SetNode(node)
		}
	}
	for _, pod := range c.Pods {
		if !slices.Contains(e.held.Pods, pod) {
			e.view.SetPod(pod)
		}
	}
	e.held = c
	return e.view.Sync(ctx)
}

// Fit asks about a pod on every node that pods may go to, after moves from the cluster that the view holds.
func (e *Engine) Fit(ctx context.Context, c *Case, pod *loadlinev1.IncomingPod,
	options *loadlinev1.FitOptions) (map[string]Answer, error) {
	slots, err := e.slots(c)
	if err != nil {
		return nil, err
	}
	moves, err := moveProtos(c.Moves, slots)
	if err != nil {
		return nil, err
	}
	var response *loadlinev1.FitResponse
	err = e.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		response, err = e.extender.Fit(ctx, &loadlinev1.FitRequest{
			Changes: at, Moves: moves, Pods: []*loadlinev1.IncomingPod{pod}, Options: options,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := len(response.GetPods()); n != 1 {
		return nil, fmt.Errorf("%d answers for one pod", n)
	}
	return readAnswers(response.GetPods()[0], slots)
}

// slots returns the slot of each node, known or added by a move.
func (e *Engine) slots(c *Case) (map[string]int32, error) {
	slots := map[string]int32{}
	free := int32(0)
	for _, node := range e.held.Nodes {
		slot, ok := e.view.Slot(node.Name)
		if !ok {
			return nil, fmt.Errorf("the view does not know %s", node.Name)
		}
		slots[node.Name] = slot
		free = max(free, slot+1)
	}
	for _, m := range c.Moves {
		if m.Kind == AddNode {
			slots[m.Node.Name] = free
			free++
		}
	}
	return slots, nil
}

func moveProtos(moves []Move, slots map[string]int32) ([]*loadlinev1.Move, error) {
	var out []*loadlinev1.Move
	for _, m := range moves {
		p := &loadlinev1.Move{}
		switch m.Kind {
		case PlacePod:
			pod, err := m.Pod.Marshal() // untrimmed: the engine reads what it needs
			if err != nil {
				return nil, err
			}
			p.Move = &loadlinev1.Move_PlacePod{PlacePod: &loadlinev1.PlacePod{
				Content: &loadlinev1.PlacePod_Pod{Pod: pod}, Slot: slots[m.Pod.Spec.NodeName]}}
		case RemovePod:
			p.Move = &loadlinev1.Move_RemovePod{RemovePod: &loadlinev1.RemovePod{Slot: slots[m.Pod.Spec.NodeName],
				Uid: string(m.Pod.UID)}}
		case AddNode:
			node, err := m.Node.Marshal()
			if err != nil {
				return nil, err
			}
			p.Move = &loadlinev1.Move_AddNode{AddNode: &loadlinev1.AddNode{Slot: slots[m.Node.Name], Node: node}}
		case RemoveNode, GhostNode:
			p.Move = &loadlinev1.Move_RemoveNode{RemoveNode: &loadlinev1.RemoveNode{Slot: slots[m.Node.Name],
				Ghost: m.Kind == GhostNode}}
		case Fork:
			p.Move = &loadlinev1.Move_Fork{Fork: &loadlinev1.Fork{}}
		case Commit:
			p.Move = &loadlinev1.Move_Commit{Commit: &loadlinev1.Commit{}}
		case Revert:
			p.Move = &loadlinev1.Move_Revert{Revert: &loadlinev1.Revert{}}
		}
		out = append(out, p)
	}
	return out, nil
}

// filterNames are kube-scheduler's names, in its default order.
var filterNames = map[loadlinev1.VerdictGroup_Filter]string{
	loadlinev1.VerdictGroup_NODE_UNSCHEDULABLE:  "NodeUnschedulable",
	loadlinev1.VerdictGroup_NODE_NAME:           "NodeName",
	loadlinev1.VerdictGroup_TAINT_TOLERATION:    "TaintToleration",
	loadlinev1.VerdictGroup_NODE_AFFINITY:       "NodeAffinity",
	loadlinev1.VerdictGroup_NODE_PORTS:          "NodePorts",
	loadlinev1.VerdictGroup_NODE_RESOURCES_FIT:  "NodeResourcesFit",
	loadlinev1.VerdictGroup_VOLUME_RESTRICTIONS: "VolumeRestrictions",
	loadlinev1.VerdictGroup_NODE_VOLUME_LIMITS:  "NodeVolumeLimits",
	loadlinev1.VerdictGroup_VOLUME_BINDING:      "VolumeBinding",
	loadlinev1.VerdictGroup_VOLUME_ZONE:         "VolumeZone",
	loadlinev1.VerdictGroup_POD_TOPOLOGY_SPREAD: "PodTopologySpread",
	loadlinev1.VerdictGroup_INTER_POD_AFFINITY:  "InterPodAffinity",
	loadlinev1.VerdictGroup_DYNAMIC_RESOURCES:   "DynamicResources",

	loadlinev1.VerdictGroup_NODE_DECLARED_FEATURES: "NodeDeclaredFeatures",
}

var statusNames = map[loadlinev1.VerdictGroup_StatusClass]string{
	loadlinev1.VerdictGroup_UNSCHEDULABLE:                  Unschedulable,
	loadlinev1.VerdictGroup_UNSCHEDULABLE_AND_UNRESOLVABLE: Unresolvable,
}

// readAnswers returns the answer for each node by its name.
func readAnswers(pod *loadlinev1.PodFit, slots map[string]int32) (map[string]Answer, error) {
	names := map[int32]string{}
	for name, slot := range slots {
		names[slot] = name
	}
	out := map[string]Answer{}
	for _, group := range pod.GetGroups() {
		answer := Answer{Filter: filterNames[group.GetFilter()], Reasons: group.GetReasons(),
			BeforeNodes: group.GetBeforeNodes()}
		switch group.GetVerdict() {
		case loadlinev1.VerdictGroup_FITS:
			answer.Status = Fits
		case loadlinev1.VerdictGroup_CANNOT_JUDGE:
			answer.Status = CannotBeJudged
		case loadlinev1.VerdictGroup_DOES_NOT_FIT:
			answer.Status = statusNames[group.GetStatusClass()]
		}
		for _, slot := range group.GetSlots() {
			answer.Node = names[slot]
			if _, twice := out[answer.Node]; twice || answer.Node == "" || answer.Status == "" {
				return nil, fmt.Errorf("slot %d is answered twice, or nobody's, or without a verdict: %v", slot, group)
			}
			out[answer.Node] = answer
		}
	}
	return out, nil
}
