package dump

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func selectorText(selector *metav1.LabelSelector) string {
	if selector == nil {
		return "none"
	}
	return metav1.FormatLabelSelector(selector)
}

// selectorsOf returns kind, apiVersion, name and selector of the objects that a dump hands over.
func selectorsOf(t *testing.T, text string) string {
	t.Helper()
	var out []string
	_, err := Read(strings.NewReader(text), "cluster.json", Handler{Node: func(*v1.Node) error { return nil },
		PlannerObject: func(object any) error {
			switch o := object.(type) {
			case *policyv1.PodDisruptionBudget:
				out = append(out, fmt.Sprint(o.APIVersion, " ", o.Name, " ", selectorText(o.Spec.Selector)))
			case *appsv1.DaemonSet:
				out = append(out, fmt.Sprint(o.APIVersion, " ", o.Name, " ", selectorText(o.Spec.Selector)))
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "; ")
}

func TestReadsOlderVersionsAsThePresentOne(t *testing.T) {
	object := func(version, kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},"spec":%s}`, version, kind, spec)
	}
	item := `"items":[{"metadata":{"name":"x"},"spec":{"selector":{}}}]`
	web, template := `{"selector":{"matchLabels":{"app":"web"}}}`, `{"template":{"metadata":{"labels":{"app":"web"}}}}`
	const budget = "PodDisruptionBudget"
	for _, c := range []struct{ name, text, want string }{
		{"Budget", object("policy/v1beta1", budget, web), "policy/v1 x app=web"},
		{"BudgetOfAllPods", object("policy/v1", budget, `{"selector":{}}`), "policy/v1 x <none>"},
		{"BudgetOfNoPod", object("policy/v1beta1", budget, `{"selector":{}}`), "policy/v1 x none"},
		{"BudgetsOfNoPod", `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudgetList",` + item + `}`,
			"policy/v1 x none"},
		{"KindBehindTheItems", `{"apiVersion":"policy/v1beta1",` + item + `,"kind":"PodDisruptionBudgetList"}`,
			"policy/v1 x none"},
		{"ListInAList", `{"kind":"List","items":[{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudgetList",` +
			item + `}]}`, "policy/v1 x none"},
		{"BothVersions", object("policy/v1", budget, web) + object("policy/v1beta1", budget, web), "policy/v1 x app=web"},
		{"Selector", object("apps/v1beta2", "DaemonSet", web), "apps/v1 x app=web"},
		{"SelectorOfTheTemplate", object("extensions/v1beta1", "DaemonSet", template), "apps/v1 x app=web"},
		{"OtherGroup", object("example.com/v1beta1", "DaemonSet", web), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := selectorsOf(t, c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := Read(strings.NewReader(object("policy/v1beta1", budget, web)+object("policy/v1beta1", budget, web)), "f",
		Handler{PlannerObject: func(any) error { return nil }}); err == nil || !strings.Contains(err.Error(), "the same") {
		t.Errorf("an object twice: %v", err)
	}
}
