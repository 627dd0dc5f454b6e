package view

import (
	"bytes"
	"os"
	"regexp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

var planningChanges = []struct {
	name    string
	matters bool
	apply   func(*v1.Pod)
}{
	{"Annotation", false, func(p *v1.Pod) { p.Annotations = map[string]string{"prometheus.io/port": "80"} }},
	{"Created", false, func(p *v1.Pod) { p.CreationTimestamp = metav1.Unix(5, 0) }},
	{"OwnerThatDoesNotControl", false,
		func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "u"}} }},
	{"Secret", false, func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}}}
	}},
	{"OurDeletionCost", false, func(p *v1.Pod) {
		p.Annotations = map[string]string{v1.PodDeletionCost: "-9", DeletionCostMark: "-9"}
	}},
	{"DeletionCost", true, func(p *v1.Pod) {
		p.Annotations = map[string]string{v1.PodDeletionCost: "5", DeletionCostMark: "-9"}
	}},
	{"Starts", true, func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "node1", v1.PodPending }},
	{"Waits", false, func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "", v1.PodPending }},
	{"Ready", true, func(p *v1.Pod) { p.Status.Conditions[0].Status = v1.ConditionFalse }},
	{"SafeToEvict", true, func(p *v1.Pod) {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
	}},
	{"Slack", true, func(p *v1.Pod) { p.Annotations = map[string]string{"loadline.dev/slack": "false"} }},
	{"SlackCopies", true, func(p *v1.Pod) { p.Annotations = map[string]string{"loadline.dev/slack-copies": "2"} }},
	{"DoNotDisrupt", true, func(p *v1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "4h"} }},
	{"DoNotEvict", true, func(p *v1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-evict": "true"} }},
	{"Started", false, func(p *v1.Pod) { p.Status.StartTime = &metav1.Time{Time: time.Unix(5, 0)} }},
	{"Mirror", true, func(p *v1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": ""} }},
	{"Static", true, func(p *v1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.source": "file"} }},
	{"Owner", true, func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: new(true)}}
	}},
	{"CreatedInKubeSystem", true,
		func(p *v1.Pod) { p.Namespace, p.CreationTimestamp = "kube-system", metav1.Unix(5, 0) }},
	{"Deleted", true, func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)} }},
	{"Grace", true, func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(0)) }},
	{"RestartNever", false, func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }},
	{"Priority", true, func(p *v1.Pod) { p.Spec.Priority = new(int32(-10)) }},
	{"PreferredAffinity", true, func(p *v1.Pod) { p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}} }},
	{"HostPath", true, func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{
			{Name: "d", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/d"}}}}
	}},
	{"EmptyDir", true, func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	}},
	{"Label", true, func(p *v1.Pod) { p.Labels = map[string]string{"placeholder": ""} }},
}

func TestTrimPodForPlanningKeepsWhatPlannersRead(t *testing.T) {
	for _, c := range planningChanges {
		pod := fullPod()
		before := TrimPodForPlanning(pod)
		c.apply(pod)
		if differ := !bytes.Equal(before, TrimPodForPlanning(pod)); differ != c.matters {
			t.Errorf("%s: another pod: %t, want %t", c.name, differ, c.matters)
		}
		if c.name != "Label" && c.matters && c.name != "Deleted" && c.name != "CreatedInKubeSystem" &&
			!bytes.Equal(TrimPodForFilters(fullPod()), TrimPodForFilters(pod)) {
			t.Errorf("%s: splits pods for filters as well", c.name)
		}
	}
}

func TestTrimPodForPlanningReadsBack(t *testing.T) {
	pod := fullPod()
	for _, c := range planningChanges {
		switch c.name {
		case "SlackCopies", "Owner", "CreatedInKubeSystem", "Deleted", "Grace", "Starts", "Priority", "EmptyDir":
			c.apply(pod)
		}
	}
	var got v1.Pod
	if err := got.Unmarshal(TrimPodForPlanning(pod)); err != nil {
		t.Fatal(err)
	}
	owner := got.OwnerReferences[0]
	if got.Annotations["loadline.dev/slack-copies"] != "2" || got.CreationTimestamp.Unix() != 5 ||
		got.DeletionTimestamp.Unix() != 5 ||
		*got.Spec.TerminationGracePeriodSeconds != 0 || got.Status.Phase != v1.PodPending ||
		*got.Spec.Priority != -10 ||
		got.Spec.Volumes[0].Name != "d" || got.Spec.Volumes[0].EmptyDir == nil ||
		got.Status.Conditions[1].Type != v1.PodReady ||
		owner.Kind != "ReplicaSet" || owner.APIVersion != "apps/v1" || owner.Name != "r" || owner.UID != "u" ||
		!*owner.Controller {
		t.Errorf("got %v", &got)
	}
}

// The start of a pod arrives, also of one that was reduced, where an annotation protects it from then on; pods of one
// template stay alike otherwise.
func TestTheStartOfAProtectedPodArrives(t *testing.T) {
	for _, c := range []struct {
		key, value string
		arrives    bool
	}{
		{"karpenter.sh/do-not-disrupt", "4h", true}, {"karpenter.sh/do-not-evict", "4h", true},
		{"karpenter.sh/do-not-disrupt", "true", false}, {"karpenter.sh/do-not-disrupt", "false", false},
		{"other", "4h", false},
	} {
		pod := fullPod()
		pod.Annotations = map[string]string{c.key: c.value}
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(5, 0)}
		whole := TrimPodForPlanning(pod)
		var got v1.Pod
		if err := got.Unmarshal(whole); err != nil {
			t.Fatal(err)
		}
		if start := got.Status.StartTime; (start != nil) != c.arrives || c.arrives && start.Unix() != 5 {
			t.Errorf("%s: %s: start %v, want it: %t", c.key, c.value, start, c.arrives)
		}
		if !bytes.Equal(whole, TrimPodForPlanning(NewKeeper().pod(pod.DeepCopy()))) {
			t.Errorf("%s: %s: a reduced pod is another one", c.key, c.value)
		}
	}
}

func TestTrimNodeForPlanning(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", CreationTimestamp: metav1.Unix(5, 0),
			DeletionTimestamp: &metav1.Time{Time: time.Unix(6, 0)},
			Annotations: map[string]string{
				"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "atlassian.com/no-delete": "why",
				"karpenter.sh/do-not-disrupt": "true", "karpenter.k8s.aws/x": "y", "other": "x"}},
		Spec: v1.NodeSpec{ProviderID: "cloud://n"},
		Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
			{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.Unix(9, 0)},
			{Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue}}},
	}
	var got v1.Node
	if err := got.Unmarshal(TrimNodeForPlanning(node)); err != nil {
		t.Fatal(err)
	}
	if got.CreationTimestamp.Unix() != 5 || got.DeletionTimestamp.Unix() != 6 || len(got.Annotations) != 3 ||
		got.Annotations["karpenter.sh/do-not-disrupt"] != "true" || got.Spec.ProviderID != "cloud://n" ||
		len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Type != v1.NodeReady ||
		!got.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("got %v", &got)
	}
}

// One object of each kind as it is sent: by name, with what planners read, and with the pod template only where
// somebody wishes slack.
func TestPlannerObjects(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "u", Generation: 3,
		Annotations: map[string]string{"other": "x"}}
	wish := meta
	wish.Annotations = map[string]string{"loadline.dev/slack-copies": "2"}
	template := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "of-template", Image: "image"}}}}
	rest := policyv1.PodDisruptionBudgetSpec{MinAvailable: nil,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	for _, c := range []struct {
		kind   loadlinev1.ObjectKind
		object any
		with   bool // the template
		read   interface{ Unmarshal([]byte) error }
	}{
		{loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET, &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: rest},
			false, &policyv1.PodDisruptionBudget{}},
		{loadlinev1.ObjectKind_REPLICATION_CONTROLLER, &v1.ReplicationController{ObjectMeta: wish,
			Spec: v1.ReplicationControllerSpec{Template: &template}}, true, &v1.ReplicationController{}},
		{loadlinev1.ObjectKind_REPLICA_SET, &appsv1.ReplicaSet{ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Template: template}}, false, &appsv1.ReplicaSet{}},
		{loadlinev1.ObjectKind_STATEFUL_SET, &appsv1.StatefulSet{ObjectMeta: wish,
			Spec: appsv1.StatefulSetSpec{Template: template}}, true, &appsv1.StatefulSet{}},
		{loadlinev1.ObjectKind_DAEMON_SET, &appsv1.DaemonSet{ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{Template: template}}, false, &appsv1.DaemonSet{}},
		{loadlinev1.ObjectKind_DEPLOYMENT, &appsv1.Deployment{ObjectMeta: wish,
			Spec: appsv1.DeploymentSpec{Template: template}}, true, &appsv1.Deployment{}},
		{loadlinev1.ObjectKind_JOB, &batchv1.Job{ObjectMeta: wish, Spec: batchv1.JobSpec{Template: template}}, true,
			&batchv1.Job{}},
	} {
		key, trimmed, err := trimObject(c.object)
		if err != nil || key != (objectKey{c.kind, "ns", "x"}) {
			t.Errorf("%s: key %v, error %v", c.kind, key, err)
		}
		if err := c.read.Unmarshal(trimmed); err != nil {
			t.Errorf("%s: %v", c.kind, err)
		}
		if with := bytes.Contains(trimmed, []byte("of-template")); with != c.with {
			t.Errorf("%s: with its template: %t, want %t", c.kind, with, c.with)
		}
		if bytes.Contains(trimmed, []byte("other")) || bytes.Contains(trimmed, []byte("image")) {
			t.Errorf("%s: keeps an annotation or an image, which nobody reads", c.kind)
		}
	}
}

// Each annotation of nodes that the core reads arrives there.
func TestNodeAnnotationsOfTheCoreArrive(t *testing.T) {
	table, err := os.ReadFile("../../core/cluster/node_annotations.cc")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`\{NodeAnnotation::k\w+, "([^"]+)"`).FindAllSubmatch(table, -1)
	if len(keys) < 3 {
		t.Fatalf("%d annotations were found in the table of the core", len(keys))
	}
	for _, key := range keys {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{string(key[1]): "true"}}}
		var got v1.Node
		if err := got.Unmarshal(TrimNodeForPlanning(node)); err != nil || got.Annotations[string(key[1])] != "true" {
			t.Errorf("%s does not arrive, error %v: add it to nodeAnnotations", key[1], err)
		}
	}
}
