package engine_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// upgrade is a question of release 0.1.0 in the midst of its work, with its own answer.
type upgrade struct {
	question *loadlinev1.PlanLoopRequest
	released *loadlinev1.PlanLoopResponse
}

func readUpgrade(t *testing.T, path string) *upgrade {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	call := &loadlinev1.RecordedCall{}
	if err := protodelim.UnmarshalFrom(bufio.NewReader(packed), call); err != nil {
		t.Fatal(err)
	}
	u := &upgrade{&loadlinev1.PlanLoopRequest{}, &loadlinev1.PlanLoopResponse{}}
	if err := proto.Unmarshal(call.GetRequest(), u.question); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(call.GetResponse(), u.released); err != nil {
		t.Fatal(err)
	}
	return u
}

// A state that release 0.1.0 has left is gone on from: nothing is bought twice, nothing that runs pods is deleted, and
// timers, back-offs, moves and slack go on. See test/upgrade.
func TestUpgrade(t *testing.T) {
	files, err := filepath.Glob("../../test/upgrade/*.gz")
	if err != nil || len(files) < 12 {
		t.Fatalf("there are %d states: %v", len(files), err)
	}
	seen := map[string]int{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			planner := loadlinev1.NewAutoscalerClient(enginetest.Open(t))
			u := readUpgrade(t, file)
			answer, err := planner.PlanLoop(t.Context(), u.question)
			if err != nil {
				t.Fatal(err)
			}
			if problem := answer.GetFleet().GetStateProblem(); problem != "" {
				t.Errorf("the state is not read: %s", problem)
			}
			u.checkGrowth(t, answer)
			u.checkRemovals(t, answer)
			u.checkTimers(t, answer, seen)
			u.checkSlack(t, answer, seen)
			u.checkFleet(t, answer, seen)
			next := u.carriedOut(answer)
			again, err := planner.PlanLoop(t.Context(), next)
			if err != nil {
				t.Fatal(err)
			}
			if problem := again.GetFleet().GetStateProblem(); problem != "" {
				t.Errorf("its own state is not read: %s", problem)
			}
			(&upgrade{next, answer}).checkTimers(t, again, seen)
			for _, g := range again.GetGrowth() {
				if before := growthOf(answer)[g.GetNodeGroup()]; before > 0 && g.GetNodesForPods() > 0 {
					t.Errorf("group %s grows by %d for pods, and again by %d for the same ones", g.GetNodeGroup(), before,
						g.GetNodesForPods())
				}
			}
		})
	}
	for _, what := range []string{"timers", "removals under way", "back-offs", "moves", "placeholders", "growth"} {
		if seen[what] == 0 && !t.Failed() {
			t.Errorf("no state has %s", what)
		}
	}
}

func growthOf(answer *loadlinev1.PlanLoopResponse) map[string]int64 {
	out := map[string]int64{}
	for _, g := range answer.GetGrowth() {
		out[g.GetNodeGroup()] += g.GetNodesForPods() + g.GetNodesForSlack() + g.GetNodesForMinimum() +
			g.GetNodesForReplacement() + g.GetNodesForUtilization()
	}
	return out
}

// checkGrowth: no group is asked for more nodes than the release would have asked for. The release let no group grow
// whose template it did not get; now its nodes show what a new one is, and it grows by at most a node for each pod that
// waits.
func (u *upgrade) checkGrowth(t *testing.T, answer *loadlinev1.PlanLoopResponse) {
	t.Helper()
	released := growthOf(u.released)
	hasTemplate := map[string]bool{}
	for _, group := range u.question.GetGroups() {
		hasTemplate[group.GetGrowth().GetNodeGroup()] = len(group.GetGrowth().GetTemplateNode()) > 0
	}
	waiting := int64(0)
	for _, pods := range u.question.GetPods() {
		waiting += int64(pods.GetCount())
	}
	for group, nodes := range growthOf(answer) {
		if nodes > released[group] && (hasTemplate[group] || nodes > released[group]+waiting) {
			t.Errorf("group %s grows by %d nodes, the release lets it grow by %d", group, nodes, released[group])
		}
	}
}

// movable counts the pods of a node that have to move before it is removed.
func (u *upgrade) movable(t *testing.T, slot int32) (count int) {
	t.Helper()
	own := u.question.GetOwn()
	stays := map[int32]bool{}
	for _, shape := range own.GetPodShapes() {
		pod := &v1.Pod{}
		if err := pod.Unmarshal(shape.GetPod()); err != nil {
			t.Fatal(err)
		}
		stays[shape.GetId()] = corev1helpers.PodPriority(pod) < -10 // expendable
		for _, owner := range pod.OwnerReferences {
			stays[shape.GetId()] = stays[shape.GetId()] || owner.Kind == "DaemonSet"
		}
	}
	for _, node := range own.GetNodes() {
		for _, pod := range node.GetPods() {
			if node.GetSlot() == slot && !stays[pod.GetShape()] {
				count++
			}
		}
	}
	return count
}

// checkRemovals: a machine that is deleted has no node, and all pods of a node to be removed have a place to move to.
func (u *upgrade) checkRemovals(t *testing.T, answer *loadlinev1.PlanLoopResponse) {
	t.Helper()
	removals := map[int32]*loadlinev1.NodeRemoval{}
	for _, r := range answer.GetScaleDown().GetRemove() {
		removals[r.GetSlot()] = r
	}
	machines := map[string][]*loadlinev1.CloudMachine{}
	for _, g := range u.question.GetGroups() {
		machines[g.GetGrowth().GetNodeGroup()] = g.GetCloud().GetMachines()
	}
	goes := map[int32]bool{}
	for _, r := range u.question.GetFleet().GetUnderWay() {
		goes[r.GetSlot()] = true
	}
	for _, action := range answer.GetFleet().GetActions() {
		for _, i := range action.GetDeleteMachines().GetMachines() {
			if m := machines[action.GetDeleteMachines().GetNodeGroup()][i]; m.Slot != nil {
				t.Errorf("machine %s is deleted, which is a node", m.GetId())
			}
		}
		if _, ok := action.GetAction().(*loadlinev1.LoopAction_RemoveSlot); !ok {
			continue
		}
		r := removals[action.GetRemoveSlot()]
		if goes[action.GetRemoveSlot()] {
			t.Errorf("node %s begins to go, and goes already", r.GetNode())
		}
		moves := 0
		for _, move := range r.GetMoves() {
			if !move.GetPlaceholder() {
				moves++
			}
		}
		if pods := u.movable(t, action.GetRemoveSlot()); !r.GetStart() || moves != pods || r.GetEmpty() != (pods == 0) {
			t.Errorf("node %s goes with %d of %d pods moved, starts: %v, empty: %v", r.GetNode(), moves, pods, r.GetStart(),
				r.GetEmpty())
		}
	}
}

// checkTimers: a node that was not needed is not needed since the same time; one that is removed, is removed since
// then.
func (u *upgrade) checkTimers(t *testing.T, answer *loadlinev1.PlanLoopResponse, seen map[string]int) {
	t.Helper()
	before := u.question.GetState().GetDrain()
	since := map[string]int64{}
	for _, n := range before.GetUnneeded() {
		since[n.GetNode()+" "+n.GetUid()] = n.GetSinceS()
	}
	for _, n := range answer.GetState().GetDrain().GetUnneeded() {
		if was, ok := since[n.GetNode()+" "+n.GetUid()]; ok {
			seen["timers"]++
			if n.GetSinceS() != was {
				t.Errorf("node %s is not needed since %d, and not since %d", n.GetNode(), was, n.GetSinceS())
			}
		}
	}
	deleting := map[string]int64{}
	for _, n := range answer.GetState().GetDrain().GetDeleting() {
		deleting[n.GetNode()+" "+n.GetUid()] = n.GetSinceS()
	}
	started := map[string]bool{}
	for _, name := range u.question.GetProgress().GetStarted() {
		started[name] = true
	}
	for _, n := range before.GetDeleting() {
		if !started[n.GetNode()] {
			continue
		}
		seen["removals under way"]++
		if now, ok := deleting[n.GetNode()+" "+n.GetUid()]; !ok || now != n.GetSinceS() {
			t.Errorf("node %s goes since %d: now known %v, since %d", n.GetNode(), n.GetSinceS(), ok, now)
		}
	}
}

// checkSlack: placeholders that the release keeps are kept under their numbers.
func (u *upgrade) checkSlack(t *testing.T, answer *loadlinev1.PlanLoopResponse, seen map[string]int) {
	t.Helper()
	now := map[int64]string{}
	for _, p := range answer.GetState().GetSlack().GetPlaceholders() {
		now[p.GetId()] = fmt.Sprint(p.GetMilliCpu(), p.GetMemoryBytes())
	}
	kept := map[int64]string{}
	for _, p := range u.released.GetState().GetSlack().GetPlaceholders() {
		kept[p.GetId()] = fmt.Sprint(p.GetMilliCpu(), p.GetMemoryBytes())
	}
	for _, p := range u.question.GetState().GetSlack().GetPlaceholders() {
		if size, ok := kept[p.GetId()]; ok {
			seen["placeholders"]++
			if now[p.GetId()] != size {
				t.Errorf("placeholder %d of size %s: now %q", p.GetId(), size, now[p.GetId()])
			}
		}
	}
}

// checkFleet: groups back off as long as before, and moves go on.
func (u *upgrade) checkFleet(t *testing.T, answer *loadlinev1.PlanLoopResponse, seen map[string]int) {
	t.Helper()
	for i, g := range u.released.GetFleet().GetGroups() {
		now := answer.GetFleet().GetGroups()[i]
		if g.GetBackOff() != nil {
			seen["back-offs"]++
			if now.GetBackOff().GetUntilMilliseconds() != g.GetBackOff().GetUntilMilliseconds() {
				t.Errorf("group %s backs off until %d, not until %d", g.GetNodeGroup(),
					g.GetBackOff().GetUntilMilliseconds(), now.GetBackOff().GetUntilMilliseconds())
			}
		}
		seen["growth"] += int(g.GetComing() + g.GetStarting())
		if now.GetComing()+now.GetStarting() != g.GetComing()+g.GetStarting() {
			t.Errorf("group %s has %d nodes on their way, not %d", g.GetNodeGroup(), g.GetComing()+g.GetStarting(),
				now.GetComing()+now.GetStarting())
		}
	}
	moves := map[string]bool{}
	for _, m := range answer.GetReplacement().GetMoves() {
		moves[fmt.Sprint(m.GetPhase(), m.GetSeconds(), m.GetRemove(), m.GetToCome())] = true
	}
	for _, m := range u.released.GetReplacement().GetMoves() {
		if m.GetSeconds() == 0 {
			continue // it begins in this loop
		}
		seen["moves"]++
		if key := fmt.Sprint(m.GetPhase(), m.GetSeconds(), m.GetRemove(), m.GetToCome()); !moves[key] {
			t.Errorf("move %s is not known; there are %v", key, moves)
		}
	}
}

// carriedOut is the question five seconds later: what was to grow was asked for, and no machine has come yet.
func (u *upgrade) carriedOut(answer *loadlinev1.PlanLoopResponse) *loadlinev1.PlanLoopRequest {
	next := proto.CloneOf(u.question)
	next.NowS += 5
	next.State, next.Progress = answer.GetState(), &loadlinev1.DrainProgress{Started: next.GetProgress().GetStarted()}
	f := next.Fleet
	f.NowMilliseconds += 5000
	f.State, f.First, f.Outcomes, f.Removals, f.Acknowledged = answer.GetFleet().GetState(), false, nil, nil, nil
	for _, action := range answer.GetFleet().GetActions() {
		f.Outcomes = append(f.Outcomes, &loadlinev1.ActionOutcome{Id: action.GetId(), Result: loadlinev1.ActionOutcome_DONE})
		for _, g := range next.GetGroups() {
			switch name := g.GetGrowth().GetNodeGroup(); name {
			case action.GetGrow().GetNodeGroup():
				g.Cloud.Target += int32(action.GetGrow().GetNodes())
			case action.GetTakeBack().GetNodeGroup():
				g.Cloud.Target -= int32(action.GetTakeBack().GetNodes())
			}
		}
	}
	return next
}
