package clusterapi

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kinds of objects that scale, and the one of machines.
const (
	deploymentKind = "MachineDeployment"
	setKind        = "MachineSet"
	poolKind       = "MachinePool"
	machineKind    = "Machine"
)

// resources are the names of kinds in the API, in the order in which they are listed.
var resources = []struct{ kind, name string }{
	{deploymentKind, "machinedeployments"}, {setKind, "machinesets"}, {poolKind, "machinepools"},
	{machineKind, "machines"},
}

func resourceOf(kind string) string {
	for _, r := range resources {
		if r.kind == kind {
			return r.name
		}
	}
	return ""
}

// Annotations and labels, below the API group.
const (
	minSize         = "/cluster-api-autoscaler-node-group-min-size"
	maxSize         = "/cluster-api-autoscaler-node-group-max-size"
	deleteMachine   = "/delete-machine"
	paused          = "/paused"
	clusterName     = "/cluster-name"
	machineOfNode   = "/machine"
	namespaceOfNode = "/cluster-namespace"
	optionPrefix    = "/autoscaling-options-"
)

// object is an object of Cluster API, in whichever version.
type object struct{ unstructured.Unstructured }

func (o object) text(fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

func (o object) cluster() string {
	if name := o.text("spec", "clusterName"); name != "" {
		return name
	}
	return o.GetLabels()[group()+clusterName]
}

// id is that of Cluster Autoscaler's node group.
func (o object) id() string { return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName() }

// owner returns the name of the owner of a kind; empty: it has none.
func (o object) owner(kind string) string {
	for _, reference := range o.GetOwnerReferences() {
		if reference.Kind == kind && strings.HasPrefix(reference.APIVersion, group()+"/") {
			return reference.Name
		}
	}
	return ""
}

// holds says whether a condition is True, as either version has it.
func (o object) holds(condition string) bool {
	for _, fields := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		all, _, _ := unstructured.NestedSlice(o.Object, fields...)
		for _, one := range all {
			entry, _ := one.(map[string]any)
			if entry["type"] == condition {
				return entry["status"] == string(metav1.ConditionTrue)
			}
		}
	}
	return false
}

// isPaused says whether no controller looks after an object.
func (o object) isPaused() bool {
	_, annotated := o.GetAnnotations()[group()+paused]
	stated, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return annotated || stated || o.holds("Paused")
}

// replicas returns how many machines an object is to have.
func (o object) replicas() (int, error) {
	count, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if err != nil || !found {
		return 0, fmt.Errorf("%s states no spec.replicas", o.id())
	}
	return int(count), nil
}

// bounds returns how many machines an object may have. `scales` is false where it is no node group: it states no
// maximum, or 0.
func (o object) bounds() (low, high int, scales bool, err error) {
	annotations := o.GetAnnotations()
	for key, to := range map[string]*int{minSize: &low, maxSize: &high} {
		stated, ok := annotations[group()+key]
		if !ok {
			continue
		}
		if *to, err = strconv.Atoi(stated); err != nil || *to < 0 {
			return 0, 0, true, fmt.Errorf("annotation %s %q: must be a number of nodes", group()+key, stated)
		}
	}
	if high < low {
		return 0, 0, true, fmt.Errorf("annotations %s %d and %s %d: the maximum is below the minimum", group()+minSize, low,
			group()+maxSize, high)
	}
	return low, high, high > 0, nil
}

// isMarked says whether a machine is the first to go when its owner gets smaller.
func (o object) isMarked() bool {
	_, marked := o.GetAnnotations()[group()+deleteMachine]
	return marked
}

// ourMark begins the value of a mark that we have set.
const ourMark = "loadline.dev "

func (o object) isMarkedByUs() bool {
	return strings.HasPrefix(o.GetAnnotations()[group()+deleteMachine], ourMark)
}

// is says whether another look at the same object has found `other`.
func (o object) is(other object) bool { return o.GetUID() == other.GetUID() }

func (o object) isGoing() bool { return o.GetDeletionTimestamp() != nil }

// failure returns why a machine will never be a node; empty: it may. Both versions have it, under other names.
func (o object) failure() (reason, message string) {
	for _, at := range [][]string{{"status"}, {"status", "deprecated", "v1beta1"}} {
		reason, message = o.text(append(at, "failureReason")...), o.text(append(at, "failureMessage")...)
		if reason != "" || message != "" {
			return reason, message
		}
	}
	return "", ""
}

// nodeName is the node that a machine has become; empty: none yet.
func (o object) nodeName() string { return o.text("status", "nodeRef", "name") }

// providerID is the machine's instance; empty: it is not known.
func (o object) providerID() string { return o.text("spec", "providerID") }

// pendingPrefix begins the id of a machine without an instance, as in Cluster Autoscaler.
const pendingPrefix = "pending-machine-"

func (o object) pendingID() string { return pendingPrefix + o.GetNamespace() + "_" + o.GetName() }
