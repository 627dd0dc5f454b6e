package dump

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// older are versions of the kinds in `others` that older API servers have. Their fields that are read are the same, and
// mean the same once asPresent was called.
var older = map[string][]string{
	"CSIDriver":           {"storage.k8s.io/v1beta1"},
	"CSINode":             {"storage.k8s.io/v1beta1"},
	"DaemonSet":           {"apps/v1beta2", extensions},
	"Deployment":          {"apps/v1beta2", appsBeta, extensions},
	"DeviceClass":         {"resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"},
	"PodDisruptionBudget": {"policy/v1beta1"},
	"ReplicaSet":          {"apps/v1beta2", extensions},
	"StatefulSet":         {"apps/v1beta2", appsBeta},
	"StorageClass":        {"storage.k8s.io/v1beta1"},
}

// Versions in which a selector that is left out is that of the labels of the template.
const (
	appsBeta   = "apps/v1beta1"
	extensions = "extensions/v1beta1"
)

// isOlder says whether a kind in `others` is read of this version too.
func isOlder(kind, apiVersion string) bool { return slices.Contains(older[kind], apiVersion) }

// asPresent has an object of an older version be what an API server of today makes of it.
func asPresent(object metav1.Object, kind, from, to string) {
	if budget, ok := object.(*policyv1.PodDisruptionBudget); ok {
		// An empty selector is of no pod in policy/v1beta1, and of all pods in policy/v1.
		if s := budget.Spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			budget.Spec.Selector = nil
		}
	}
	if from == appsBeta || from == extensions {
		defaultSelector(object)
	}
	if typed, ok := object.(schema.ObjectKind); ok {
		typed.SetGroupVersionKind(schema.FromAPIVersionAndKind(to, kind))
	}
}

// defaultSelector fills in a selector that is left out.
func defaultSelector(object metav1.Object) {
	var selector **metav1.LabelSelector
	var labels map[string]string
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		selector, labels = &o.Spec.Selector, o.Spec.Template.Labels
	case *appsv1.Deployment:
		selector, labels = &o.Spec.Selector, o.Spec.Template.Labels
	case *appsv1.ReplicaSet:
		selector, labels = &o.Spec.Selector, o.Spec.Template.Labels
	case *appsv1.StatefulSet:
		selector, labels = &o.Spec.Selector, o.Spec.Template.Labels
	}
	if selector != nil && *selector == nil && len(labels) > 0 {
		*selector = &metav1.LabelSelector{MatchLabels: labels}
	}
}
