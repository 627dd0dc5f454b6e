package source

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podresources "k8s.io/component-helpers/resource"

	"loadline.dev/shim/usage/profile"
)

// apiOwners finds workloads and limits by the pods that an API server has now. What ran before and is gone has none.
type apiOwners struct{ pods cache.SharedIndexInformer }

// ownedPod is all that is kept of a pod.
type ownedPod struct {
	metav1.ObjectMeta
	owned Owned
	found bool // it belongs to a workload
}

// FollowOwners follows pods until the context ends, and keeps their workloads and limits.
func FollowOwners(ctx context.Context, client kubernetes.Interface) (Owners, error) {
	pods := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	if err := pods.SetTransform(keepOwned); err != nil {
		return nil, err
	}
	go pods.RunWithContext(ctx)
	return apiOwners{pods}, nil
}

// keepOwned drops all of a pod but its name, its workload and its limits.
func keepOwned(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	kept := &ownedPod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion}}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		kept.owned.Workload, kept.found = workloadOf(pod.Namespace, controller.Kind, controller.Name,
			pod.Labels[templateHash])
	}
	limits := podresources.PodLimits(pod, podresources.PodResourcesOptions{})
	kept.owned.Limits[profile.CPU] = min(max(limits.Cpu().MilliValue(), 0), mostMilliCPU)
	kept.owned.Limits[profile.Memory] = min(max(limits.Memory().Value(), 0), mostMemory)
	return kept, nil
}

// ErrNotListed is that the API server has not listed its pods yet.
var ErrNotListed = errors.New("the pods are not listed yet")

// During ignores the times: it knows the pods of now.
func (o apiOwners) During(context.Context, int64, int64, *Outcome) (func(Pod) (Owned, bool), error) {
	if !o.pods.HasSynced() {
		return nil, ErrNotListed
	}
	return func(pod Pod) (Owned, bool) {
		object, found, err := o.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
		known, ok := object.(*ownedPod)
		if err != nil || !found || !ok {
			return Owned{}, false
		}
		return known.owned, known.found
	}, nil
}
