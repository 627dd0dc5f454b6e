package source

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/shim/usage/profile"
)

// apiOwners finds workloads by the pods that an API server has now. What ran before and is gone has none.
type apiOwners struct{ pods cache.SharedIndexInformer }

// FollowOwners follows the metadata of pods until the context ends, and keeps what tells their workload.
func FollowOwners(ctx context.Context, client metadata.Interface) (Owners, error) {
	pods := metadatainformer.NewFilteredMetadataInformer(client, v1.SchemeGroupVersion.WithResource("pods"),
		metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := pods.SetTransform(keepOwner); err != nil {
		return nil, err
	}
	go pods.RunWithContext(ctx)
	return apiOwners{pods}, nil
}

// keepOwner drops all of a pod's metadata but its name, its controller and the hash of its template.
func keepOwner(object any) (any, error) {
	pod, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{Kind: controller.Kind, Name: controller.Name,
			Controller: controller.Controller}}
	}
	if hash, labeled := pod.Labels[templateHash]; labeled {
		kept.Labels = map[string]string{templateHash: hash}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: pod.TypeMeta, ObjectMeta: kept}, nil
}

// During ignores the times: it knows the pods of now.
func (o apiOwners) During(context.Context, int64, int64) (func(Pod) (profile.Workload, bool), error) {
	if !o.pods.HasSynced() {
		return nil, errors.New("the pods are not listed yet")
	}
	return func(pod Pod) (profile.Workload, bool) {
		object, found, err := o.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
		known, ok := object.(*metav1.PartialObjectMetadata)
		if err != nil || !found || !ok {
			return profile.Workload{}, false
		}
		controller := metav1.GetControllerOf(known)
		if controller == nil {
			return profile.Workload{}, false
		}
		return workloadOf(pod.Namespace, controller.Kind, controller.Name, known.Labels[templateHash])
	}, nil
}
