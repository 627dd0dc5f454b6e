package e2e

import (
	"fmt"
	"math/rand"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/test/e2e/simcloud"
)

// The shape of the cluster of TestScale: of ten nodes, four are full, and six have a tenth of that.
const (
	scaleGroups     = 20
	scaleNamespaces = 20
	fullPods        = 88 // of 110, and 13.2 of 16 cores
	sparsePods      = 8
	setReplicas     = 100
	// budgetSlack pods of a set with a budget may be missing at a time; every fourth set has one.
	budgetSlack = 10
)

var apps = []string{"checkout", "catalogue", "payments", "search", "recommendations", "inventory", "sessions", "mailer"}

// scaleGroup returns a node group with names as clouds give them.
func scaleGroup(number, most int) simcloud.Group {
	zone := string(rune('a' + number%3))
	g := pool(fmt.Sprintf("eks-general-purpose-1%c-%02d", zone[0], number), 0, most, 16, 0.768)
	labels := map[string]string{v1.LabelTopologyZone: "eu-central-1" + zone, v1.LabelTopologyRegion: "eu-central-1",
		v1.LabelInstanceTypeStable: "m6i.4xlarge", v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
		"eks.amazonaws.com/nodegroup": g.ID, "eks.amazonaws.com/capacityType": "ON_DEMAND"}
	g.Template.Labels = labels
	g.Name = func(machine int) string {
		return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", 16+number, machine/250, machine%250+1)
	}
	return g
}

// A scaleLoad is all that runs on the cluster.
type scaleLoad struct {
	sets    []*appsv1.ReplicaSet
	budgets []*policyv1.PodDisruptionBudget
	pods    []*v1.Pod // their owners are filled in by number
	owner   []int
}

// podsOf returns how many pods the node of that number has, of those that a plan may move.
func podsOf(node int) int {
	if node%10 < 4 {
		return fullPods
	}
	return sparsePods
}

// newScaleLoad draws pods for nodes, most of a set on different ones.
func newScaleLoad(nodes []v1.Node, seed int64) *scaleLoad {
	draw, load, total := rand.New(rand.NewSource(seed)), &scaleLoad{}, 0
	slices.SortFunc(nodes, func(a, b v1.Node) int { return int(hashOf(a.Name)) - int(hashOf(b.Name)) })
	for i := range nodes {
		total += podsOf(i)
	}
	for i := range (total + setReplicas - 1) / setReplicas {
		load.addSet(draw, i, min(setReplicas, total-i*setReplicas))
	}
	next := 0
	for i := range nodes {
		for range podsOf(i) {
			load.addPod(draw, next%len(load.sets), nodes[i].Name)
			next++
		}
	}
	return load
}

// hashOf spreads names, so that full and sparse nodes are in all groups.
func hashOf(name string) (hash uint16) {
	for _, c := range []byte(name) {
		hash = hash*31 + uint16(c)
	}
	return hash
}

func suffix(draw *rand.Rand, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = "bcdfghjklmnpqrstvwxz2456789"[draw.Intn(27)]
	}
	return string(text)
}

func (l *scaleLoad) addSet(draw *rand.Rand, number, replicas int) {
	namespace := fmt.Sprintf("team-%02d", number%scaleNamespaces)
	app := fmt.Sprintf("%s-%d", apps[number%len(apps)], number)
	labels := map[string]string{"app.kubernetes.io/name": app, "pod-template-hash": suffix(draw, 10)}
	resources := v1.ResourceRequirements{
		Requests: v1.ResourceList{"cpu": resource.MustParse("150m"), "memory": resource.MustParse("256Mi")},
		Limits:   v1.ResourceList{"memory": resource.MustParse("512Mi")}}
	l.sets = append(l.sets, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-" + labels["pod-template-hash"], Labels: labels},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "registry.example/" + app + ":1.4.2",
					Resources: resources}}}}}})
	if number%4 == 0 && replicas > budgetSlack {
		l.budgets = append(l.budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(int32(replicas - budgetSlack))),
				Selector: &metav1.LabelSelector{MatchLabels: labels}}})
	}
}

func (l *scaleLoad) addPod(draw *rand.Rand, set int, node string) {
	of := l.sets[set]
	pod := &v1.Pod{ObjectMeta: *of.Spec.Template.ObjectMeta.DeepCopy(), Spec: *of.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Spec.NodeName = of.Namespace, of.Name+"-"+suffix(draw, 5), node
	l.pods, l.owner = append(l.pods, pod), append(l.owner, set)
}

// own writes into the pods which ReplicaSets they belong to, as the API server has created these.
func (l *scaleLoad) own(created []*appsv1.ReplicaSet) {
	for i, pod := range l.pods {
		set := created[l.owner[i]]
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set,
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
}
