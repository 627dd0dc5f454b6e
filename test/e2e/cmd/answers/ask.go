package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/view"
)

// loops is how often each cluster is asked about. Between two loops the nodes that started to go are gone.
const loops = 3

type asker struct {
	conn      engine.Conn
	planner   loadlinev1.AutoscalerClient
	scheduler loadlinev1.SchedulerExtenderClient

	answers, refusals int
	going, coming     int // nodes that start to go, and that are to come, over all loops
}

func newAsker(library string) (*asker, error) {
	path, err := filepath.Abs(library)
	if err != nil {
		return nil, err
	}
	conn, err := engine.Open("inprocess://" + path)
	if err != nil {
		return nil, err
	}
	return &asker{conn: conn, planner: loadlinev1.NewAutoscalerClient(conn),
		scheduler: loadlinev1.NewSchedulerExtenderClient(conn)}, nil
}

// ask returns the hash of all answers about the cluster of a seed.
func (a *asker) ask(ctx context.Context, seed uint64) ([]byte, error) {
	scenario := newScenario(seed)
	v := view.NewForPlanning(a.conn, "answers")
	v.Complete(allKinds...)
	if err := scenario.fill(v); err != nil {
		return nil, err
	}
	sum := sha256.New()
	for loop := range loops {
		if err := v.Sync(ctx); err != nil {
			return nil, err
		}
		gone, err := a.loop(ctx, v, scenario, loop, sum)
		if err != nil {
			return nil, err
		}
		scenario.remove(v, gone)
	}
	return sum.Sum(nil), nil
}

// loop asks all questions of one loop, and returns the slots of nodes that start to go.
func (a *asker) loop(ctx context.Context, v *view.View, s *scenario, loop int, sum hash.Hash) ([]int32, error) {
	var removals []*loadlinev1.NodeRemoval
	err := v.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		q := s.questions(v, at, loop)
		// What one of the stateful questions remembers, another one would take for its own.
		if s.seed%2 == 0 {
			plan, refusal := a.planner.PlanLoop(ctx, q.loop)
			removals = plan.GetScaleDown().GetRemove()
			for _, growth := range plan.GetGrowth() {
				a.coming += int(growth.GetNodesForPods() + growth.GetNodesForSlack())
			}
			err = a.note(sum, plan, refusal)
		} else {
			drain, refusal := a.planner.PlanDrain(ctx, q.drain)
			removals = drain.GetRemove()
			slack, second := a.planner.PlanSlack(ctx, q.slack)
			err = errors.Join(a.note(sum, drain, refusal), a.note(sum, slack, second))
		}
		grow, refusal := a.planner.PlanScaleUp(ctx, q.grow)
		err = errors.Join(err, a.note(sum, grow, refusal))
		estimate, refusal := a.planner.EstimateScaleUp(ctx, q.estimate)
		err = errors.Join(err, a.note(sum, estimate, refusal))
		fit, refusal := a.scheduler.Fit(ctx, q.fit)
		err = errors.Join(err, a.note(sum, fit, refusal))
		score, refusal := a.scheduler.Score(ctx, q.score)
		return errors.Join(err, a.note(sum, score, refusal))
	})
	var gone []int32
	for _, removal := range removals {
		if removal.GetStart() {
			gone = append(gone, removal.GetSlot())
		}
	}
	a.going += len(gone)
	return gone, err
}

// note adds an answer, or the text of a refusal, to the hash.
func (a *asker) note(sum hash.Hash, answer proto.Message, refusal error) error {
	if refusal != nil {
		a.refusals++
		_, err := fmt.Fprintln(sum, status.Code(refusal), status.Convert(refusal).Message())
		return err
	}
	a.answers++
	switch m := answer.(type) {
	case *loadlinev1.PlanDrainResponse:
		forgetOwners(m.GetState())
	case *loadlinev1.PlanLoopResponse:
		forgetOwners(m.GetState().GetDrain())
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(sum, "%d:%s", len(bytes), bytes)
	return err
}

// forgetOwners takes the hashes of owners out of a state: only one build has to understand them.
func forgetOwners(state *loadlinev1.DrainState) {
	for _, owner := range state.GetPods() {
		owner.Owner = 0
	}
	slices.SortFunc(state.GetPods(), func(a, b *loadlinev1.OwnerPods) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetPods(), b.GetPods()),
			cmp.Compare(a.GetFinished(), b.GetFinished()))
	})
}
