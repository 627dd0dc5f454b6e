package harness

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// GangGates is the flag that switches pod groups on, in the API server and in a scheduler: alpha in 1.36, from 1.37 on
// beta and off.
func GangGates() string {
	if Minor() == "1.36" {
		return "--feature-gates=GenericWorkload=true,GangScheduling=true"
	}
	return "--feature-gates=GenericWorkload=true"
}

func gangVersion() string {
	if Minor() == "1.36" {
		return "scheduling.k8s.io/v1alpha2"
	}
	return "scheduling.k8s.io/v1beta1"
}

// CreateGang creates a pod group of which none is placed unless so many can be.
func (c *Cluster) CreateGang(ctx context.Context, namespace, name string, least int) error {
	return c.Apply(ctx, []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": gangVersion(), "kind": "PodGroup",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(least)}}},
	}}})
}
