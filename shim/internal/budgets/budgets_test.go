package budgets

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/internal/testing/fakeapi"
)

// holder hands on the budgets that it gets; a deleted one has no status.
type holder chan *policyv1.PodDisruptionBudget

func (h holder) SetObject(object any) error {
	h <- object.(*policyv1.PodDisruptionBudget)
	return nil
}

func (h holder) DeleteObject(object any) error {
	gone := object.(*policyv1.PodDisruptionBudget).DeepCopy()
	gone.Status = policyv1.PodDisruptionBudgetStatus{}
	h <- gone
	return nil
}

func (h holder) next(t *testing.T) *policyv1.PodDisruptionBudget {
	t.Helper()
	select {
	case budget := <-h:
		return budget
	case <-time.After(time.Minute):
		t.Fatal("nothing has come for a minute")
		return nil
	}
}

func TestSupplyTellsEachBudgetWithoutWhatChangesWithItsPods(t *testing.T) {
	client := fake.NewClientset()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: 3,
		DisruptionsAllowed: 1, DisruptedPods: map[string]metav1.Time{"web-0": {}}}
	of := client.PolicyV1().PodDisruptionBudgets("shop")
	if _, err := of.Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	told := make(holder, 8)
	Supply(t.Context(), client, told, nil)
	got := told.next(t)
	if got.Name != "web" || got.Status.ExpectedPods != 3 || got.Status.DesiredHealthy != 2 ||
		got.Status.CurrentHealthy != 0 || got.Status.DisruptionsAllowed != 0 || got.Status.DisruptedPods != nil {
		t.Errorf("got %+v", got)
	}
	fakeapi.WaitForWatch(t, client, "poddisruptionbudgets")
	if err := of.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if gone := told.next(t); gone.Name != "web" || gone.Status.ExpectedPods != 0 {
		t.Errorf("after its deletion: %+v", gone)
	}
}
