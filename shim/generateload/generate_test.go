package generateload

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func options() Options {
	r := func(text string) Range {
		r, err := ParseRange(text)
		if err != nil {
			panic(err)
		}
		return r
	}
	return Options{Namespace: "shop", Name: "burst", Pods: 10, Deployments: 3, CPU: r("100m-200m"), Memory: r("64Mi"),
		LowFactor: 2, HighFactor: 2, Seed: 1, Image: "i"}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string][2]string{"100m": {"100m", "100m"}, "1-2": {"1", "2"},
		"128Mi-1Gi": {"128Mi", "1Gi"}} {
		if got, err := ParseRange(text); err != nil || got.Low.String() != want[0] || got.High.String() != want[1] {
			t.Errorf("%s: %+v, error %v", text, got, err)
		}
	}
	for _, wrong := range []string{"", "x", "2-1", "-1", "1-2-3"} {
		if got, err := ParseRange(wrong); err == nil {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"name \"B\"":             func(o *Options) { o.Name = "B" },
		"0 pods":                 func(o *Options) { o.Pods = 0 },
		"11 Deployments":         func(o *Options) { o.Deployments = 11 },
		"limit factor: must be":  func(o *Options) { o.LowFactor = 3 },
		"limit factor: no limit": func(o *Options) { o.LowFactor = 0.5 },
		"the time over":          func(o *Options) { o.Over = -1 },
		"max unavailable \"x\"":  func(o *Options) { o.MaxUnavailable = "x" },
		"bare pods have no":      func(o *Options) { o.Bare, o.MaxUnavailable = true, "1" },
		"cpu 2T: must be at":     func(o *Options) { o.CPU.High = resource.MustParse("2T") },
		"memory 2P: must be at":  func(o *Options) { o.Memory.High = resource.MustParse("2P") },
	} {
		o := options()
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if err := o.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The same seed, the same objects; another one, others. Amounts lie in their ranges, limits are twice the requests, and
// ten pods in three Deployments are 4, 3 and 3.
func TestObjects(t *testing.T) {
	o := options()
	o.MaxUnavailable = "20%"
	if !reflect.DeepEqual(o.Objects(), o.Objects()) {
		t.Error("the same options make other objects")
	}
	other := options()
	other.Seed, other.MaxUnavailable = 2, "20%"
	if reflect.DeepEqual(o.Objects(), other.Objects()) {
		t.Error("another seed makes the same objects")
	}
	if got := len(o.Objects()); got != 6 {
		t.Errorf("%d objects, want 3 budgets and 3 Deployments", got)
	}
	var replicas []int32
	for _, d := range o.deployments() {
		replicas = append(replicas, *d.Spec.Replicas)
		r := d.Spec.Template.Spec.Containers[0].Resources
		cpu := r.Requests.Cpu().MilliValue()
		if cpu < 100 || cpu > 200 || cpu%10 != 0 || r.Limits.Cpu().MilliValue() != 2*cpu ||
			r.Requests.Memory().String() != "64Mi" || r.Limits.Memory().String() != "128Mi" {
			t.Errorf("%s: %+v", d.Name, r)
		}
	}
	if !slices.Equal(replicas, []int32{4, 3, 3}) {
		t.Errorf("replicas %v", replicas)
	}
	o.Bare, o.MaxUnavailable, o.LowFactor, o.HighFactor = true, "", 0, 0
	pods := o.Objects()
	if len(pods) != 10 || pods[9].(*v1.Pod).Name != "burst-9" ||
		pods[9].(*v1.Pod).Spec.Containers[0].Resources.Limits != nil {
		t.Errorf("%d bare pods, the last one %+v", len(pods), pods[len(pods)-1])
	}
}

type bench struct {
	Generator
	client *fake.Clientset
	lines  []string
}

func newBench(o Options) *bench {
	b := &bench{client: fake.NewClientset()}
	b.client.PrependReactor("delete-collection", "*", b.deleteCollection)
	b.Generator = Generator{Client: b.client, Options: o, Report: func(line string) { b.lines = append(b.lines, line) }}
	return b
}

// deleteCollection does what the API server does, and the fake one does not.
func (b *bench) deleteCollection(action clienttesting.Action) (bool, runtime.Object, error) {
	selector := action.(clienttesting.DeleteCollectionAction).GetListRestrictions().Labels
	kinds := map[string]schema.GroupVersionKind{"pods": v1.SchemeGroupVersion.WithKind("Pod"),
		"deployments":          appsv1.SchemeGroupVersion.WithKind("Deployment"),
		"poddisruptionbudgets": policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")}
	kind := kinds[action.GetResource().Resource]
	list, err := b.client.Tracker().List(action.GetResource(), kind, action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	return true, nil, meta.EachListItem(list, func(object runtime.Object) error {
		accessor, err := meta.Accessor(object)
		if err != nil || !selector.Matches(labels.Set(accessor.GetLabels())) {
			return err
		}
		return b.client.Tracker().Delete(action.GetResource(), accessor.GetNamespace(), accessor.GetName())
	})
}

func (b *bench) replicas(t *testing.T) (sum int) {
	t.Helper()
	list, err := b.client.AppsV1().Deployments("").List(t.Context(),
		metav1.ListOptions{LabelSelector: b.Options.Selector()})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		sum += int(*d.Spec.Replicas)
	}
	return sum
}

// Ten pods over nine seconds are one at once and one each second, and the Deployments are those of no time at all.
func TestMakeOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Over = 9 * time.Second
		b := newBench(o)
		done := make(chan error, 1)
		go func() { done <- b.Make(t.Context()) }()
		for second := range 10 {
			synctest.Wait()
			if got := b.replicas(t); got != second+1 {
				t.Errorf("after %d s %d pods", second, got)
			}
			time.Sleep(time.Second)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := options()
		for _, d := range want.deployments() {
			got, err := b.client.AppsV1().Deployments("shop").Get(t.Context(), d.Name, metav1.GetOptions{})
			if err != nil || !reflect.DeepEqual(got.Spec, d.Spec) {
				t.Errorf("%s: %+v, want %+v, error %v", d.Name, got, d, err)
			}
		}
	})
}

// Made again with more pods, the load grows. What is of somebody else is left alone.
func TestMakeAgain(t *testing.T) {
	b := newBench(options())
	if err := b.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Options.Pods = 16
	if err := b.Make(t.Context()); err != nil || b.replicas(t) != 16 {
		t.Errorf("%d pods, error %v", b.replicas(t), err)
	}
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other-0"}}
	if _, err := b.client.AppsV1().Deployments("shop").Create(t.Context(), foreign,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Options.Name = "other"
	if err := b.Make(t.Context()); err == nil ||
		err.Error() != "shop/other-0 is there and not of load other: choose another name" {
		t.Errorf("error %v", err)
	}
}

// Made again with other budgets, these allow what is wanted now.
func TestMakeBudgetsAgain(t *testing.T) {
	o := options()
	for _, most := range []string{"1", "50%"} {
		o.MaxUnavailable = most
		b := newBench(o)
		if err := b.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Options.MaxUnavailable = "3"
		if err := b.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		budgets, err := b.client.PolicyV1().PodDisruptionBudgets("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(budgets.Items) != 3 {
			t.Fatalf("%d budgets, error %v", len(budgets.Items), err)
		}
		for _, budget := range budgets.Items {
			if got := budget.Spec.MaxUnavailable.String(); got != "3" {
				t.Errorf("%s allows %s, want 3 instead of %s", budget.Name, got, most)
			}
		}
	}
}

// Wait tells how far it is, and ends when all pods run.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Pods, o.Bare = 2, true
		b := newBench(o)
		if err := b.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		created := metav1.Now()
		go func() {
			time.Sleep(4500 * time.Millisecond) // between two looks, so that both pods change before the next one
			for i, pod := range o.pods() {
				pod.CreationTimestamp, pod.Spec.NodeName, pod.Status.Phase = created, "n", v1.PodRunning
				pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(created.Add(time.Duration(i+1) * time.Second))}}
				if _, err := b.client.CoreV1().Pods("shop").Update(t.Context(), pod,
					metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}
		}()
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{"2 of 2 pods asked for", "2 pods: 0 running, 0 starting, 2 waiting for a node, 0 ending",
			"2 pods: 2 running, 0 starting, 0 waiting for a node, 0 ending; had a node after 1s in the median, 2s at the latest"}
		if !slices.Equal(b.lines, want) {
			t.Errorf("%q", b.lines)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b.Options.Pods = 3
		if err := b.Wait(ctx); err == nil || !strings.HasPrefix(err.Error(), "2 pods: 2 run") {
			t.Errorf("it does not miss a pod: %v", err)
		}
		b.Options.Pods = 1 // of which the other one is none
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Objects with the label are deleted, in the namespace, and nothing else.
func TestRemove(t *testing.T) {
	o := options()
	o.MaxUnavailable = "1"
	b := newBench(o)
	if err := b.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	bare := options()
	bare.Bare, bare.Pods = true, 2
	stays := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stays",
		Labels: map[string]string{LoadLabel: "another"}}}
	elsewhere := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "elsewhere",
		Labels: map[string]string{LoadLabel: "burst"}}}
	for _, pod := range append(bare.pods(), stays, elsewhere) {
		if _, err := b.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods, err := b.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 2 {
		t.Errorf("pods that are left: %+v, error %v", pods, err)
	}
	deployments, err := b.client.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(deployments.Items) != 0 {
		t.Errorf("Deployments that are left: %+v, error %v", deployments, err)
	}
	budgets, err := b.client.PolicyV1().PodDisruptionBudgets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(budgets.Items) != 0 {
		t.Errorf("budgets that are left: %+v, error %v", budgets, err)
	}
}

// Whole ranges are drawn from, both ends included.
func TestDrawReachesBothEnds(t *testing.T) {
	o := options()
	o.CPU = Range{resource.MustParse("100m"), resource.MustParse("120m")}
	seen := map[int64]bool{}
	random := o.random()
	for range 200 {
		spec := o.podSpec(random)
		seen[spec.Containers[0].Resources.Requests.Cpu().MilliValue()] = true
	}
	if len(seen) != 3 || !seen[100] || !seen[120] {
		t.Errorf("drawn were %v", seen)
	}
}
