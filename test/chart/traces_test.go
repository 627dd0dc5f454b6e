package chart

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// everyObject calls a function for all objects of all kinds, but for events, which go away by themselves.
func everyObject(t *testing.T, ctx context.Context, client kubernetes.Interface,
	see func(kind string, o *unstructured.Unstructured)) {
	t.Helper()
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || r.Name == "events" {
				continue
			}
			prefix := "/apis/" + list.GroupVersion
			if list.GroupVersion == "v1" {
				prefix = "/api/v1"
			}
			raw, err := client.Discovery().RESTClient().Get().AbsPath(prefix, r.Name).SetHeader("Accept", "application/json").
				DoRaw(ctx)
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			var found unstructured.UnstructuredList
			if err := found.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			for _, o := range found.Items {
				see(r.Name, &o)
			}
		}
	}
}

// traces returns all objects by which one could tell that Loadline was there, but for the namespace of the release,
// which Helm leaves.
func traces(t *testing.T, ctx context.Context, client kubernetes.Interface) (names []string) {
	t.Helper()
	everyObject(t, ctx, client, func(kind string, o *unstructured.Unstructured) {
		if strings.Contains(o.GetName(), "loadline") && o.GetName() != namespace {
			names = append(names, kind+" "+o.GetNamespace()+"/"+o.GetName())
		}
	})
	slices.Sort(names)
	return names
}

// contents returns all objects with what they hold, but for what changes by itself: the versions of objects, and who
// holds a lease until when.
func contents(t *testing.T, ctx context.Context, client kubernetes.Interface) map[string]string {
	t.Helper()
	all := map[string]string{}
	everyObject(t, ctx, client, func(kind string, o *unstructured.Unstructured) {
		if kind == "componentstatuses" {
			return // not stored: asked of the components each time
		}
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		if kind == "leases" {
			unstructured.RemoveNestedField(o.Object, "spec")
		}
		content, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		all[kind+" "+o.GetAPIVersion()+" "+o.GetNamespace()+"/"+o.GetName()] = string(content)
	})
	return all
}
