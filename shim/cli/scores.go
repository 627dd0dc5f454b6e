package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// answerBytes is what one answer may take: the engine refuses to send more than 4 MiB.
const answerBytes = 3 << 20

// explainChunk returns how many nodes to explain in one answer: names have at most 253 bytes, resources 317.
func explainChunk(resources int) int {
	return max(1, answerBytes/(320+420*resources))
}

// explain returns how the scores of the candidates came about, best first, ties by name.
func (q *podQuestion) explain(ctx context.Context) (*loadlinev1.ExplainResponse, error) {
	if _, err := q.fit(ctx); err != nil {
		return nil, err
	}
	var out *loadlinev1.ExplainResponse
	err := q.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		out, err = q.explainAt(ctx, at)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	slices.SortFunc(out.Nodes, func(a, b *loadlinev1.NodeExplanation) int {
		return cmp.Or(cmp.Compare(b.GetScore(), a.GetScore()), cmp.Compare(a.GetNode(), b.GetNode()))
	})
	return out, nil
}

func (q *podQuestion) explainAt(ctx context.Context, at *loadlinev1.Changes) (*loadlinev1.ExplainResponse, error) {
	client := loadlinev1.NewSchedulerExtenderClient(q.conn)
	how := q.policy.Proto()
	pod := view.ScoredPod(q.pod, how)
	var candidates []int32
	for _, node := range q.fitted.candidates() {
		if slot, ok := q.view.Slot(node); ok {
			candidates = append(candidates, slot)
		}
	}
	slices.Sort(candidates)
	asked := candidates
	if len(asked) == 0 && len(q.fitted.DoesNotFit) > 0 { // no node is ranked: any one tells what the pod counts as
		slot, _ := q.view.Slot(q.fitted.DoesNotFit[0].Node)
		asked = []int32{slot}
	}
	out := &loadlinev1.ExplainResponse{}
	for slots := range slices.Chunk(asked, explainChunk(len(q.policy.CountedResources()))) {
		part, err := client.Explain(ctx,
			&loadlinev1.ExplainRequest{Changes: at, Pod: pod, Policy: how, Slots: candidates, ExplainSlots: slots})
		if err != nil {
			return nil, err
		}
		part.Nodes = append(out.Nodes, part.Nodes...)
		out = part
	}
	if len(candidates) == 0 {
		out.Nodes = nil
	}
	return out, nil
}

// engineError returns what the engine said, without the frame that gRPC puts around it.
func engineError(err error) error {
	if said, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("engine: %s", said.Message())
	}
	return err
}
