package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"loadline.dev/shim/dump"
)

// keptLists holds the objects of each kind that was listed whole. A kind that this API server refuses to list, or does
// not have, is kept with the error. Objects are shared: nobody changes one.
type keptLists map[string]keptList

type keptList struct {
	objects []runtime.Object
	err     error
}

// lister reads a live cluster: each kind once, some hundred objects at a time.
type lister struct {
	client kubernetes.Interface
	kept   keptLists // nil: nothing is kept
}

// read is sourceFlags.read of a live cluster.
func (l *lister) read(ctx context.Context, handler dump.Handler, kinds []string) (dump.Counts, error) {
	counts := dump.Counts{Objects: map[string]int{}}
	nodes := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Nodes().List(ctx, o)
	}
	pods := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	}
	var err error
	counts.Nodes, err = l.each(ctx, "Node", nodes, func(o runtime.Object) error { return handler.Node(o.(*v1.Node)) })
	if err != nil {
		return counts, fmt.Errorf("nodes: %w", err)
	}
	counts.Pods, err = l.each(ctx, "Pod", pods, func(o runtime.Object) error { return handler.Pod(o.(*v1.Pod)) })
	if err != nil {
		return counts, fmt.Errorf("pods: %w", err)
	}
	if handler.Object != nil {
		err = l.objects(ctx, filterObjects(l.client), nil, handler.Object, counts.Objects)
	}
	if err == nil && handler.PlannerObject != nil {
		err = l.objects(ctx, plannerObjects(l.client), kinds, handler.PlannerObject, counts.Objects)
	}
	return counts, err
}

// objects hands all objects of these kinds to handle and counts them by kind; `only` are those of interest, nil: all.
// A kind that may not be listed is left out: what hangs on it is not judged.
func (l *lister) objects(ctx context.Context, kinds map[string]pager.ListPageFunc, only []string,
	handle func(any) error, counts map[string]int) error {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if only != nil && !slices.Contains(only, kind) {
			continue
		}
		count, err := l.each(ctx, kind, kinds[kind], func(o runtime.Object) error { return handle(o) })
		switch {
		case apierrors.IsForbidden(err):
			continue
		case apierrors.IsNotFound(err): // this API server has no such kind
		case err != nil:
			return fmt.Errorf("%s: %w", kind, err)
		}
		counts[kind] = count
	}
	return nil
}

// each hands all objects of a kind to handle and counts them.
func (l *lister) each(ctx context.Context, kind string, list pager.ListPageFunc,
	handle func(runtime.Object) error) (count int, err error) {
	if kept, ok := l.kept[kind]; ok {
		for _, object := range kept.objects {
			if err := handle(object); err != nil {
				return count, err
			}
			count++
		}
		return count, kept.err
	}
	var kept keptList
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		count++
		if l.kept != nil {
			kept.objects = append(kept.objects, object)
		}
		return handle(object)
	})
	if kept.err = err; l.kept != nil && (err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		l.kept[kind] = kept
	}
	return count, err
}

// filterObjects lists what filters look up, by kind.
func filterObjects(client kubernetes.Interface) map[string]pager.ListPageFunc {
	core, storage := client.CoreV1(), client.StorageV1()
	return map[string]pager.ListPageFunc{
		"Namespace": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Namespaces().List(ctx, o)
		},
		"PersistentVolume": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.PersistentVolumes().List(ctx, o)
		},
		"PersistentVolumeClaim": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, o)
		},
		"StorageClass": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.StorageClasses().List(ctx, o)
		},
		"CSINode": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.CSINodes().List(ctx, o)
		},
		"CSIDriver": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.CSIDrivers().List(ctx, o)
		},
		"DeviceClass": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.ResourceV1().DeviceClasses().List(ctx, o)
		},
	}
}

// plannerObjects lists what planners look up, by kind.
func plannerObjects(client kubernetes.Interface) map[string]pager.ListPageFunc {
	apps := client.AppsV1()
	return map[string]pager.ListPageFunc{
		"PodDisruptionBudget": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, o)
		},
		"Service": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Services(metav1.NamespaceAll).List(ctx, o)
		},
		"ReplicationController": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().ReplicationControllers(metav1.NamespaceAll).List(ctx, o)
		},
		"ReplicaSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.ReplicaSets(metav1.NamespaceAll).List(ctx, o)
		},
		"StatefulSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.StatefulSets(metav1.NamespaceAll).List(ctx, o)
		},
		"DaemonSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.DaemonSets(metav1.NamespaceAll).List(ctx, o)
		},
		"Deployment": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.Deployments(metav1.NamespaceAll).List(ctx, o)
		},
		"Job": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, o)
		},
	}
}
