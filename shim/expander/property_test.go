package expander

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/ranking"
)

// randomQuestion asks about a few groups, some of them odd: without a template, without pods or nodes, or of which the
// id is empty.
func randomQuestion(t *testing.T, r *rand.Rand) *question {
	a := asked{templates: map[string]*v1.Node{}}
	for i := range 1 + r.IntN(6) {
		o := askedOption{group: []string{fmt.Sprintf("group-%d", i), "", "ünïcode"}[max(r.IntN(6)-3, 0)],
			nodes: r.Int32N(5) - 1}
		for range r.IntN(4) {
			o.pods = append(o.pods, ordinaryPod("p", fmt.Sprintf("%dm", r.IntN(3000)), "1Gi"))
		}
		if r.IntN(4) > 0 {
			a.templates[o.group] = templateNode("x", fmt.Sprint(r.IntN(9)), "16Gi")
		}
		a.options = append(a.options, o)
	}
	data := generations[r.IntN(3)].encode(t, a)
	q, err := decodeBytes(data, 1+r.IntN(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// randomEngine answers well, wrongly, or not at all.
func randomEngine(r *rand.Rand) fakeEngine {
	return fakeEngine{
		rank: func(_ context.Context, request *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			var places []int32
			for i := range request.GetOptions() {
				places = append(places, int32(i))
			}
			r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
			switch r.IntN(8) {
			case 0:
				return nil, status.Error(codes.Code(1+r.Uint32N(16)), "no")
			case 1:
				return nil, errors.New("no")
			case 2:
				return inOrder(places[:r.IntN(len(places))]...), nil
			case 3:
				return inOrder(append(places, r.Int32())...), nil
			case 4:
				places[r.IntN(len(places))] = r.Int32() - 1<<30
				return inOrder(places...), nil
			case 5:
				panic("a bug")
			}
			return inOrder(places...), nil
		}}
}

// B1: whatever is asked and whatever the engine does, the answer is one of the ids asked about.
func TestTheAnswerIsAlwaysOneOfTheIDsAskedAbout(t *testing.T) {
	keepLog(t)
	r := rand.New(rand.NewPCG(5, 1))
	ranked, fallbacks := 0, map[string]int{}
	for range 3000 {
		engine := randomEngine(r)
		c := chooser{engine: loadlinev1.NewAutoscalerClient(engine), policy: ranking.Default().Proto(),
			guard: guard.New(engine, guard.Options{AtOnce: 1})}
		q := randomQuestion(t, r)
		got := c.choose(t.Context(), q)
		if !slices.ContainsFunc(q.options, func(o option) bool { return o.group == got.group }) {
			t.Fatalf("chose %q of %+v", got.group, q.options)
		}
		if got.fallback == "" {
			ranked++
		} else {
			fallbacks[got.fallback]++
		}
		got.log(q, 0)
	}
	for _, reason := range []string{fallbackDeadline, fallbackUnavailable, fallbackRefused, fallbackBadAnswer,
		fallbackPanic} {
		if fallbacks[reason] == 0 {
			t.Errorf("no choice fell back because of %s: the test tries too little", reason)
		}
	}
	if ranked < 500 {
		t.Errorf("%d choices were ranked: the test tries too little", ranked)
	}
}

// Any bytes are a question or an error, the same one in whatever pieces they come, and a question holds together.
func FuzzDecode(f *testing.F) {
	for _, g := range generations {
		f.Add(g.encode(f, twoGroups()), 7)
	}
	f.Add([]byte{0x0a, 0x00, 0x12, 0x02, 0x0a, 0x00}, 1)
	f.Add([]byte{0x0a, 0x04, 0x2a, 0x02, 0x12, 0x00}, 2)
	f.Add([]byte{0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 3)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		whole, err := decodeBytes(data, max(len(data), 1))
		pieces, err2 := decodeBytes(data, 1+int(uint(size)%64))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole %v, in pieces %v", err, err2)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("whole %+v, in pieces %+v", whole, pieces)
		}
		for _, o := range whole.options {
			last := int32(-1)
			for _, run := range o.pods {
				if run.shape <= last || int(run.shape) >= len(whole.shapes) || run.count < 1 {
					t.Fatalf("runs %v of %d shapes", o.pods, len(whole.shapes))
				}
				last = run.shape
			}
		}
		if len(whole.options) > 0 {
			leastWaste(whole)
		}
	})
}
