package recording

import (
	"errors"
	"fmt"
	"io"
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
	// Cut says that the recording ends within a call behind the loop, which is the last whole one.
	Cut bool
	*books
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
	r := reader{views: map[string]*books{}}
	err := Calls(recording, func(call *loadlinev1.RecordedCall) error {
		if call.GetCode() != 0 {
			return nil // an engine takes no part of a batch that it refuses
		}
		err := r.take(call)
		if err == nil && r.found != nil && r.found.Number == number {
			err = errFound
		}
		return err
	})
	cut := errors.Is(err, ErrCut)
	switch {
	case errors.Is(err, errFound):
		return r.found, nil
	case err != nil && !cut:
		return nil, err
	case r.found == nil && cut:
		return nil, fmt.Errorf("the recording holds no whole loop: %w", err)
	case r.found == nil:
		return nil, errors.New("the recording holds no loop")
	case number > r.found.Number:
		return nil, fmt.Errorf("the recording holds no loop %d: its last one is %d", number, r.found.Number)
	}
	r.found.Cut = cut
	return r.found, nil
}

// reader follows the views of a recording.
type reader struct {
	views map[string]*books
	found *Loop // the last one, with the view as it is
	// later are the calls behind it. They change the view, so that they wait for the next loop.
	later []*loadlinev1.RecordedCall
}

// take takes note of a call.
func (r *reader) take(call *loadlinev1.RecordedCall) error {
	switch methodOf(call) {
	case "PlanLoop":
	case "Sync", "Drop":
		r.later = append(r.later, call)
		return nil
	default:
		return nil
	}
	next := &Loop{Number: 1, Question: &loadlinev1.PlanLoopRequest{}}
	if r.found != nil {
		next.Number = r.found.Number + 1
	}
	for _, call := range r.later {
		if err := follow(r.views, call); err != nil {
			return err
		}
	}
	r.found, r.later = next, nil
	if err := proto.Unmarshal(call.GetRequest(), next.Question); err != nil {
		return err
	}
	if own := next.Question.GetOwn(); own != nil {
		next.books = &books{}
		return next.apply(own)
	}
	err := take(r.views, next.Question.GetChanges())
	next.books = r.views[next.Question.GetChanges().GetView()]
	return err
}

// methodOf returns the name of a method without its service.
func methodOf(call *loadlinev1.RecordedCall) string {
	_, method, _ := strings.Cut(strings.TrimPrefix(call.GetMethod(), "/loadline.v1."), "/")
	return method
}

// follow applies a call to the views.
func follow(views map[string]*books, call *loadlinev1.RecordedCall) error {
	if methodOf(call) == "Drop" {
		var request loadlinev1.DropRequest
		err := proto.Unmarshal(call.GetRequest(), &request)
		delete(views, request.GetView())
		return err
	}
	var request loadlinev1.SyncRequest
	if err := proto.Unmarshal(call.GetRequest(), &request); err != nil {
		return err
	}
	return take(views, request.GetChanges())
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
