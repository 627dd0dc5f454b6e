package slack

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bufferPod requests 500m and 1Gi: the limit of a container without a request is its request.
func bufferPod() *v1.PodTemplateSpec {
	list := func(name v1.ResourceName, amount string) v1.ResourceList {
		return v1.ResourceList{name: resource.MustParse(amount)}
	}
	return &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "a", Resources: v1.ResourceRequirements{Requests: list("cpu", "300m")}},
		{Name: "b", Resources: v1.ResourceRequirements{Requests: list("cpu", "200m"), Limits: list("memory", "1Gi")}}}}}
}

// The number of copies follows the definition of the API: the more of replicas and percentage, rounded up, within the
// limits; the limits alone where there is neither.
func TestCopies(t *testing.T) {
	limits := func(cpu, memory string) v1.ResourceList {
		out := v1.ResourceList{}
		if cpu != "" {
			out["cpu"] = resource.MustParse(cpu)
		}
		if memory != "" {
			out["memory"] = resource.MustParse(memory)
		}
		return out
	}
	of := &ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "web"}
	for name, c := range map[string]struct {
		spec    CapacityBufferSpec
		current int32
		want    int32
		err     string
	}{
		"Replicas":           {CapacityBufferSpec{Replicas: new(int32(3))}, 0, 3, ""},
		"None":               {CapacityBufferSpec{Replicas: new(int32(0))}, 0, 0, ""},
		"TwentyPercentOfTen": {CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(20))}, 10, 2, ""},
		"RoundedUp":          {CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(20))}, 11, 3, ""},
		"OfNone":             {CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(20))}, 0, 0, ""},
		"MoreOfBoth": {
			CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(50)), Replicas: new(int32(4))}, 10, 5, ""},
		"MoreOfBothTheOther": {
			CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(10)), Replicas: new(int32(4))}, 10, 4, ""},
		"LimitedByCPU": {
			CapacityBufferSpec{Replicas: new(int32(9)), Limits: limits("1700m", "8Gi")}, 0, 3, ""},
		"LimitedByMemory":  {CapacityBufferSpec{Replicas: new(int32(9)), Limits: limits("8", "2Gi")}, 0, 2, ""},
		"ExactFitOfLimits": {CapacityBufferSpec{Replicas: new(int32(9)), Limits: limits("2", "")}, 0, 4, ""},
		"LimitsAlone":      {CapacityBufferSpec{Limits: limits("2", "3Gi")}, 0, 3, ""},
		"LimitsBelowOne":   {CapacityBufferSpec{Limits: limits("499m", "")}, 0, 0, ""},
		"OtherLimitsWithCount": {
			CapacityBufferSpec{Replicas: new(int32(2)), Limits: v1.ResourceList{"x.io/y": resource.MustParse("1")}}, 0, 2, ""},
		"OtherLimitsAlone": {
			CapacityBufferSpec{Limits: v1.ResourceList{"x.io/y": resource.MustParse("1")}}, 0, 0, "requests none"},
		"Nothing":              {CapacityBufferSpec{}, 0, 0, "needs replicas"},
		"PercentageOfNoObject": {CapacityBufferSpec{Percentage: new(int32(20))}, 10, 0, "needs replicas"},
		"TooMany":              {CapacityBufferSpec{Replicas: new(int32(1_000_001))}, 0, 0, "the limit is 1000000"},
		"HugePercentage": {
			CapacityBufferSpec{ScalableRef: of, Percentage: new(int32(1 << 30))}, 1 << 30, 0, "the limit is"},
		"NegativeCountOfSchema": {CapacityBufferSpec{Replicas: new(int32(-1))}, 0, 0, "-1 copies"},
	} {
		got, err := c.spec.Copies(c.current, bufferPod())
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d copies, error %v, want %d and %q", name, got, err, c.want, c.err)
		}
	}
}

// Our own buffers are distinguished from those of others by their label.
func TestOwnBuffersAreKnown(t *testing.T) {
	for _, object := range CapacityBuffers([]Shape{{Name: "slack-1", Namespace: "n", Replicas: 2, Pod: *bufferPod()}}) {
		if b, is := object.(*CapacityBuffer); is && (!b.IsOurs() || !b.IsKept()) {
			t.Errorf("%+v", b)
		}
	}
	other := &CapacityBuffer{Spec: CapacityBufferSpec{ProvisioningStrategy: "example.com/standby"}}
	if other.IsOurs() || other.IsKept() {
		t.Errorf("a buffer of another strategy counts as ours")
	}
}

// Three pods of 100 millicores take all of 300, which a quotient of fractions would not say. Copies limit what they
// request.
func TestQuotasAreCountedInWholeUnits(t *testing.T) {
	pod := &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("700Mi")}}}}}}
	for _, c := range []struct {
		name, hard string
		want       int32
	}{
		{"requests.cpu", "300m", 3}, {"cpu", "700m", 7}, {"requests.memory", "2099Mi", 2}, {"memory", "2100Mi", 3},
		{"pods", "4", 4}, {"limits.cpu", "350m", 3}, {"requests.cpu", "-1", 0},
	} {
		quotas := QuotasOf([]v1.ResourceQuota{{Status: v1.ResourceQuotaStatus{
			Hard: v1.ResourceList{v1.ResourceName(c.name): resource.MustParse(c.hard)}}}})
		if got := quotas.Take(pod, 9); got != c.want {
			t.Errorf("%s of %s: %d copies, want %d", c.hard, c.name, got, c.want)
		}
	}
}
