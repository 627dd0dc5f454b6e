package scenario

import (
	"bytes"
	"strings"
	"testing"

	"loadline.dev/shim/usage/profile"
)

const profileScenario = `
apiVersion: loadline.dev/v1alpha1
kind: Scenario
metadata: {name: p}
spec:
  profiles: profiles.csv
  groups: [{name: g, max: 1, milliCpu: 1000, memoryMib: 1024}]
  workloads:
  - {name: plain, replicas: 1}
  - {name: web, replicas: 1, use: {owner: shop/Deployment/web, deviationPercent: 10}}
`

func TestUseIsThatOfAnOwner(t *testing.T) {
	web := profile.Profile{Workload: profile.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}}
	for hour := range web.Day[profile.CPU] {
		web.Day[profile.CPU][hour] = int64(100 * hour)
		web.Day[profile.Memory][hour] = profile.Unknown
	}
	var file bytes.Buffer
	if err := profile.WriteTable(&file, []profile.Profile{web}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) ([]byte, error) {
		if name != "profiles.csv" {
			t.Errorf("%q is read", name)
		}
		return file.Bytes(), nil
	}
	_, got, err := ParseWith([]byte(profileScenario), read)
	if err != nil {
		t.Fatal(err)
	}
	use := got.GetWorkloads()[1].GetUse()
	if hours := use.GetCpuMilli(); len(hours) != 24 || hours[0] != 1 || hours[23] != 2300 {
		t.Errorf("cpu %v: a measured 0 is 1", hours)
	}
	if hours := use.GetMemoryBytes(); len(hours) != 24 || hours[5] != 0 || use.GetDeviationPercent() != 10 {
		t.Errorf("use %v", use)
	}
	if got.GetWorkloads()[0].GetUse() != nil {
		t.Error("a workload without use has one")
	}
	for _, wrong := range []string{"shop/Deployment/mail", "web"} {
		_, _, err := ParseWith([]byte(strings.Replace(profileScenario, "shop/Deployment/web", wrong, 1)), read)
		if err == nil || !strings.Contains(err.Error(), "spec.workloads[1].use.owner: spec.profiles has no") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
