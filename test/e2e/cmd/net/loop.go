package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// loops is how often a world is asked about.
const loops = 20

// driver asks an engine about a world, loop after loop.
type driver struct {
	*world
	conn    grpc.ClientConnInterface
	planner loadlinev1.AutoscalerClient
	teller  *teller
}

// drive asks all questions about the world of a seed.
func drive(ctx context.Context, seed uint64, conn grpc.ClientConnInterface) error {
	d := &driver{world: newWorld(seed), conn: conn, planner: loadlinev1.NewAutoscalerClient(conn)}
	for loop := range loops {
		if err := d.loop(ctx, loop); err != nil {
			return fmt.Errorf("seed %d, loop %d: %w", seed, loop, err)
		}
		d.step()
	}
	return nil
}

func (d *driver) loop(ctx context.Context, loop int) (err error) {
	if d.set.own {
		own, v, err := d.own(ctx)
		if err != nil {
			return err
		}
		return d.ask(ctx, v, &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Own{Own: own}})
	}
	if d.teller == nil || d.tag("restarts", d.chance(3)) { // a process that has just begun
		d.asked, d.state = false, nil
		d.teller, err = newTeller(d.world, d.conn)
	} else {
		err = d.teller.update()
	}
	if err != nil {
		return err
	}
	v := d.teller.view
	if err := v.Sync(ctx); err != nil {
		return err
	}
	return v.Ask(ctx, func(at *loadlinev1.Changes) error {
		return d.ask(ctx, v, &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Changes{Changes: at}})
	})
}

// ask puts the questions of one loop, and has the world changed by what the answer says.
func (d *driver) ask(ctx context.Context, v *view.View, of *loadlinev1.PlanLoopRequest) error {
	request := proto.CloneOf(d.set.base)
	request.Cluster = of.Cluster
	d.fill(v, request)
	names := map[int32]string{}
	for _, n := range d.nodes {
		if slot, ok := v.Slot(n.name); ok {
			names[slot] = n.name
		}
	}
	// Stateful questions would take what others remember for their own.
	if !d.set.remembers {
		d.askBeside(ctx, request)
	}
	answer, err := d.planner.PlanLoop(ctx, request)
	if err != nil {
		d.tags["refused"] = true
		answer = nil
	}
	d.act(answer, names)
	return nil
}

// fill states groups, pods that wait, time, and what became of the last answer.
func (d *driver) fill(v *view.View, q *loadlinev1.PlanLoopRequest) {
	q.NowS = d.now
	if !d.set.remembers && d.state != nil {
		q.State = d.state
	}
	q.Progress = &loadlinev1.DrainProgress{Failed: d.failed, Evicted: d.evicted}
	for _, n := range d.nodes {
		if n.removal != nil {
			q.Progress.Started = append(q.Progress.Started, n.name)
		}
	}
	slices.Sort(q.Progress.Started)
	d.fillGroups(v, q)
	d.fillPods(q)
	if d.set.fleet {
		d.fillFleet(v, q)
	}
}

func (d *driver) fillGroups(v *view.View, q *loadlinev1.PlanLoopRequest) {
	for _, g := range d.groups {
		up := &loadlinev1.ScalableGroup{NodeGroup: g.name, MaxNodes: g.most, NodeUsdPerHour: g.price,
			InstanceType: g.kind.name}
		if g.spot {
			up.Spot = new(true)
		}
		switch g.template {
		case byCloud:
			up.TemplateNode = view.TrimNodeForPlanning(g.templateNode())
		case fromNode:
			for _, n := range d.nodes {
				if n.group == g && !n.notReady && n.startup == 0 && n.removal == nil && len(n.taints) == 0 && n.devices == 0 {
					plain := *n
					plain.soft, plain.cordoned, plain.kept = false, false, false
					up.TemplateNode = view.TrimNodeForPlanning(d.nodeObject(&plain))
					break
				}
			}
		}
		down := proto.CloneOf(g.options)
		down.MinNodes = g.least
		message := &loadlinev1.LoopGroup{Growth: up, ScaleDown: down, Priority: g.priority}
		if d.set.fleet {
			message.Cloud = d.cloud(v, g)
		} else {
			up.CurrentNodes, message.NotBegun = g.target, g.notBegun
			for _, n := range d.nodes {
				if slot, ok := v.Slot(n.name); ok && n.group == g {
					down.Slots = append(down.Slots, slot)
				}
			}
			if g.problem != "" {
				message.Held = g.problem
			}
		}
		q.Groups = append(q.Groups, message)
		if g.sized != nil {
			q.Sized = append(q.Sized, &loadlinev1.SizedGroup{NodeGroup: g.name, Options: g.sized,
				Labels: []*loadlinev1.GroupLabel{{Key: "eks.amazonaws.com/nodegroup", Value: g.name}}})
		}
	}
}

func (d *driver) cloud(v *view.View, g *group) *loadlinev1.CloudGroup {
	c := &loadlinev1.CloudGroup{Target: g.target, Problem: g.problem, CloudTemplate: g.template == byCloud}
	for _, m := range g.machines {
		message := &loadlinev1.CloudMachine{Id: m.id, State: loadlinev1.CloudMachine_CREATING, Fault: m.fault}
		if m.node != nil {
			message.State = loadlinev1.CloudMachine_RUNNING
			if slot, ok := v.Slot(m.node.name); ok {
				message.Slot = &slot
			}
			if m.node.removal != nil && m.node.removal.deleting > 0 {
				message.State = loadlinev1.CloudMachine_DELETING
			}
		}
		c.Machines = append(c.Machines, message)
	}
	return c
}

func (d *driver) fillPods(q *loadlinev1.PlanLoopRequest) {
	for _, of := range d.work {
		if of.kind == daemonSet {
			q.DaemonPods = append(q.DaemonPods, trimmedPod(of.podObject(&pod{of: of}, nil)))
			continue
		}
		if len(of.waiting) == 0 {
			continue
		}
		first, youngest := of.waiting[0].made, of.waiting[0].made
		for _, p := range of.waiting {
			first, youngest = min(first, p.made), max(youngest, p.made)
		}
		pods := &loadlinev1.PendingPods{Count: int32(len(of.waiting)), Unschedulable: of.unschedul,
			Pod:                  &loadlinev1.IncomingPod{Pod: trimmedPod(of.podObject(of.waiting[0], nil))},
			FirstAgeMilliseconds: new((d.now - first) * 1000), LastAgeMilliseconds: new((d.now - youngest) * 1000),
			YoungestAgeMilliseconds: new((d.now - youngest) * 1000)}
		if of.delay > 0 {
			pods.ScaleUpDelayMilliseconds = new(of.delay * 1000)
		}
		q.Pods = append(q.Pods, pods)
	}
}

func (d *driver) fillFleet(v *view.View, q *loadlinev1.PlanLoopRequest) {
	f := &loadlinev1.LoopFleet{NowMilliseconds: d.now * 1000, State: d.fleet, First: !d.asked, Acts: true,
		Swaps: d.seed%3 == 0, Outcomes: d.outcomes, Removals: d.removals, Acknowledged: d.acknowledged,
		SoftTaintsTried: d.softTried, Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: 180_000,
			MaxNodeStartupMilliseconds: 240_000, InitialBackOffMilliseconds: 60_000, MaxBackOffMilliseconds: 600_000,
			BackOffResetMilliseconds: 900_000, DeletionPatienceMilliseconds: 300_000, MaxDeletions: 5, OkUnreadyNodes: 3,
			MaxUnreadyPercent: 45, DelayAfterAddMilliseconds: int64(d.seed%4) * 20_000,
			DelayAfterDeleteMilliseconds: int64(d.seed%3) * 10_000, DelayAfterFailureMilliseconds: 60_000,
			MaxSoftTaints: int32(d.seed % 5)}}
	nodes := slices.SortedFunc(slices.Values(d.nodes), func(a, b *node) int { return compare(a.name, b.name) })
	for _, n := range nodes {
		slot, ok := v.Slot(n.name)
		if n.removal == nil || !ok {
			continue
		}
		f.Marks = append(f.Marks, &loadlinev1.NodeMark{Slot: slot, SinceS: n.removal.since, DeletingS: n.removal.deleting,
			Acknowledged: n.removal.deleting > 0})
		if n.group != nil && d.asked {
			f.UnderWay = append(f.UnderWay, &loadlinev1.RemovalUnderWay{Slot: &slot, NodeGroup: n.group.name})
		}
	}
	q.Fleet = f
}

// tagsOf returns what a world has, in order.
func (w *world) tagsOf() []string { return slices.Sorted(maps.Keys(w.tags)) }
