package main

import (
	"fmt"
)

type kind int

const (
	deployment kind = iota
	statefulSet
	job
	daemonSet
	bare
)

// workload is pods that are alike.
type workload struct {
	kind       kind
	namespace  string
	name       string
	milliCPU   int64
	mib        int64
	gpus       int64
	limits     int64 // times the requests; 0: none
	priority   *int32
	replicas   int
	waiting    []*pod
	apart      bool // no two on one node
	spread     int  // 0: none; 1: over hosts, 2: over zones
	maxSkew    int32
	tolerates  bool
	arm        bool   // tolerates arm64 as well: no selector
	zone       string // of its nodes; empty: any
	group      string // of its nodes; empty: any
	budget     *int32 // pods that may be unavailable
	local      bool   // an emptyDir
	volumes    string // the zone of its volumes; empty: none
	safe       string // cluster-autoscaler.kubernetes.io/safe-to-evict
	grace      int64
	copies     int   // of slack
	delay      int64 // pod-scale-up-delay, in seconds
	unschedul  bool  // the scheduler has said that it finds no node
	ageSeconds int64
}

func (w *world) drawWorkload(i int) *workload {
	d := &workload{name: fmt.Sprintf("app-%d", i), namespace: []string{"default", "shop", "batch"}[w.IntN(3)],
		milliCPU: int64(1+w.IntN(30)) * 50, mib: int64(1+w.IntN(48)) * 64, unschedul: true}
	switch {
	case w.chance(15):
		d.kind = statefulSet
	case w.chance(12):
		d.kind = job
	case w.tag("bare-pods", w.chance(4)):
		d.kind = bare
	}
	if w.chance(30) {
		d.limits = int64(1 + w.IntN(3))
	}
	d.arm = w.chance(30)
	d.apart = w.tag("anti-affinity", w.chance(12))
	if w.tag("spread", w.chance(18)) {
		d.spread, d.maxSkew = 1+w.IntN(2), int32(1+w.IntN(2))
	}
	d.tolerates = w.chance(25)
	if w.chance(12) {
		d.zone = w.groups[w.IntN(len(w.groups))].zone
	}
	if w.chance(15) {
		g := w.groups[w.IntN(len(w.groups))]
		d.group, d.tolerates = g.name, d.tolerates || g.tainted
		if g.kind.gpus > 0 && w.chance(70) {
			d.gpus = 1
		}
		d.arm = true
	}
	w.drawRules(d)
	d.replicas = w.IntN(12)
	if w.chance(15) {
		d.replicas += 20
	}
	return d
}

func (w *world) drawRules(d *workload) {
	if w.tag("budget", w.chance(35)) {
		d.budget = new(int32(w.IntN(3)))
	}
	if w.tag("priorities", w.chance(20)) {
		d.priority = new([]int32{-20, 0, 100, 2_000_000_000}[w.IntN(4)])
	}
	d.local = w.tag("local-storage", w.chance(8))
	if d.kind == statefulSet && w.tag("volumes", w.chance(50)) {
		d.volumes = w.groups[w.IntN(len(w.groups))].zone
	}
	if w.chance(10) {
		d.safe = []string{"true", "false"}[w.IntN(2)]
	}
	if w.tag("slack-copies", w.chance(8)) {
		d.copies = 1 + w.IntN(3)
	}
	if w.tag("scale-up-delay", w.chance(5)) {
		d.delay = int64(w.IntN(120))
	}
	if w.tag("not-tried", w.chance(10)) {
		d.unschedul = false
	}
	d.grace = int64(w.IntN(4) * 30)
}

func (w *world) drawDaemon(i int) *workload {
	w.tags["daemons"] = true
	return &workload{kind: daemonSet, namespace: "kube-system", name: fmt.Sprintf("agent-%d", i),
		milliCPU: int64(1+w.IntN(3)) * 50, mib: int64(1+w.IntN(3)) * 64, tolerates: w.chance(80), arm: true,
		unschedul: true}
}

// again has a pod wait under a new name.
func (d *workload) again(w *world) {
	if d.kind != daemonSet {
		d.waiting = append(d.waiting, &pod{of: d, number: w.next(), made: w.now})
	}
}

// permits says whether the rules of pods permit a node, whatever runs there.
func (w *world) permits(d *workload, n *node) bool {
	g := n.group
	if n.removal != nil && d.kind != daemonSet || n.notReady || n.cordoned && d.kind != daemonSet || n.startup > 0 {
		return d.kind == daemonSet && n.startup > 0 && d.tolerates
	}
	if len(n.taints) > 0 && !d.tolerates {
		return false
	}
	if g == nil {
		return d.zone == "" && d.group == "" && d.volumes == ""
	}
	return (d.zone == "" || d.zone == g.zone) && (d.volumes == "" || d.volumes == g.zone) &&
		(d.group == "" || d.group == g.name) && (d.tolerates || !g.tainted) && (d.arm || !g.kind.arm)
}

func (w *world) fits(d *workload, n *node) bool {
	if !w.permits(d, n) || n.milliCPU < d.milliCPU || n.mib < d.mib || n.gpus < d.gpus || len(n.pods) >= 58 {
		return false
	}
	if !d.apart && d.spread == 0 {
		return true
	}
	here := 0
	for _, p := range n.pods {
		if p.of == d {
			here++
		}
	}
	return here == 0 || !d.apart && (d.spread == 2 || here < int(d.maxSkew))
}

// schedule puts pods that wait onto nodes that take them.
func (w *world) schedule() {
	if len(w.nodes) == 0 {
		return
	}
	for _, d := range w.work {
		first := 0
		if !w.set.packs {
			first = w.IntN(len(w.nodes))
		}
		for i := 0; i < len(w.nodes) && len(d.waiting) > 0; i++ {
			n := w.nodes[(first+i)%len(w.nodes)]
			for len(d.waiting) > 0 && w.fits(d, n) {
				w.bind(d.waiting[0], n)
				d.waiting = d.waiting[1:]
				if !w.set.packs && w.chance(50) {
					break
				}
			}
		}
	}
}

// scale gives each workload the pods that it wants.
func (w *world) scale() {
	for _, d := range w.work {
		if d.kind == daemonSet {
			continue
		}
		more := d.replicas - d.count(w)
		for ; more > 0; more-- {
			d.waiting = append(d.waiting, &pod{of: d, number: w.next(), made: w.now - int64(w.IntN(10))})
		}
		for ; more < 0 && len(d.waiting) > 0; more++ {
			d.waiting = d.waiting[:len(d.waiting)-1]
		}
		for ; more < 0; more++ {
			w.endOne(d)
		}
	}
}

func (d *workload) count(w *world) int {
	count := len(d.waiting)
	for _, n := range w.nodes {
		for _, p := range n.pods {
			if p.of == d {
				count++
			}
		}
	}
	return count
}

func (w *world) endOne(d *workload) {
	first := w.IntN(len(w.nodes))
	for i := range w.nodes {
		n := w.nodes[(first+i)%len(w.nodes)]
		for j, p := range n.pods {
			if p.of == d {
				w.unbind(n, j)
				return
			}
		}
	}
}
