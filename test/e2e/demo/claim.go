package demo

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/report"
)

// Claimed are the resources that the claim is about: those that the plugin scores by default.
var Claimed = []string{string(v1.ResourceCPU), string(v1.ResourceMemory)}

// CheckClaim returns in words what does not hold of the claim: over the nodes, p95 and maximum of limits/allocatable
// are lower in `ours` than in `stock`, for cpu and for memory, and no more pods are left pending.
func CheckClaim(stock, ours report.Placement) []string {
	var broken []string
	for _, resource := range Claimed {
		before, after := report.Summarize(stock, resource), report.Summarize(ours, resource)
		for _, measure := range []struct {
			name          string
			before, after float64
		}{{"p95", before.P95, after.P95}, {"max", before.Max, after.Max}} {
			if measure.after >= measure.before {
				broken = append(broken, fmt.Sprintf("%s of %s limits/allocatable is %.4f with %s, not below the "+
					"%.4f of %s", measure.name, resource, measure.after, ours.Name, measure.before, stock.Name))
			}
		}
	}
	if ours.PendingPods > stock.PendingPods {
		broken = append(broken, fmt.Sprintf("%d pods are pending with %s, more than the %d of %s",
			ours.PendingPods, ours.Name, stock.PendingPods, stock.Name))
	}
	return broken
}
