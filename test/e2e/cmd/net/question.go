package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

func trimmedPod(pod *v1.Pod) []byte { return view.TrimIncomingPodForPlanning(pod) }

// allKinds are the kinds of which a view gets all objects.
var allKinds = []loadlinev1.ObjectKind{
	loadlinev1.ObjectKind_NAMESPACE, loadlinev1.ObjectKind_PERSISTENT_VOLUME,
	loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM, loadlinev1.ObjectKind_STORAGE_CLASS,
	loadlinev1.ObjectKind_CSI_NODE, loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET,
	loadlinev1.ObjectKind_REPLICATION_CONTROLLER, loadlinev1.ObjectKind_REPLICA_SET,
	loadlinev1.ObjectKind_STATEFUL_SET, loadlinev1.ObjectKind_DAEMON_SET, loadlinev1.ObjectKind_JOB,
	loadlinev1.ObjectKind_DEPLOYMENT,
}

// teller keeps a view of a world up to date.
type teller struct {
	world *world
	view  *view.View
	known map[podAt]*workload // pods on nodes
}

// podAt is a pod on a node.
type podAt struct {
	number int
	node   string
}

// newTeller tells an engine the whole world.
func newTeller(w *world, conn grpc.ClientConnInterface) (*teller, error) {
	t := &teller{world: w, view: view.NewForPlanning(conn, "net"), known: map[podAt]*workload{}}
	t.view.Complete(allKinds...)
	for _, n := range w.nodes {
		t.setNode(n)
	}
	return t, t.setObjects()
}

func (t *teller) setObjects() error {
	for _, object := range t.world.objects() {
		if err := t.view.SetObject(object); err != nil {
			return err
		}
	}
	return nil
}

func (t *teller) setNode(n *node) {
	t.view.SetNode(t.world.nodeObject(n))
	for _, p := range n.pods {
		t.view.SetPod(p.of.podObject(p, n))
		t.known[podAt{p.number, n.name}] = p.of
	}
}

// update tells what has changed.
func (t *teller) update() error {
	now := map[podAt]bool{}
	for _, n := range t.world.nodes {
		for _, p := range n.pods {
			now[podAt{p.number, n.name}] = true
		}
	}
	for at, d := range t.known {
		if !now[at] {
			t.view.DeletePod(d.podObject(&pod{of: d, number: at.number}, &node{name: at.node}))
			delete(t.known, at)
		}
	}
	for name := range t.world.gone {
		t.view.DeleteNode(name)
	}
	for _, n := range t.world.nodes {
		if t.world.changed[n.name] {
			t.setNode(n)
		}
	}
	clear(t.world.gone)
	clear(t.world.changed)
	return t.setObjects()
}

// capture is a connection that keeps what a view tells, and takes all of it.
type capture struct{ told []*loadlinev1.Changes }

func (c *capture) Invoke(_ context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	changes := proto.CloneOf(args.(*loadlinev1.SyncRequest).GetChanges())
	c.told = append(c.told, changes)
	answer := reply.(*loadlinev1.SyncResponse)
	answer.Epoch, answer.Revision = changes.GetEpoch(), changes.GetRevision()
	return nil
}

func (c *capture) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("there are no streams")
}

// own returns the whole world as a cluster that serves one question, and the view that numbered its nodes.
func (w *world) own(ctx context.Context) (*loadlinev1.Changes, *view.View, error) {
	c := &capture{}
	t, err := newTeller(w, c)
	if err == nil {
		err = t.view.Sync(ctx)
	}
	all := &loadlinev1.Changes{}
	for _, part := range c.told {
		part.View, part.Epoch, part.Revision, part.FullList = "", 0, 0, nil
		proto.Merge(all, part)
	}
	return all, t.view, err
}
