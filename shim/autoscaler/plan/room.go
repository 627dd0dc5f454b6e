package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// unknownSlot is the slot of each node until the view is asked: it takes as many bytes as any other one, or more.
var unknownSlot = int32(math.MaxInt32)

func anySlot(string) *int32 { return &unknownSlot }

// part is what one group takes of a question: its template or its machines.
type part struct {
	group    *Group
	message  *loadlinev1.LoopGroup
	machines int // 0: the template
	bytes    int
}

// partsOf returns the parts of groups.
func partsOf(groups []*Group, messages []*loadlinev1.LoopGroup) (parts []part) {
	for i, message := range messages {
		if bytes := len(message.Growth.TemplateNode); bytes > 0 {
			parts = append(parts, part{groups[i], message, 0, bytes})
		}
		if machines := len(message.Cloud.Machines); machines > 0 {
			parts = append(parts, part{groups[i], message, machines, bytesOfMachines(message)})
		}
	}
	return parts
}

func bytesOfMachines(message *loadlinev1.LoopGroup) (bytes int) {
	for _, machine := range message.Cloud.Machines {
		bytes += 1 + protowire.SizeBytes(proto.Size(machine)) // its tag has one byte
	}
	return bytes
}

// shareRoom brings what groups take of a question to what there is room for. At first the texts of faults are
// shortened, those of the largest group first. If that is not enough the smallest parts are taken first, so that none
// keeps others out: the largest group loses, as if all of them had equal shares. A group whose machines are not taken
// is left as it is.
func (o *Loop) shareRoom(request *loadlinev1.PlanLoopRequest) {
	parts := partsOf(o.Groups, request.Groups)
	bytes, machines, left := 0, 0, mostBytes-podBytes-proto.Size(request)
	for _, part := range parts {
		bytes, machines = bytes+part.bytes, machines+part.machines
	}
	if left >= 0 && machines <= mostMachines {
		return
	}
	bySize := func(a, b part) int { return cmp.Compare(a.bytes, b.bytes) }
	slices.SortStableFunc(parts, bySize)
	for i := len(parts) - 1; i >= 0 && left < 0; i-- {
		saved := parts[i].shortenFaults()
		bytes, left = bytes-saved, left+saved
	}
	slices.SortStableFunc(parts, bySize)
	left, machines = left+bytes, mostMachines
	for _, part := range parts {
		if part.bytes > left || part.machines > machines {
			part.leaveOut(o)
			continue
		}
		left, machines = left-part.bytes, machines-part.machines
	}
}

// shortenFaults keeps the message of the first machine with each fault only: the engine counts machines by the codes of
// their faults, and tells the message of one. It returns how many bytes are saved.
func (p *part) shortenFaults() (saved int) {
	type kind struct {
		code           string
		outOfResources bool
	}
	said := map[kind]bool{}
	for _, machine := range p.message.Cloud.Machines[:p.machines] {
		if fault := machine.Fault; fault != nil {
			fault := kind{fault.Code, fault.OutOfResources}
			if said[fault] {
				machine.Fault.Message = ""
			}
			said[fault] = true
		}
	}
	if p.machines > 0 {
		before := p.bytes
		p.bytes = bytesOfMachines(p.message)
		saved = before - p.bytes
	}
	return saved
}

// leaveOut takes a part out of the question.
func (p *part) leaveOut(o *Loop) {
	if p.machines == 0 {
		o.warn("node group %s: its template counts as not told: it takes %.1f MiB, and a question has no room left "+
			"for it", p.group.ID, float64(p.bytes)/(1<<20))
		p.message.Growth.TemplateNode, p.message.Cloud.CloudTemplate = nil, false
		return
	}
	problem := fmt.Errorf("its %d machines take %.1f MiB of a question, which holds %d machines and %d MiB of all groups",
		p.machines, float64(p.bytes)/(1<<20), mostMachines, mostMessageBytes>>20)
	p.message.Cloud.Machines = nil
	if p.group.Problem != nil {
		return
	}
	p.group.Problem, p.message.Cloud.Problem = problem, problem.Error()
	o.warn("node group %s is left as it is: %v", p.group.ID, problem)
}

// unsize takes groups that are left as they are out of those that are sized.
func (o *Loop) unsize(request *loadlinev1.PlanLoopRequest) {
	request.Sized = slices.DeleteFunc(request.Sized, func(sized *loadlinev1.SizedGroup) bool {
		left := o.Group(sized.GetNodeGroup()).Problem != nil
		if left {
			delete(o.Sized, sized.GetNodeGroup())
		}
		return left
	})
	if len(request.Sized) == 0 {
		request.SizePods = nil
	}
}

// upcoming returns how many nodes a group still expects that is left as it is for what it says of itself. Pods are
// planned onto upcoming nodes, so that machines that have a node, or never get one, must not count, and of an
// impossible number none does.
func (g *Group) upcoming(hasNode func(id string) bool) int {
	nodes := g.Target
	for _, instance := range g.Instances {
		machine := machineMessage(instance)
		if machine.State != loadlinev1.CloudMachine_DELETING && (machine.Fault != nil || hasNode(instance.GetId())) {
			nodes--
		}
	}
	if nodes < 0 || nodes > mostUpcoming {
		return 0
	}
	return nodes
}

// roomForPods returns how many bytes of a question pods that wait may take. It is an error if there is no room even
// without them.
func roomForPods(request *loadlinev1.PlanLoopRequest) (int, error) {
	size := proto.Size(request)
	if size <= mostBytes {
		return mostBytes - size, nil
	}
	parts := map[string]proto.Message{"drains": request.Progress, "machines": request.Fleet, "prices": request.Prices,
		"ranking": request.Ranking, "filters": request.Fit,
		"groups":         &loadlinev1.PlanLoopRequest{Groups: request.Groups},
		"DaemonSet pods": &loadlinev1.PlanLoopRequest{DaemonPods: request.DaemonPods},
		"sized groups":   &loadlinev1.PlanLoopRequest{SizePods: request.SizePods}}
	largest, most := "", 0
	for name, part := range parts {
		if bytes := proto.Size(part); bytes > most || bytes == most && name < largest {
			largest, most = name, bytes
		}
	}
	return 0, fmt.Errorf("without any pod that waits, the question has %d bytes, of which %d are of %s; the limit is %d",
		size, most, largest, mostBytes)
}
