// Package budgets tells a view which disruption budgets there are, as far as a score reads them.
package budgets

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"loadline.dev/shim/view"
)

// Holder keeps budgets. *view.View and *view.Cycles are ones.
type Holder interface {
	SetObject(object any) error
	DeleteObject(object any) error
}

// Supply keeps the budgets of a view up to date until the context ends. After each change that counts it calls changed,
// if that is not nil. A client without the right to list them has none: their pods block nothing then.
func Supply(ctx context.Context, client kubernetes.Interface, to Holder, changed func()) {
	note := func(err error) {
		if err != nil {
			klog.ErrorS(err, "A disruption budget does not count for the score")
		}
		if changed != nil {
			changed()
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source(client),
		ObjectType: &policyv1.PodDisruptionBudget{}, Transform: slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { note(to.SetObject(object)) },
			UpdateFunc: func(_, object any) { note(to.SetObject(object)) },
			DeleteFunc: func(object any) {
				if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = unknown.Obj
				}
				note(to.DeleteObject(object))
			},
		}})
	go informer.RunWithContext(ctx)
}

// slim drops what no score reads.
func slim(object any) (any, error) {
	if budget, ok := object.(*policyv1.PodDisruptionBudget); ok {
		view.LastingBudget(budget)
	}
	return object, nil
}

func source(client kubernetes.Interface) cache.ListerWatcher {
	budgets := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return budgets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return budgets.Watch(ctx, o)
		},
	}, client)
}
