package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// start is when each world begins.
const start = int64(1_800_000_000)

// world is a random cluster with its workloads, a plain scheduler and a cloud. It is sent to an engine as questions,
// and changed by its answers. Equal seeds and answers make equal worlds.
type world struct {
	*rand.Rand
	seed   uint64
	tags   map[string]bool
	now    int64 // in seconds
	made   int   // nodes and pods, for their names
	groups []*group
	nodes  []*node
	work   []*workload
	set    settings

	answered                        // what the next question tells of the last answer
	zones                           []string
	quiet                           bool // the load is low next
	removals                        []*loadlinev1.FleetRemoval
	failed, softTried, acknowledged []string
	evicted                         []*loadlinev1.EvictedPod
	outcomes                        []*loadlinev1.ActionOutcome
	changed, gone                   map[string]bool // nodes, since the view was last updated
}

// answered is what a client keeps of an answer.
type answered struct {
	state *loadlinev1.LoopState
	fleet []byte
	asked bool
}

type machineType struct {
	name     string
	milliCPU int64
	mib      int64
	gpus     int64
	arm      bool
	usd      float64
}

var machineTypes = []machineType{
	{"m5.large", 2000, 8192, 0, false, 0.096}, {"m5.xlarge", 4000, 16384, 0, false, 0.192},
	{"m5.2xlarge", 8000, 32768, 0, false, 0.384}, {"c5.xlarge", 4000, 8192, 0, false, 0.17},
	{"r5.large", 2000, 16384, 0, false, 0.126}, {"g4dn.xlarge", 4000, 16384, 1, false, 0.526},
	{"m6g.xlarge", 4000, 16384, 0, true, 0.154}, {"custom-3-10000", 3000, 10000, 0, false, 0.11},
}

type template int

const (
	byCloud  template = iota // the cloud says what a new node is like
	fromNode                 // the client has taken a node for one
	none
)

type group struct {
	name        string
	kind        machineType
	zone        string
	spot        bool
	tainted     bool
	least, most int32
	target      int32
	notBegun    int32 // of target: machines that are not listed yet
	machines    []*machine
	template    template
	price       *float64
	priority    *int64
	options     *loadlinev1.DrainGroup // its own; without name and bounds
	sized       *loadlinev1.SizeOptions
	problem     string
	outUntil    int64 // no machines before then
	sick        bool  // its machines fail at times
}

type machine struct {
	id       string
	node     *node // nil: not yet
	loops    int   // until it has one
	fault    *loadlinev1.MachineFault
	phantom  bool // never has a node
	deleting bool
}

type node struct {
	name, uid   string
	group       *group // nil: it is in none
	machine     *machine
	made        int64
	notReady    bool
	cordoned    bool
	kept        bool // scale-down is disabled by its annotation
	devices     int  // loops until they are offered
	taints      []v1.Taint
	labels      map[string]string
	startup     int // loops until its startup taint is removed
	soft        bool
	removal     *removal
	pods        []*pod
	milliCPU    int64 // free
	mib         int64
	gpus        int64
	allocatable [3]int64
}

type removal struct {
	since    int64
	loops    int
	fails    bool
	deleting int64
}

type pod struct {
	of     *workload
	number int
	made   int64
}

func (p *pod) name() string { return fmt.Sprintf("%s-%d", p.of.name, p.number) }

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// tag notes what a world has, so that differences can be grouped by it. It returns the condition.
func (w *world) tag(name string, has bool) bool {
	if has {
		w.tags[name] = true
	}
	return has
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 41)), seed: seed, tags: map[string]bool{}, now: start,
		changed: map[string]bool{}, gone: map[string]bool{}}
	w.zones = []string{"a", "b", "c"}[:1+w.IntN(3)]
	w.drawSettings()
	noTemplates, priceless := w.chance(35), w.chance(15)
	for i := range 1 + w.IntN(5) {
		w.groups = append(w.groups, w.drawGroup(i, noTemplates, priceless))
	}
	for i := range 2 + w.IntN(9) {
		w.work = append(w.work, w.drawWorkload(i))
	}
	for range w.IntN(3) {
		w.work = append(w.work, w.drawDaemon(len(w.work)))
	}
	for _, g := range w.groups {
		for range g.target {
			g.machines = append(g.machines, &machine{id: w.machineID(g)})
			w.register(g.machines[len(g.machines)-1], g)
		}
	}
	if w.tag("node-of-no-group", w.chance(15)) {
		for range 1 + w.IntN(3) {
			w.addNode(nil, machineTypes[w.IntN(3)])
		}
	}
	for _, n := range w.nodes {
		n.devices, n.startup, n.made = 0, 0, start-int64(w.IntN(100_000))
	}
	w.scale()
	w.schedule()
	return w
}

func (w *world) drawGroup(i int, noTemplates, priceless bool) *group {
	g := &group{name: fmt.Sprintf("group-%c", 'a'+i), kind: machineTypes[w.IntN(len(machineTypes))],
		zone: w.zones[w.IntN(len(w.zones))]}
	g.spot = w.tag("spot", w.chance(20))
	g.tainted = w.tag("group-taint", i > 0 && w.chance(20))
	g.most = int32(4 + w.IntN(20))
	if w.chance(40) {
		g.least = int32(w.IntN(3))
	}
	g.target = min(g.most, g.least+int32(w.IntN(6)))
	switch {
	case noTemplates && w.tag("no-template", w.chance(50)):
		g.template = none
	case w.tag("template-from-node", w.chance(25)):
		g.template = fromNode
	}
	if !priceless && w.chance(85) {
		usd := g.kind.usd * (0.9 + float64(w.IntN(20))/100)
		if g.spot {
			usd *= 0.35
		}
		g.price = &usd
	} else {
		w.tags["no-given-price"] = true
	}
	if w.set.ranked {
		g.priority = new(int64(w.IntN(4)))
	}
	g.sick = w.tag("failing-cloud", w.chance(25))
	w.drawOptions(g)
	return g
}

// drawOptions draws what a group states of its own scale-down and size.
func (w *world) drawOptions(g *group) {
	g.options = &loadlinev1.DrainGroup{}
	if w.tag("group-options", w.chance(25)) {
		g.options.ScaleDownUtilizationThreshold = new(float64(2+w.IntN(8)) / 10)
		g.options.ScaleDownUnneededTimeS = new(int64(w.IntN(200)))
		g.options.IgnoreDaemonsetsUtilization = new(w.chance(50))
	}
	switch {
	case w.tag("atomic", w.chance(6)):
		g.options.Atomic = true
		if g.target > 0 {
			g.target = g.most
		}
	case w.set.sizes && w.tag("sized", w.chance(40)):
		g.template = byCloud
		g.sized = &loadlinev1.SizeOptions{MinNodes: g.least, MaxNodes: g.most, ScaleUpPercent: int32(60 + w.IntN(30)),
			TaintUpperPercent: 40, TaintLowerPercent: 20, SlowRate: 1, FastRate: int32(1 + w.IntN(3)),
			SoftGraceMilliseconds: 60_000, HardGraceMilliseconds: int64(120_000 + w.IntN(4)*60_000),
			CoolDownMilliseconds: int64(1 + w.IntN(3)*30_000), ScaleOnStarve: w.chance(50),
			IgnoreDaemonSets: w.chance(30)}
	}
}

func (w *world) machineID(g *group) string {
	w.made++
	return fmt.Sprintf("cloud:///%s/%d-%d", g.name, w.seed, w.made)
}

// register makes the node of a machine.
func (w *world) register(m *machine, g *group) {
	m.node = w.addNode(g, g.kind)
	m.node.machine = m
}

func (w *world) addNode(g *group, kind machineType) *node {
	w.made++
	n := &node{group: g, made: w.now, uid: fmt.Sprintf("00000000-0000-4000-8000-%012d", w.made)}
	pool := "own"
	if g != nil {
		pool = g.name
	}
	n.name = fmt.Sprintf("%s-%05d", pool, w.made)
	n.allocatable = [3]int64{kind.milliCPU - 100, kind.mib - kind.mib/16 - int64(w.IntN(3)*w.set.uneven), kind.gpus}
	n.milliCPU, n.mib, n.gpus = n.allocatable[0], n.allocatable[1], n.allocatable[2]
	if kind.gpus > 0 && w.tag("late-devices", w.chance(30)) {
		n.devices, n.gpus = 1+w.IntN(3), 0
	}
	if w.set.startupTaints && w.chance(70) {
		n.startup = 1 + w.IntN(3)
	}
	for _, d := range w.work {
		if d.kind == daemonSet && w.permits(d, n) {
			w.bind(&pod{of: d, number: w.next(), made: w.now}, n)
		}
	}
	w.nodes = append(w.nodes, n)
	w.changed[n.name] = true
	return n
}

func (w *world) next() int {
	w.made++
	return w.made
}

func (w *world) bind(p *pod, n *node) {
	n.pods = append(n.pods, p)
	n.milliCPU -= p.of.milliCPU
	n.mib -= p.of.mib
	n.gpus -= p.of.gpus
	w.changed[n.name] = true
}

func (w *world) unbind(n *node, i int) *pod {
	p := n.pods[i]
	n.milliCPU += p.of.milliCPU
	n.mib += p.of.mib
	n.gpus += p.of.gpus
	n.pods = slices.Delete(n.pods, i, i+1)
	w.changed[n.name] = true
	return p
}

// lose takes a node away; its pods wait again.
func (w *world) lose(n *node) {
	for _, p := range n.pods {
		p.of.again(w)
	}
	n.pods = nil
	w.nodes = slices.DeleteFunc(w.nodes, func(other *node) bool { return other == n })
	w.gone[n.name] = true
	delete(w.changed, n.name)
	if n.machine != nil {
		n.machine.node = nil
	}
}

func (w *world) nodeOf(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (g *group) drop(m *machine) {
	g.machines = slices.DeleteFunc(g.machines, func(other *machine) bool { return other == m })
}
