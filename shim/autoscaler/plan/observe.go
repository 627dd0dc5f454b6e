package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/text"
)

// slotOf returns the slot of a node; nil: the engine does not hold it.
type slotOf func(node string) *int32

// groupMessages are the groups as the cloud shows them, but for the nodes of their machines.
func (o *Loop) groupMessages() []*loadlinev1.LoopGroup {
	templates := o.templates()
	messages := make([]*loadlinev1.LoopGroup, len(o.Groups))
	for i, g := range o.Groups {
		judged := judge{}
		shrinks, seen := judged.optionsOf(g.Group)
		if len(judged.doubts) > 0 {
			o.warn("node group %s: these options count as not stated: %s", g.ID, strings.Join(judged.doubts, "; "))
		}
		growth := &loadlinev1.ScalableGroup{NodeGroup: g.ID, MaxNodes: Number(g.Max), ProviderUsdPerHour: g.Model.Price,
			NodeUsdPerHour: g.Model.StatedPrice, InstanceType: g.Model.InstanceType}
		growth.TemplateNode, seen.CloudTemplate = templates[g], templates[g] != nil
		seen.Target = Number(g.Target)
		if g.Problem != nil {
			seen.Problem = text.Bound(g.Problem.Error(), MostStatusText)
		}
		for _, instance := range g.Instances {
			machine := machineMessage(instance)
			machine.Slot = &unknownSlot
			seen.Machines = append(seen.Machines, machine)
		}
		messages[i] = &loadlinev1.LoopGroup{Growth: growth, ScaleDown: shrinks, Cloud: seen}
	}
	return messages
}

// place fills in which nodes machines have. `byID`: nodes by provider id.
func place(messages []*loadlinev1.LoopGroup, groups []*Group, byID map[string]*v1.Node, slot slotOf) {
	slotOfMachine := func(id string) *int32 {
		if node := byID[id]; node != nil && id != "" {
			return slot(node.Name)
		}
		return nil
	}
	for i, g := range groups {
		seen := messages[i].Cloud
		if len(seen.Machines) < len(g.Instances) || sizeProblem(g.Group) != nil {
			seen.Machines = nil // a target without those that have a node is a target without any machine
			seen.Target = Number(g.upcoming(func(id string) bool { return slotOfMachine(id) != nil }))
		}
		for j, machine := range seen.Machines {
			machine.Slot = slotOfMachine(g.Instances[j].GetId())
		}
	}
}

// outOfResources is the class of faults, in the cloud's protocol, that say that it has no such machines left, or that a
// quota is used up.
const outOfResources = 1

func machineMessage(instance *externalgrpc.Instance) *loadlinev1.CloudMachine {
	m := &loadlinev1.CloudMachine{}
	if instance.GetId() != "" {
		m.Id = ToldID(instance.GetId())
	}
	switch instance.GetStatus().GetInstanceState() {
	case externalgrpc.InstanceState_INSTANCE_RUNNING:
		m.State = loadlinev1.CloudMachine_RUNNING
	case externalgrpc.InstanceState_INSTANCE_CREATING:
		m.State = loadlinev1.CloudMachine_CREATING
	case externalgrpc.InstanceState_INSTANCE_DELETING:
		m.State = loadlinev1.CloudMachine_DELETING
	}
	if fault := instance.GetStatus().GetErrorInfo(); fault.GetErrorCode() != "" {
		m.Fault = &loadlinev1.MachineFault{Code: text.Bound(fault.GetErrorCode(), mostFaultCode),
			Message:        text.Bound(fault.GetErrorMessage(), mostFaultText),
			OutOfResources: fault.GetInstanceErrorClass() == outOfResources}
	}
	return m
}

// markMessages are the marks of nodes whose removal this program has begun. Names of nodes come in order.
func markMessages(c *watch.Cluster, slot slotOf, acknowledged func(*v1.Node) bool) (marks []*loadlinev1.NodeMark) {
	for _, node := range c.SortedNodes() {
		mark, ours := drain.MarkOf(node)
		at := slot(node.Name)
		if !ours || at == nil {
			continue
		}
		marks = append(marks, &loadlinev1.NodeMark{Slot: *at, SinceS: mark.Since, Cordoned: mark.Cordoned,
			DeletingS: mark.Deleting, Acknowledged: acknowledged(node)})
	}
	return marks
}

// underWayMessages are the removals that go on here.
func underWayMessages(all map[string]drain.UnderWay, slot slotOf) (removals []*loadlinev1.RemovalUnderWay) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		removals = append(removals, &loadlinev1.RemovalUnderWay{Slot: slot(name), NodeGroup: all[name].Group})
	}
	return removals
}

// mostIDBytes is the longest id of a machine that the engine gets.
const mostIDBytes = 100

// ToldID is what the engine calls a machine: by its id, and where that is long or odd, by its hash.
func ToldID(id string) string {
	if len(id) <= mostIDBytes && cloud.IsPlain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:16])
}
