package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/recording"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// recorded is what the first call of a recording begins with, behind some bytes of its length.
const recorded = "/loadline.v1."

func isRecording(in *bufio.Reader) bool {
	start, _ := in.Peek(24)
	return bytes.Contains(start, []byte(recorded))
}

// readRecording hands over the cluster of a loop, with the pods that its question has. Pods and objects are as the
// engine got them: without fields that it does not read.
func (d *reader) readRecording(in io.Reader) error {
	if d.handler.Manifests {
		return fmt.Errorf("%w; it is a recording", errNotADump)
	}
	loop, err := recording.ReadLoop(&boundedReader{r: in, left: MaxBytes, bound: "a recording", limit: MaxBytes},
		d.handler.Loop)
	if err != nil {
		return err
	}
	d.begin(loop)
	nodes, err := loop.Nodes()
	if err != nil {
		return err
	}
	for i, node := range nodes {
		if err := d.takeNode(node, position{item: i}); err != nil {
			return err
		}
	}
	pods, err := loop.Pods()
	if err != nil {
		return err
	}
	for i, pod := range pods {
		if d.handler.SpreadSelector != nil && len(pod.SpreadSelector) > 0 {
			d.handler.SpreadSelector(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.SpreadSelector)
		}
		if err := d.takePod(pod.Pod, "Pod", position{item: i}); err != nil {
			return err
		}
	}
	return d.takeRecorded(loop)
}

// begin says which loop is read.
func (d *reader) begin(loop *recording.Loop) {
	d.counts.Loop, d.counts.Minor = loop.Number, loop.Minor
	if d.handler.At != nil {
		d.handler.At(loop.Time())
	}
	if d.handler.Note == nil {
		return
	}
	if loop.Cut {
		d.handler.Note(fmt.Sprintf("%s: %v; loop %d is the last whole one", d.name, recording.ErrCut, loop.Number))
	}
	d.handler.Note(fmt.Sprintf("%s: the cluster is that of loop %d, of %s, as the engine was given it", d.name,
		loop.Number, loop.Time().Format(time.RFC3339)))
}

// takeRecorded hands over the objects of a loop that are neither nodes nor pods.
func (d *reader) takeRecorded(loop *recording.Loop) error {
	kinds := map[loadlinev1.ObjectKind]string{}
	for name, kind := range view.Kinds {
		kinds[kind] = name
	}
	for _, kind := range loop.Complete {
		d.counts.Objects[kinds[kind]] += 0 // it is known that there are no others
	}
	objects, err := decodeRecorded(loop.Objects(), kinds)
	if err != nil {
		return err
	}
	if err := giveTemplates(objects, loop.Question.GetDaemonPods()); err != nil {
		return err
	}
	for i, object := range objects {
		if err := d.takeOther(object, kinds[loop.Objects()[i].GetKind()], position{item: i}); err != nil {
			return err
		}
	}
	return nil
}

func decodeRecorded(from []*loadlinev1.ClusterObject, kinds map[loadlinev1.ObjectKind]string) ([]metav1.Object, error) {
	var out []metav1.Object
	for _, object := range from {
		kind, known := others[kinds[object.GetKind()]]
		if !known {
			return nil, fmt.Errorf("an object of kind %s: made by a newer version", object.GetKind())
		}
		into := kind.make()
		if err := into.(interface{ Unmarshal([]byte) error }).Unmarshal(object.GetObject()); err != nil {
			return nil, fmt.Errorf("an object of kind %s: %w", object.GetKind(), err)
		}
		if budget, ok := into.(*policyv1.PodDisruptionBudget); ok { // the engine is given the numbers of its status
			budget.Spec.MinAvailable = new(intstr.FromInt32(budget.Status.DesiredHealthy))
		}
		out = append(out, into)
	}
	return out, nil
}

// notOnNewNodes is the gate of a DaemonSet of which the question has no pod: none is on new nodes.
const notOnNewNodes = "loadline.dev/not-on-new-nodes"

// giveTemplates gives DaemonSets their templates: in place of these an engine gets the pods that new nodes carry.
func giveTemplates(objects []metav1.Object, pods [][]byte) error {
	sets := map[scaleup.DaemonSet]*appsv1.DaemonSet{}
	for _, object := range objects {
		if set, ok := object.(*appsv1.DaemonSet); ok {
			sets[scaleup.IdentityOf(set)] = set
			set.Spec.Template.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: notOnNewNodes}}
		}
	}
	for i, text := range pods {
		var pod v1.Pod
		if err := pod.Unmarshal(text); err != nil {
			return fmt.Errorf("daemon_pods[%d]: %w", i, err)
		}
		if of, claims := scaleup.DaemonSetOf(&pod); claims && sets[of] != nil {
			sets[of].Spec.Template = scaleup.TemplateOf(&pod)
		}
	}
	return nil
}
