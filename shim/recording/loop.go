package recording

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// Loop is a loop of a recording: its question, and the cluster that the engine had for it.
type Loop struct {
	// Number is its place among the loops of the recording, from 1.
	Number   int
	Question *loadlinev1.PlanLoopRequest
	books
}

// books hold what an engine has of a view.
type books struct {
	shapes  map[int32][]byte
	nodes   map[int32]*loadlinev1.NodeRecord // by slot
	objects map[string]*loadlinev1.ClusterObject
	// Complete are the kinds of which the engine had all objects, and Minor the release of Kubernetes by which pods count
	// that are being resized; 0: the default.
	Complete []loadlinev1.ObjectKind
	Minor    int32
}

// errFound ends the reading behind the loop that is looked for.
var errFound = errors.New("found")

// ReadLoop returns the loop of this number, from 1, or the last one for 0.
func ReadLoop(recording io.Reader, number int) (*Loop, error) {
	views, found := map[string]*books{}, (*Loop)(nil)
	err := Calls(recording, func(call *loadlinev1.RecordedCall) error {
		if call.GetCode() != 0 {
			return nil // an engine takes no part of a batch that it refuses
		}
		question, err := follow(views, call)
		if question == nil || err != nil {
			return err
		}
		next := &Loop{Number: 1, Question: question}
		if found != nil {
			next.Number = found.Number + 1
		}
		if own := question.GetOwn(); own != nil {
			err = next.apply(own)
		} else if err = take(views, question.GetChanges()); err == nil {
			next.books = views[question.GetChanges().GetView()].clone()
		}
		if found = next; err == nil && next.Number == number {
			err = errFound
		}
		return err
	})
	switch {
	case errors.Is(err, errFound):
		return found, nil
	case err != nil:
		return nil, err
	case found == nil:
		return nil, errors.New("the recording holds no loop")
	case number > found.Number:
		return nil, fmt.Errorf("the recording holds no loop %d: its last one is %d", number, found.Number)
	}
	return found, nil
}

// follow applies a call to the views, and returns the question of a loop; nil: it asks another one.
func follow(views map[string]*books, call *loadlinev1.RecordedCall) (*loadlinev1.PlanLoopRequest, error) {
	_, method, _ := strings.Cut(strings.TrimPrefix(call.GetMethod(), "/loadline.v1."), "/")
	switch method {
	case "Sync":
		var request loadlinev1.SyncRequest
		if err := proto.Unmarshal(call.GetRequest(), &request); err != nil {
			return nil, err
		}
		return nil, take(views, request.GetChanges())
	case "Drop":
		var request loadlinev1.DropRequest
		err := proto.Unmarshal(call.GetRequest(), &request)
		delete(views, request.GetView())
		return nil, err
	case "PlanLoop":
		var question loadlinev1.PlanLoopRequest
		return &question, proto.Unmarshal(call.GetRequest(), &question)
	}
	return nil, nil
}

// take applies changes to the view that they name.
func take(views map[string]*books, changes *loadlinev1.Changes) error {
	b := views[changes.GetView()]
	if chunk := changes.GetFullList(); b == nil || chunk != nil && chunk.GetIndex() == 0 {
		b = &books{}
		views[changes.GetView()] = b
	}
	return b.apply(changes)
}

func (b *books) apply(changes *loadlinev1.Changes) error {
	if b.nodes == nil {
		*b = books{shapes: map[int32][]byte{}, nodes: map[int32]*loadlinev1.NodeRecord{},
			objects: map[string]*loadlinev1.ClusterObject{}, Minor: changes.GetKubernetesMinor()}
	}
	for _, slot := range changes.GetRemovedSlots() {
		delete(b.nodes, slot)
	}
	for _, shape := range changes.GetPodShapes() {
		b.shapes[shape.GetId()] = shape.GetPod()
	}
	for _, node := range changes.GetNodes() {
		b.nodes[node.GetSlot()] = node
	}
	for _, key := range changes.GetRemovedObjects() {
		delete(b.objects, keyOf(key.GetKind(), key.GetNamespace(), key.GetName()))
	}
	for _, object := range changes.GetObjects() {
		if object.GetKind() == loadlinev1.ObjectKind_WORKLOAD_USAGE {
			continue // no object of Kubernetes
		}
		var head metav1.PartialObjectMetadata
		if err := head.Unmarshal(object.GetObject()); err != nil {
			return fmt.Errorf("%s: %w", object.GetKind(), err)
		}
		b.objects[keyOf(object.GetKind(), head.Namespace, head.Name)] = object
	}
	b.Complete = slices.Compact(slices.Sorted(slices.Values(slices.Concat(b.Complete, changes.GetCompleteKinds()))))
	return nil
}

// keyOf identifies an object. Keys in order are objects by kind, namespace and name.
func keyOf(kind loadlinev1.ObjectKind, namespace, name string) string {
	return fmt.Sprintf("%03d/%s/%s", kind, namespace, name)
}

func (b *books) clone() books {
	out := *b
	out.shapes, out.nodes, out.objects = maps.Clone(b.shapes), maps.Clone(b.nodes), maps.Clone(b.objects)
	return out
}
