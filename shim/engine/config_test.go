package engine_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/view"
)

// An engine in this process is set up as loadlined is by its flags: it knows placeholders by the namespace in its
// configuration.
func TestEngineInThisProcessIsSetUp(t *testing.T) {
	priority, controls := int32(-10), true
	placeholder := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "room", Name: "p",
		Labels: map[string]string{"loadline.dev/placeholder": "true"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "slack-1", UID: "rs", Controller: &controls}}},
		Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "c"}}}}
	for _, c := range []struct {
		config  *loadlinev1.EngineConfig
		waiting int32 // pods that find no place
	}{{nil, 1}, {&loadlinev1.EngineConfig{SlackNamespace: "shop"}, 1},
		{&loadlinev1.EngineConfig{SlackNamespace: "room", MaxQuestionBytes: 1 << 20}, 0}} {
		conn, err := engine.OpenWith(enginetest.Address(t), c.config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answer, err := loadlinev1.NewAutoscalerClient(conn).PlanLoop(t.Context(),
			&loadlinev1.PlanLoopRequest{NowS: 1000, SeenS: 1000,
				Cluster:   &loadlinev1.PlanLoopRequest_Changes{Changes: syncRequest("v").GetChanges()},
				Decisions: []loadlinev1.PlanLoopRequest_Decision{loadlinev1.PlanLoopRequest_SCALE_UP},
				Pods: []*loadlinev1.PendingPods{
					{Pod: &loadlinev1.IncomingPod{Pod: view.TrimPodForPlanning(placeholder)}, Count: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		waiting := int32(0)
		for _, run := range answer.GetScaleUp().GetUnplaced() {
			waiting += run.GetCount()
		}
		if waiting != c.waiting {
			t.Errorf("%v: %d pods wait for a node, want %d", c.config, waiting, c.waiting)
		}
	}
	if _, err := engine.OpenWith(enginetest.Address(t),
		&loadlinev1.EngineConfig{MaxQuestionBytes: 1<<20 - 1}); err == nil ||
		!strings.Contains(err.Error(), "max_question_bytes") {
		t.Errorf("got error %v, want one that names max_question_bytes", err)
	}
}
