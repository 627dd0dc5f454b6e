package fit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"loadline.dev/shim/api/loadlinev1"
)

var (
	addedAffinity = &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: "rack", Operator: v1.NodeSelectorOpNotIn, Values: []string{"r1"}}}},
			{MatchFields: []v1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"node-0"}}}},
		}}}
	defaultConstraints = []v1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule},
		{MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway},
	}
	serviceSelector = map[string]string{"app": "web"}
)

// configured gives a profile the arguments that the engine takes as options.
func configured(profile *config.KubeSchedulerProfile) {
	for i := range profile.PluginConfig {
		switch args := profile.PluginConfig[i].Args.(type) {
		case *config.NodeAffinityArgs:
			args.AddedAffinity = addedAffinity
		case *config.NodeResourcesFitArgs:
			args.IgnoredResources = []string{"example.com/gpu"}
		case *config.PodTopologySpreadArgs:
			args.DefaultingType, args.DefaultConstraints = config.ListDefaulting, defaultConstraints
		}
	}
}

// A scheduler with added affinity, ignored resources and default constraints, in a cluster with a service per
// namespace that selects the pods of one app.
func TestConfiguredFiltersEqualUpstream(t *testing.T) {
	p := newPair(t, configured)
	p.options.IgnoredResources = []string{"example.com/gpu"}
	var err error
	if p.options.AddedAffinity, err = addedAffinity.Marshal(); err != nil {
		t.Fatal(err)
	}
	for i := range defaultConstraints {
		constraint, err := defaultConstraints[i].Marshal()
		if err != nil {
			t.Fatal(err)
		}
		p.options.DefaultSpreadConstraints = append(p.options.DefaultSpreadConstraints, constraint)
	}
	p.defaultSelector = func(pod *v1.Pod) []byte {
		if pod.Labels["app"] != serviceSelector["app"] {
			return nil
		}
		selector, err := (&metav1.LabelSelector{MatchLabels: serviceSelector}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	var services []*v1.Service
	for _, namespace := range []string{"shop", "ops", "lab"} {
		services = append(services, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
			Spec: v1.ServiceSpec{Selector: serviceSelector}})
	}
	if err := fill(p.upstream.informers.Core().V1().Services().Informer(), services); err != nil {
		t.Fatal(err)
	}
	coverage := NewCoverage()
	for seed := uint64(0); seed < 2000 && !t.Failed(); seed++ {
		p.check(t, seed+1_000_000, coverage)
	}
	if coverage.No["PodTopologySpread"] < 100 || coverage.No["NodeAffinity"] < 300 {
		t.Errorf("the options decide too little:\n%s", coverage)
	}
}

// Groups of extended resources are left out by the part before the slash.
func TestIgnoredResourceGroups(t *testing.T) {
	p := newPair(t, func(profile *config.KubeSchedulerProfile) {
		for i := range profile.PluginConfig {
			if args, ok := profile.PluginConfig[i].Args.(*config.NodeResourcesFitArgs); ok {
				args.IgnoredResourceGroups = []string{"example.com"}
			}
		}
	})
	p.options = &loadlinev1.FitOptions{IgnoredResourceGroups: []string{"example.com"}, KubernetesMinor: Minor()}
	for seed := uint64(0); seed < 300 && !t.Failed(); seed++ {
		p.check(t, seed+2_000_000, NewCoverage())
	}
}
