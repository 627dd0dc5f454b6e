package cli

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/dump"
)

// keptCluster is what was read of a cluster, for a command that asks several questions about it. Objects are shared:
// nobody changes one.
type keptCluster struct {
	lists keptLists // of a live one
	dumps keptDumps
}

func newKeptCluster() *keptCluster { return &keptCluster{lists: keptLists{}} }

// keptDumps holds what dumps gave, in their order.
type keptDumps struct {
	given  []func(*dump.Handler) error
	counts dump.Counts
	done   bool
}

// read hands over what the dumps hold. The first time it has them read, and only then says what there is to note.
func (k *keptDumps) read(handler dump.Handler, from func(dump.Handler) (dump.Counts, error)) (dump.Counts, error) {
	if !k.done {
		var err error
		if k.counts, err = from(k.all(handler.Note)); err != nil {
			return k.counts, err
		}
		k.done = true
	}
	for _, give := range k.given {
		if err := give(&handler); err != nil {
			return k.counts, err
		}
	}
	return k.counts, nil
}

// all returns what keeps all that a dump gives, for handlers of clusters.
func (k *keptDumps) all(note func(string)) dump.Handler {
	keep := func(give func(*dump.Handler) error) error {
		k.given = append(k.given, give)
		return nil
	}
	say := func(give func(*dump.Handler)) {
		_ = keep(func(h *dump.Handler) error { give(h); return nil })
	}
	object := func(to func(*dump.Handler) func(any) error) func(any) error {
		return func(object any) error {
			return keep(func(h *dump.Handler) error {
				if take := to(h); take != nil {
					return take(object)
				}
				return nil
			})
		}
	}
	return dump.Handler{Note: note,
		Node:           func(node *v1.Node) error { return keep(func(h *dump.Handler) error { return h.Node(node) }) },
		Pod:            func(pod *v1.Pod) error { return keep(func(h *dump.Handler) error { return h.Pod(pod) }) },
		Object:         object(func(h *dump.Handler) func(any) error { return h.Object }),
		PlannerObject:  object(func(h *dump.Handler) func(any) error { return h.PlannerObject }),
		Broken:         func(b dump.Broken) { say(func(h *dump.Handler) { h.Broken(b) }) },
		At:             func(at time.Time) { say(func(h *dump.Handler) { h.At(at) }) },
		SpreadSelector: func(p types.NamespacedName, s []byte) { say(func(h *dump.Handler) { h.SpreadSelector(p, s) }) },
	}
}
