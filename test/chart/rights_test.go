package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// allows says whether one of the roles allows a request for an object of a name.
func allows(t *testing.T, objects []*unstructured.Unstructured, verb, resource, name string) bool {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, verb) && slices.Contains(rule.Resources, resource) &&
				slices.Contains(rule.ResourceNames, name) {
				return true
			}
		}
	}
	return false
}

// The rights name the objects that the configuration names, and no others.
func TestRightsFollowNames(t *testing.T) {
	c := load(t)
	for _, test := range []struct{ full, lease, status string }{
		{"", "", ""},
		{"", "cluster-autoscaler", "cluster-autoscaler-status"},
		{"blue", "", ""},
		{"blue", "my-lease", "my-status"},
	} {
		v := setter{on("autoscaler")}.with("autoscaler.mode", "act")
		name := "loadline"
		if test.full != "" {
			name = test.full
			v = v.with("fullnameOverride", name)
		}
		lease, status := name+"-autoscaler", name+"-autoscaler-status"
		if test.lease != "" {
			lease, status = test.lease, test.status
			v = v.with("autoscaler.config.leaderElection.resourceName", lease).
				with("autoscaler.config.statusConfigMapName", status)
		}
		objects := mustRender(t, c, "anywhere", v.values)
		if !allows(t, objects, "update", "leases", lease) || !allows(t, objects, "update", "configmaps", status) ||
			!allows(t, objects, "update", "configmaps", lease+"-state") ||
			test.lease != "" && (allows(t, objects, "update", "leases", name+"-autoscaler") ||
				allows(t, objects, "update", "configmaps", name+"-autoscaler-status")) {
			t.Errorf("%+v: the rights are for other objects than %s and %s", test, lease, status)
		}
		for _, o := range objects { // that are made empty, so that no right to create any is needed
			if data, has := o.Object["data"]; o.GetKind() == "ConfigMap" && (!has || data == nil) &&
				o.GetName() != status && o.GetName() != lease+"-state" || o.GetKind() == "Lease" && o.GetName() != lease {
				t.Errorf("%+v: %s has another name than the configuration", test, key(o))
			}
		}
	}
}

// Mode act has the rights that its decisions need, and no others. The default decisions have all of a provider's.
func TestRightsFollowDecisions(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		name   string
		config values
		want   []string // roles of the whole cluster, beside those of mode observe
	}{
		{"default", values{}, []string{"act", "act-karpenter", "act-nodes"}},
		{"all", values{"decisions": []any{"scale-up", "slack", "scale-down", "replace", "downscale-order"}},
			[]string{"act", "act-downscale-order", "act-karpenter", "act-nodes"}},
		{"slack", values{"decisions": []any{"slack"}}, []string{"act"}},
		{"scale-up", values{"decisions": []any{"scale-up"}}, []string{"act", "act-karpenter", "act-nodes"}},
		{"scale-down", values{"decisions": []any{"scale-down"}}, []string{"act", "act-karpenter", "act-nodes"}},
		{"slack of sized groups", values{"decisions": []any{"slack"}, "sizing": values{"nodeGroups": "/groups.yaml"}},
			[]string{"act", "act-karpenter", "act-nodes"}},
	} {
		for _, kind := range []string{"karpenter", "cluster-api"} {
			v := setter{on("autoscaler")}.with("autoscaler.mode", "act").with("autoscaler.config", test.config).
				with("autoscaler.config.cloudProvider.kind", kind).values
			var got []string
			for _, o := range mustRender(t, c, "anywhere", v) {
				name, ours := strings.CutPrefix(o.GetName(), "loadline-autoscaler:")
				if o.GetKind() == "ClusterRole" && ours && strings.HasPrefix(name, "act") {
					got = append(got, strings.ReplaceAll(name, "act-"+kind, "act-karpenter"))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s with %s: roles %v, want %v", test.name, kind, got, test.want)
			}
		}
	}
}

// An argument of the autoscaler that would need other rights than those of the values is refused when the chart is
// rendered, and so is a provider that there is not.
func TestArgumentsThatNeedRights(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"autoscaler.extraArgs", []any{"-v=3", "--cloud=karpenter"}, "set autoscaler.config.cloudProvider.kind"},
		{"autoscaler.extraArgs", []any{"--mode=act"}, "set autoscaler.mode"},
		{"autoscaler.extraArgs", []any{"--capacity_buffer_controller_enabled"},
			"set autoscaler.config.slack.capacityBuffers"},
		{"autoscaler.extraArgs", []any{"--capacity-quotas-enabled=true"}, "set autoscaler.config.scaleUp.capacityQuotas"},
		{"autoscaler.extraArgs", []any{"--sized-node-groups=/a.yaml"}, "set autoscaler.config.sizing.nodeGroups"},
		{"autoscaler.extraArgs", []any{"--leader-elect-resource-name=a"},
			"set autoscaler.config.leaderElection.resourceName"},
		{"autoscaler.config", values{"cloudProvider": values{"kind": "aws"}},
			`autoscaler.config.cloudProvider.kind "aws": must be externalgrpc, karpenter, cluster-api or none`},
		{"autoscaler", values{"enabled": true, "mode": "act", "config": values{"cloudProvider": values{"kind": "none"}}},
			"autoscaler.mode act: needs a cloud provider"},
		{"autoscaler", values{"enabled": true, "mode": "act", "config": values{"cloudProvider": values{"kind": "none"},
			"decisions": []any{"slack", "scale-down"}}}, "autoscaler.mode act: needs a cloud provider"},
		{"autoscaler", values{"enabled": true, "mode": "act", "config": values{"cloudProvider": values{"kind": "none"},
			"decisions": []any{"slack"}, "sizing": values{"nodeGroups": "/etc/loadline/groups.yaml"}}},
			"autoscaler.mode act: needs a cloud provider"},
		{"autoscaler", values{"enabled": true, "mode": "act", "config": values{"cloudProvider": values{"kind": "none"},
			"decisions": []any{"slack"}}}, ""},
		{"autoscaler.extraArgs", []any{"-v=3", "--cloud-address=a:1", "--max-nodes-total=5"}, ""},
		{"autoscaler.config", values{"cloudProvider": values{"kind": "none"}}, ""},
	} {
		_, err := render(c, "anywhere", setter{on("autoscaler")}.with(test.path, test.value).values)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %v: error %v, want %q", test.path, test.value, err, test.want)
		}
	}
}

// Further rules are added to one role of the autoscaler, whatever its name, and to no other.
func TestFurtherRulesOfTheAutoscaler(t *testing.T) {
	c := load(t)
	for _, name := range []string{"loadline", "blue"} {
		v := setter{on("autoscaler")}.with("fullnameOverride", name)
		before := len(rulesFor(t, mustRender(t, c, "anywhere", v.values), "machinetemplates"))
		v = v.with("autoscaler.extraRules", []any{values{"apiGroups": []any{"infra.test"},
			"resources": []any{"machinetemplates"}, "verbs": []any{"get"}}})
		got := rulesFor(t, mustRender(t, c, "anywhere", v.values), "machinetemplates")
		want := []string{name + "-autoscaler:observe [get] [infra.test]"}
		if before != 0 || !slices.Equal(got, want) {
			t.Errorf("%d rules before, then %q, want %q", before, got, want)
		}
	}
}

// rulesFor returns the rules of ClusterRoles for a resource, with the name of the role.
func rulesFor(t *testing.T, objects []*unstructured.Unstructured, resource string) (found []string) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, resource) {
				found = append(found, fmt.Sprint(role.Name, " ", rule.Verbs, " ", rule.APIGroups))
			}
		}
	}
	return found
}
