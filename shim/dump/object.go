package dump

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	sigsjson "sigs.k8s.io/json"

	"loadline.dev/shim/unknownfields"
)

// headOf returns what kind of object this is. Items of a typed list leave it out.
func headOf(raw json.RawMessage, at position) (metav1.TypeMeta, error) {
	var head metav1.TypeMeta
	if err := decode(raw, &head); err != nil {
		return head, broken(at.String(), raw, &head, err)
	}
	return head, nil
}

// object hands one object to the handler, or counts it as of no interest.
func (d *reader) object(raw json.RawMessage, head metav1.TypeMeta, at position) error {
	if head.Kind == "" {
		return fmt.Errorf("%s: kind: missing", at)
	}
	core := head.APIVersion == "v1" || head.APIVersion == ""
	switch {
	case strings.HasSuffix(head.Kind, "List"):
		if nested, err := d.nested(raw, head, at); nested || err != nil {
			return err
		}
	case core && head.Kind == "Node":
		return d.unless(raw, "Node", d.node(raw, at))
	case core && head.Kind == "Pod":
		return d.unless(raw, "Pod", d.pod(raw, at))
	}
	if path, ok := templates[head.Kind]; ok && d.handler.Manifests {
		return d.unless(raw, head.Kind, d.template(raw, head.Kind, path, at))
	}
	other, known := others[head.Kind]
	old := isOlder(head.Kind, head.APIVersion)
	if old {
		at.older = head.APIVersion
	}
	if known && (old || head.APIVersion == other.apiVersion || head.APIVersion == "") {
		if d.handles(head.Kind) != nil {
			return d.unless(raw, head.Kind, d.other(raw, head.Kind, other.make(), at))
		}
	}
	d.counts.Ignored[head.Kind]++
	return nil
}

// mostNested bounds how deep lists lie within lists.
const mostNested = 8

// nested hands over the items of a list that is an item of another. False: it is no list.
func (d *reader) nested(raw json.RawMessage, head metav1.TypeMeta, at position) (bool, error) {
	var list struct {
		Metadata json.RawMessage `json:"metadata"`
		Items    json.RawMessage `json:"items"` // an empty list of Go may be null
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list.Items == nil || json.Unmarshal(list.Items, &items) != nil {
		return false, nil
	}
	if err := goesOn(list.Metadata, at); err != nil {
		return true, err
	}
	if d.depth++; d.depth > mostNested {
		return true, fmt.Errorf("%s: lists lie within lists more than %d deep", at, mostNested)
	}
	defer func() { d.depth-- }()
	for _, item := range items {
		of, err := headOf(item, at)
		if err != nil {
			return true, err
		}
		if of.Kind == "" {
			of.Kind, of.APIVersion = itemKind(head.Kind), cmp.Or(of.APIVersion, head.APIVersion)
		}
		if err := d.object(item, of, at); err != nil {
			return true, err
		}
	}
	return true, nil
}

// brokenError is about one object that cannot be read.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// unless passes on an error, unless it is about one object that the handler takes as broken.
func (d *reader) unless(raw json.RawMessage, kind string, err error) error {
	var broken *brokenError
	if d.handler.Broken == nil || !errors.As(err, &broken) {
		return err
	}
	var head struct {
		Metadata struct {
			Namespace string    `json:"namespace"`
			Name      string    `json:"name"`
			UID       types.UID `json:"uid"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &head) // as far as it can be read
	var where struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(raw, &where)
	out := Broken{Kind: kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name, UID: head.Metadata.UID,
		Err: broken.error}
	namespaced := others[kind].namespaced || kind == "Pod"
	if namespaced && out.Namespace == "" {
		out.Namespace = metav1.NamespaceDefault
	}
	switch kind {
	case "Pod":
		out.NodeName = where.Spec.NodeName
		if pod := (&v1.Pod{}); out.Name != "" && readable(raw, pod) {
			pod.Namespace, out.Object = out.Namespace, pod
		}
	case "Node":
		if node := (&v1.Node{}); out.Name != "" && readable(raw, node) {
			out.Object = node
		}
	}
	d.seen[fmt.Sprint(kind, " broken ", len(d.seen))] = position{} // the dump holds an object
	d.handler.Broken(out)
	return nil
}

func (d *reader) node(raw json.RawMessage, at position) error {
	var node v1.Node
	if err := unknownfields.InJSON(raw, &node); err != nil {
		return &brokenError{broken(fmt.Sprintf("%s (Node %q)", at, nameOf(raw)), raw, &node, err)}
	}
	if node.Name == "" {
		return &brokenError{fmt.Errorf("%s (Node): metadata.name: missing", at)}
	}
	return d.takeNode(&node, at)
}

// takeNode hands over a node.
func (d *reader) takeNode(node *v1.Node, at position) error {
	if err := d.once("Node", node.Name, at); err != nil {
		return err
	}
	d.counts.Nodes++
	if err := d.handler.Node(node); err != nil {
		return fmt.Errorf("%s (Node %q): %w", at, node.Name, err)
	}
	return nil
}

func (d *reader) pod(raw json.RawMessage, at position) error {
	var pod v1.Pod
	if err := unknownfields.InJSON(raw, &pod); err != nil {
		return &brokenError{broken(fmt.Sprintf("%s (Pod %q)", at, nameOf(raw)), raw, &pod, err)}
	}
	if d.handler.Manifests && pod.Name == "" && pod.GenerateName != "" {
		pod.Name = generated(pod.GenerateName)
	}
	if pod.Name == "" {
		return &brokenError{fmt.Errorf("%s (Pod): metadata.name: missing", at)}
	}
	return d.takePod(&pod, "Pod", at)
}

// generated returns a name such as an API server makes of a generateName.
func generated(name string) string { return name + "xxxxx" }

// templates are where the kinds that make pods have the template of one.
var templates = map[string][]string{
	"CronJob": {"spec", "jobTemplate", "spec", "template"}, "DaemonSet": {"spec", "template"},
	"Deployment": {"spec", "template"}, "Job": {"spec", "template"}, "ReplicaSet": {"spec", "template"},
	"ReplicationController": {"spec", "template"}, "StatefulSet": {"spec", "template"},
}

// template hands over the pod that an object makes. It names the object as its controller, also where a pod would name
// a ReplicaSet or Job in between, of which nobody knows the name yet.
func (d *reader) template(raw json.RawMessage, kind string, path []string, at position) error {
	where := fmt.Sprintf("%s (%s %q)", at, kind, nameOf(raw))
	var head struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Namespace    string    `json:"namespace"`
			Name         string    `json:"name"`
			GenerateName string    `json:"generateName"`
			UID          types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := decode(raw, &head); err != nil {
		return &brokenError{broken(where, raw, &head, err)}
	}
	of := raw
	for i, key := range path {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(of, &fields); err != nil || fields[key] == nil {
			return &brokenError{fmt.Errorf("%s: %s: missing", where, strings.Join(path[:i+1], "."))}
		}
		of = fields[key]
	}
	var pod v1.Pod
	if err := unknownfields.InJSON(of, &pod); err != nil {
		return &brokenError{broken(where+": "+strings.Join(path, "."), of, &pod, err)}
	}
	pod.Namespace, pod.Name = head.Metadata.Namespace, head.Metadata.Name
	if pod.Name == "" && head.Metadata.GenerateName != "" {
		pod.Name = generated(head.Metadata.GenerateName)
	}
	if pod.Name == "" {
		return &brokenError{fmt.Errorf("%s (%s): metadata.name: missing", at, kind)}
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: head.APIVersion, Kind: kind, Name: pod.Name,
		UID: head.Metadata.UID, Controller: new(true)}}
	return d.takePod(&pod, kind, at)
}

// takePod hands over a pod, of an object of this kind.
func (d *reader) takePod(pod *v1.Pod, kind string, at position) error {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault // as for a manifest that leaves it out
	}
	name := pod.Namespace + "/" + pod.Name
	if err := d.once(kind, name, at); err != nil {
		return err
	}
	d.counts.Pods++
	if err := d.handler.Pod(pod); err != nil {
		return fmt.Errorf("%s (%s %q): %w", at, kind, name, err)
	}
	return nil
}

// others are the kinds that Handler.Object and Handler.PlannerObject get.
var others = map[string]struct {
	apiVersion string
	namespaced bool
	planners   bool
	make       func() metav1.Object
}{
	"Namespace":             {"v1", false, false, func() metav1.Object { return &v1.Namespace{} }},
	"PersistentVolume":      {"v1", false, false, func() metav1.Object { return &v1.PersistentVolume{} }},
	"PersistentVolumeClaim": {"v1", true, false, func() metav1.Object { return &v1.PersistentVolumeClaim{} }},
	"StorageClass": {"storage.k8s.io/v1", false, false,
		func() metav1.Object { return &storagev1.StorageClass{} }},
	"CSINode":     {"storage.k8s.io/v1", false, false, func() metav1.Object { return &storagev1.CSINode{} }},
	"CSIDriver":   {"storage.k8s.io/v1", false, false, func() metav1.Object { return &storagev1.CSIDriver{} }},
	"DeviceClass": {"resource.k8s.io/v1", false, false, func() metav1.Object { return &resourcev1.DeviceClass{} }},

	"PodDisruptionBudget":   {"policy/v1", true, true, func() metav1.Object { return &policyv1.PodDisruptionBudget{} }},
	"Service":               {"v1", true, true, func() metav1.Object { return &v1.Service{} }},
	"ReplicationController": {"v1", true, true, func() metav1.Object { return &v1.ReplicationController{} }},
	"ReplicaSet":            {"apps/v1", true, true, func() metav1.Object { return &appsv1.ReplicaSet{} }},
	"StatefulSet":           {"apps/v1", true, true, func() metav1.Object { return &appsv1.StatefulSet{} }},
	"DaemonSet":             {"apps/v1", true, true, func() metav1.Object { return &appsv1.DaemonSet{} }},
	"Deployment":            {"apps/v1", true, true, func() metav1.Object { return &appsv1.Deployment{} }},
	"Job":                   {"batch/v1", true, true, func() metav1.Object { return &batchv1.Job{} }},
}

func (d *reader) other(raw json.RawMessage, kind string, object metav1.Object, at position) error {
	if err := decode(raw, object); err != nil {
		return &brokenError{broken(fmt.Sprintf("%s (%s %q)", at, kind, nameOf(raw)), raw, object, err)}
	}
	if object.GetName() == "" {
		return &brokenError{fmt.Errorf("%s (%s): metadata.name: missing", at, kind)}
	}
	if others[kind].namespaced && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	if before, ok := d.seen[kind+" "+name]; ok && before.older != at.older {
		d.counts.Ignored[kind]++ // an API server has one object in all versions
		return nil
	}
	if at.older != "" {
		asPresent(object, kind, at.older, others[kind].apiVersion)
	}
	return d.takeOther(object, kind, at)
}

// handles returns what gets the objects of one of the other kinds; nil: they play no part.
func (d *reader) handles(kind string) func(any) error {
	if others[kind].planners {
		return d.handler.PlannerObject
	}
	return d.handler.Object
}

// takeOther hands over an object that is neither a node nor a pod.
func (d *reader) takeOther(object metav1.Object, kind string, at position) error {
	handle := d.handles(kind)
	if handle == nil {
		d.counts.Ignored[kind]++
		return nil
	}
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	if err := d.once(kind, name, at); err != nil {
		return err
	}
	d.counts.Objects[kind]++
	if err := handle(object); err != nil {
		return fmt.Errorf("%s (%s %q): %w", at, kind, name, err)
	}
	return nil
}

// once refuses an object that was there before: which of the two would be the cluster's is anyone's guess.
func (d *reader) once(kind, name string, at position) error {
	key := kind + " " + name
	if before, ok := d.seen[key]; ok {
		of := ""
		if before.dump != d.name {
			of = " of " + before.dump
		}
		return fmt.Errorf("%s (%s %q): metadata.name: the same object as %s%s: leave one of them out, as where a file was "+
			"appended to itself or is given twice", at, kind, name, before, of)
	}
	at.dump = d.name
	d.seen[key] = at
	return nil
}

// decode reads JSON as an API server does: names of fields in their exact case.
func decode(raw []byte, into any) error {
	return sigsjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// nameOf returns namespace and name of an object that may be broken elsewhere.
func nameOf(raw json.RawMessage) string {
	var head struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &head) // as far as it can be read: the caller reports what is broken
	return strings.TrimPrefix(head.Metadata.Namespace+"/"+head.Metadata.Name, "/")
}
