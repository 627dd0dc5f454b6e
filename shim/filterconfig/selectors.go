package filterconfig

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Selectors deduces the selector by which default spread constraints count a pod, as kube-scheduler does: from the
// services that select the pod, and from its owner. The zero value knows of none; nil deduces none. Not safe for
// concurrent use.
type Selectors struct {
	services map[string]map[string]map[string]string // by namespace and name
	owners   map[ownerKey]*metav1.LabelSelector
	given    map[types.NamespacedName][]byte // by pod
}

type ownerKey struct {
	kind string // "apps/v1 ReplicaSet"
	name types.NamespacedName
}

const (
	replicationController = "v1 ReplicationController"
	replicaSet            = "apps/v1 ReplicaSet"
	statefulSet           = "apps/v1 StatefulSet"
)

// Set takes note of *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet and *appsv1.StatefulSet, and of nothing
// else.
func (s *Selectors) Set(object any) { s.change(object, false) }

// Delete forgets one of them.
func (s *Selectors) Delete(object any) { s.change(object, true) }

// Give says what the selector of a pod is, whatever services and owners there are.
func (s *Selectors) Give(pod types.NamespacedName, selector []byte) {
	if s == nil {
		return
	}
	if s.given == nil {
		s.given = map[types.NamespacedName][]byte{}
	}
	s.given[pod] = selector
}

func (s *Selectors) change(object any, gone bool) {
	if s == nil {
		return
	}
	switch o := object.(type) {
	case *v1.Service:
		s.setService(o, gone)
	case *v1.ReplicationController:
		s.setOwner(replicationController, o, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}, gone)
	case *appsv1.ReplicaSet:
		s.setOwner(replicaSet, o, o.Spec.Selector, gone)
	case *appsv1.StatefulSet:
		s.setOwner(statefulSet, o, o.Spec.Selector, gone)
	}
}

func (s *Selectors) setService(service *v1.Service, gone bool) {
	in := s.services[service.Namespace]
	if gone || len(service.Spec.Selector) == 0 { // one without a selector selects nothing
		delete(in, service.Name)
		return
	}
	if s.services == nil {
		s.services = map[string]map[string]map[string]string{}
	}
	if in == nil {
		in = map[string]map[string]string{}
		s.services[service.Namespace] = in
	}
	in[service.Name] = service.Spec.Selector
}

func (s *Selectors) setOwner(kind string, object metav1.Object, selector *metav1.LabelSelector, gone bool) {
	key := ownerKey{kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if gone || selector == nil {
		delete(s.owners, key)
		return
	}
	if s.owners == nil {
		s.owners = map[ownerKey]*metav1.LabelSelector{}
	}
	s.owners[key] = selector
}

// Of returns the selector of a pod as a plain protobuf meta.v1.LabelSelector; nil: nothing selects it, or it has
// constraints of its own.
func (s *Selectors) Of(pod *v1.Pod) []byte {
	if s == nil || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return nil
	}
	if given, ok := s.given[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; ok {
		return given
	}
	out := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, selector := range s.services[pod.Namespace] {
		if labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			maps.Copy(out.MatchLabels, selector) // all of them are labels of the pod
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		key := ownerKey{owner.APIVersion + " " + owner.Kind,
			types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}}
		if selector := s.owners[key]; selector != nil {
			// One that does not parse is passed over.
			if _, err := metav1.LabelSelectorAsSelector(selector); err == nil {
				addSelector(&out, selector)
			}
		}
	}
	if len(out.MatchLabels)+len(out.MatchExpressions) == 0 {
		return nil
	}
	data, err := out.Marshal()
	if err != nil {
		panic(err) // a selector has nothing that could fail to be written
	}
	return data
}

// addSelector adds what a selector requires. Where it requires another value of a label, nothing matches both.
func addSelector(out, selector *metav1.LabelSelector) {
	for key, value := range selector.MatchLabels {
		if has, ok := out.MatchLabels[key]; ok && has != value {
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: key,
				Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
			continue
		}
		out.MatchLabels[key] = value
	}
	out.MatchExpressions = append(out.MatchExpressions, selector.MatchExpressions...)
}
