// Package leftout reports objects that take no part in a decision, because they alone cannot be taken: they are too
// large, or the engine refuses them. All other objects take part.
package leftout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// Bounds on what is reported, the same as those of the engine's answers.
const (
	// MostTold is how many objects a List names; it counts all.
	MostTold = 256
	mostName = 253
	mostText = 512
)

// Object is one that was left out.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}

// New returns an object whose texts are printable and bounded: users write them.
func New(kind, namespace, name, reason string) Object {
	return Object{text.Bound(kind, mostName), text.Bound(namespace, mostName), text.Bound(name, mostName),
		text.Bound(reason, mostText)}
}

// String names the object and what is wrong with it.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return fmt.Sprintf("%s %s: %s", o.Kind, name, o.Reason)
}

// key is what an object is, whatever is wrong with it.
type key struct{ kind, namespace, name string }

func (o Object) key() key { return key{o.Kind, o.Namespace, o.Name} }

// List gathers what was left out, each object once: the first reason counts. The zero value is empty.
type List struct {
	objects map[key]Object
	further int64 // that others counted and did not name
}

// Add takes note of objects.
func (l *List) Add(objects ...Object) {
	if l.objects == nil {
		l.objects = map[key]Object{}
	}
	for _, o := range objects {
		if _, known := l.objects[o.key()]; !known {
			l.objects[o.key()] = o
		}
	}
}

// AddAnswer adds the objects that an answer of the engine leaves out: some by name, and the total.
func (l *List) AddAnswer(answer interface {
	GetLeftOut() []*loadlinev1.LeftOut
	GetLeftOutTotal() int64
}) {
	for _, o := range answer.GetLeftOut() {
		l.Add(New(o.GetKind(), o.GetNamespace(), o.GetName(), o.GetReason()))
	}
	l.further += max(0, answer.GetLeftOutTotal()-int64(len(answer.GetLeftOut())))
}

// Total returns how many objects were left out.
func (l *List) Total() int64 { return int64(len(l.objects)) + l.further }

// Objects returns the first MostTold by kind, namespace and name.
func (l *List) Objects() []Object {
	all := make([]Object, 0, len(l.objects))
	for _, o := range l.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MostTold)]
}

// Kinds counts objects by kind. It has a key for each known kind, and "other" for all the rest, so that users cannot
// make new keys.
func (l *List) Kinds() map[string]int64 {
	counts := map[string]int64{"other": l.further}
	for _, kind := range knownKinds {
		counts[kind] = 0
	}
	for _, o := range l.objects {
		kind := o.Kind
		if !slices.Contains(knownKinds, kind) {
			kind = "other"
		}
		counts[kind]++
	}
	return counts
}

// knownKinds are those of which a cluster is made for an engine.
var knownKinds = []string{"CSIDriver", "CSINode", "DaemonSet", "Deployment", "DeviceClass", "Job", "Namespace", "Node",
	"PersistentVolume", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "ReplicaSet", "ReplicationController",
	"StatefulSet", "StorageClass"}

// Line says in one line how many objects were left out and names some of them; empty: none was.
func (l *List) Line(named int) string {
	total := l.Total()
	if total == 0 {
		return ""
	}
	text := "1 object was left out"
	if total > 1 {
		text = fmt.Sprintf("%d objects were left out", total)
	}
	var names []string
	for _, o := range l.Objects() {
		if len(names) == named {
			break
		}
		names = append(names, o.String())
	}
	if int64(len(names)) < total && len(names) > 0 {
		names = append(names, fmt.Sprintf("%d more", total-int64(len(names))))
	}
	if len(names) == 0 {
		return text
	}
	return text + ": " + strings.Join(names, "; ")
}
