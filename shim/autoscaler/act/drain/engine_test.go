package drain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
)

// brokenEngine fails where `fail` says so.
type brokenEngine struct {
	Engine
	fail func(q *loadlinev1.StepRemovalRequest) error
}

func (e brokenEngine) StepRemoval(ctx context.Context, q *loadlinev1.StepRemovalRequest,
	options ...grpc.CallOption) (*loadlinev1.StepRemovalResponse, error) {
	if err := e.fail(q); err != nil {
		return nil, err
	}
	return e.Engine.StepRemoval(ctx, q, options...)
}

// An engine that is away for a minute delays a removal. One that stays away, or refuses a question, ends it: the node
// is given back. Once the cloud was asked, what it has answered counts.
func TestEngineIsAway(t *testing.T) {
	unknown := status.Error(codes.Unavailable, "no")
	for name, c := range map[string]struct {
		code   codes.Code
		away   time.Duration
		asked  bool  // only then
		cloud  error // its answer
		want   Result
		clean  bool
		atMost time.Duration
	}{
		"AMinute": {code: codes.Unavailable, away: time.Minute, want: NodeDeleteOK, atMost: 70 * time.Second},
		"IsBusy":  {code: codes.ResourceExhausted, away: time.Minute, want: NodeDeleteOK, atMost: 70 * time.Second},
		"ForEver": {code: codes.Unavailable, away: time.Hour, want: ErrorInternal, clean: true, atMost: 3 * time.Minute},
		"Refuses": {code: codes.InvalidArgument, away: time.Hour, want: ErrorInternal, clean: true},
		"CloudHasTakenIt": {code: codes.Unavailable, away: time.Hour, asked: true, want: NodeDeleteOK,
			atMost: 5 * time.Second},
		"CloudHasRefused": {code: codes.Unavailable, away: time.Hour, asked: true, cloud: errors.New("no"),
			want: ErrorFailedDelete, clean: true, atMost: 5 * time.Second},
		"NobodyKnows": {code: codes.InvalidArgument, away: time.Hour, asked: true, cloud: unknown, want: ErrorFailedDelete,
			atMost: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, began := w.actuator(testOptions()), time.Now()
				a.engine = brokenEngine{Engine: a.engine, fail: func(q *loadlinev1.StepRemovalRequest) error {
					if q.State != nil && time.Since(began) < c.away && (q.Asked != nil || !c.asked) {
						return status.Error(c.code, "told to fail")
					}
					return nil
				}}
				if c.cloud != nil {
					w.cloudFails, w.cloudError = []string{"n"}, c.cloud
				}
				if _, err := a.Start(t.Context(), emptyOf(w.addNode("n"))); err != nil {
					t.Fatal(err)
				}
				a.Wait()
				ended := a.TakeEnded()
				if len(ended) != 1 || ended[0].Result != c.want || clean(w.node("n")) != c.clean ||
					time.Since(began) > c.atMost {
					t.Errorf("after %v ended %v, node %v", time.Since(began), ended, w.node("n").Spec)
				}
			})
		})
	}
}
