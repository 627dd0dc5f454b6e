package workload

import (
	"math"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
)

// A limitRule derives limits from requests. cpu and memory are multiplied each by a ratio of its own, drawn for each
// application; everything else is limited at what it requests, as Kubernetes demands for extended resources.
type limitRule struct{ random *rand.Rand }

func newLimitRule(seed uint64) limitRule { return limitRule{newRandom(seed, forLimits)} }

func (rule limitRule) draw(requests v1.ResourceList) v1.ResourceList {
	limits := requests.DeepCopy()
	ratios := largeRatio
	if requests.Cpu().MilliValue() < 1000 {
		ratios = smallRatio
	}
	limits[v1.ResourceCPU] = cores(scale(requests.Cpu().MilliValue(), pick(rule.random, ratios)))
	limits[v1.ResourceMemory] = bytes(scale(requests.Memory().Value(), pick(rule.random, ratios)))
	return limits
}

// scale multiplies and rounds up: a limit below its request would be refused.
func scale(amount int64, ratio float64) int64 { return int64(math.Ceil(float64(amount) * ratio)) }
