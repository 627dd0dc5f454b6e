// Package share shares out what there is for one loop among namespaces, so that none keeps the others waiting.
package share

import "slices"

// Item is something that wants a part.
type Item struct {
	Priority  int32
	Namespace string
	Cost      int
}

// Turns share out what there is: those of a higher priority are first, and among equals the namespaces take turns, so
// that no namespace keeps others waiting, however much it asks for. An item that had to wait is first in the next loop.
type Turns struct {
	// next are the first items that had to wait, by how many of their priority and namespace came before them.
	next map[turn]int
	// first is the namespace that begins, of those of one priority.
	first int
}

type turn struct {
	priority  int32
	namespace string
}

// Take returns the positions of the items that are taken, in order, within a limit of their costs; and the turns of the
// next loop. A share is what a namespace may take before it is the turn of the next one. Items come by priority, the
// highest first, and then by namespace. If all fit, all are taken.
func (t Turns) Take(items []Item, limit, share int) (taken []int, after Turns) {
	sum := 0
	for i := range items {
		sum += items[i].Cost
	}
	if sum <= limit {
		for i := range items {
			taken = append(taken, i)
		}
		return taken, Turns{}
	}
	after = Turns{next: map[turn]int{}, first: t.first + 1}
	for from := 0; from < len(items); {
		to := from
		for to < len(items) && items[to].Priority == items[from].Priority {
			to++
		}
		var some []int
		some, limit = t.takeEqual(items, from, to, limit, share, after.next)
		taken = append(taken, some...)
		from = to
	}
	slices.Sort(taken)
	return taken, after
}

// queue is what a namespace wants: positions, in the order in which they are to be taken.
type queue struct {
	turn      turn
	begin     int // position of its first item
	positions []int
	credit    int
}

// takeEqual shares the limit out among items [from, to), which are of one priority, and returns what is left of it.
func (t Turns) takeEqual(items []Item, from, to, limit, share int, next map[turn]int) (taken []int, left int) {
	queues := t.queues(items, from, to)
	for len(queues) > 0 {
		for _, q := range queues {
			q.credit += share
			for len(q.positions) > 0 {
				at := q.positions[0]
				if cost := items[at].Cost; cost > limit {
					// It does not fit any more; smaller ones may. The first one that waits begins next time.
					if _, waits := next[q.turn]; !waits {
						next[q.turn] = at - q.begin
					}
				} else if cost > q.credit {
					break
				} else {
					q.credit -= cost
					limit -= cost
					taken = append(taken, at)
				}
				q.positions = q.positions[1:]
			}
		}
		queues = slices.DeleteFunc(queues, func(q *queue) bool { return len(q.positions) == 0 })
	}
	return taken, limit
}

// queues returns the items [from, to) by namespace, rotated so that another one begins in each loop.
func (t Turns) queues(items []Item, from, to int) []*queue {
	var queues []*queue
	for begin := from; begin < to; {
		end := begin
		q := &queue{turn: turn{items[begin].Priority, items[begin].Namespace}, begin: begin}
		for end < to && items[end].Namespace == items[begin].Namespace {
			end++
		}
		offset := t.next[q.turn] % (end - begin) // some may be gone since
		for i := range end - begin {
			q.positions = append(q.positions, begin+(offset+i)%(end-begin))
		}
		queues = append(queues, q)
		begin = end
	}
	first := t.first % max(1, len(queues))
	return append(slices.Clone(queues[first:]), queues[:first]...)
}
