package workload

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestSubmittedIsAsTheAPIServerStoresIt(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"LimitsOnly", `containers: [{name: a, resources: {limits: {cpu: "2", nvidia.com/gpu: "1"}}}]`,
			`containers: [{name: a, resources: {limits: {cpu: "2", nvidia.com/gpu: "1"},
				requests: {cpu: "2", nvidia.com/gpu: "1"}}}]`},
		{"OneRequest", `containers: [{name: a, resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "1"}}}]`,
			`containers: [{name: a, resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "1", memory: 1Gi}}}]`},
		{"RequestOfZero", `containers: [{name: a, resources: {limits: {cpu: "2"}, requests: {cpu: "0"}}}]`,
			`containers: [{name: a, resources: {limits: {cpu: "2"}, requests: {cpu: "0"}}}]`},
		{"InitContainer",
			`{containers: [{name: a, resources: {}}], initContainers: [{name: i, resources: {limits: {cpu: "2"}}}]}`,
			`{containers: [{name: a, resources: {}}],
				initContainers: [{name: i, resources: {limits: {cpu: "2"}, requests: {cpu: "2"}}}]}`},
		{"WholePod", `{containers: [{name: a, resources: {}}], resources: {limits: {cpu: "2"}}}`,
			`{containers: [{name: a, resources: {}}], resources: {limits: {cpu: "2"}, requests: {cpu: "2"}}}`},
		{"WholePodBesideContainers",
			`{containers: [{name: a, resources: {requests: {cpu: "1"}}}], resources: {limits: {cpu: "2"}}}`,
			`{containers: [{name: a, resources: {requests: {cpu: "1"}}}], resources: {limits: {cpu: "2"}}}`},
		{"HostNetwork", `{hostNetwork: true, containers: [{name: a, resources: {}, ports: [{containerPort: 80}]}]}`,
			`{hostNetwork: true, containers: [{name: a, resources: {}, ports: [{containerPort: 80, hostPort: 80}]}]}`},
		{"NoHostNetwork", `containers: [{name: a, resources: {}, ports: [{containerPort: 80}]}]`,
			`containers: [{name: a, resources: {}, ports: [{containerPort: 80}]}]`},
	} {
		var spec, want v1.PodSpec
		for into, text := range map[*v1.PodSpec]string{&spec: c.spec, &want: c.want} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatal(c.name, err)
			}
		}
		Submitted(&spec)
		got, _ := yaml.Marshal(spec)
		if wanted, _ := yaml.Marshal(want); string(got) != string(wanted) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, wanted)
		}
	}
}
