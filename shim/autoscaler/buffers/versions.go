package buffers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

const (
	group = "autoscaling.x-k8s.io"
	kind  = "capacitybuffers" // as the API names it
)

// knownVersions are those whose fields are known, the newest first. Cluster Autoscaler 1.34 brings v1alpha1 alone.
var knownVersions = []string{"v1beta1", "v1alpha1"}

func (b *Buffers) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: b.version, Resource: kind}
}

// list returns all buffers, in the newest known version that is served. There are none if the API server has no such
// version, or refuses to list them.
func (b *Buffers) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	none := &unstructured.UnstructuredList{}
	for range 2 { // a version that is gone may have been replaced by another one
		if b.version == "" {
			if err := b.discover(); err != nil {
				return nil, err
			}
		}
		if b.version == "" {
			return none, nil
		}
		list, err := b.objects.Resource(b.resource()).List(ctx, metav1.ListOptions{Limit: mostBuffers})
		switch {
		case apierrors.IsForbidden(err):
			b.warning = fmt.Sprintf("no CapacityBuffers are kept: %v", err)
			return none, nil
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			b.version = ""
		case err != nil:
			return nil, err
		default:
			b.warning = ""
			return list, nil
		}
	}
	return none, nil
}

// discover finds out which version to speak. Other kinds of the group may be served in further versions.
func (b *Buffers) discover() error {
	groups, err := b.served.ServerGroups()
	if err != nil {
		return err
	}
	var served []string
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	for i := 0; at >= 0 && i < len(groups.Groups[at].Versions); i++ {
		version := groups.Groups[at].Versions[i]
		list, err := b.served.ServerResourcesForGroupVersion(version.GroupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind }) {
			served = append(served, version.Version)
		}
	}
	b.warning = ""
	for _, known := range knownVersions {
		if slices.Contains(served, known) {
			b.version = known
			klog.V(2).InfoS("CapacityBuffers are kept", "version", known)
			return nil
		}
	}
	if len(served) > 0 {
		b.warning = fmt.Sprintf("no CapacityBuffers are kept: the API server has them in %s of %s only, and known are %s",
			strings.Join(served, ", "), group, strings.Join(knownVersions, " and "))
	} else if !b.silent {
		b.silent = true
		klog.InfoS("No CapacityBuffers are kept: the API server has no such kind")
	}
	return nil
}

// Warning says why the buffers of a cluster are not kept; empty: they are, or there is no such kind.
func (b *Buffers) Warning() string {
	if b == nil {
		return ""
	}
	return b.warning
}
