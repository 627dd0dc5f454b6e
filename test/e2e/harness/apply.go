package harness

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Apply does what `kubectl apply --server-side` does, in order, and refuses unknown fields.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client.Discovery()))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		body, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(),
			"application/apply-patch+yaml", body,
			metav1.PatchOptions{FieldManager: "e2e", Force: new(true), FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}
