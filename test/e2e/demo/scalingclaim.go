package demo

import "fmt"

// Names of the two runs, and the slack that the second one keeps.
const (
	WithoutSlack = "without slack"
	WithSlack    = "with slack"
	SlackRate    = "40%"
)

// CheckScaling returns in words what does not hold of the claim.
func CheckScaling(without, with *Scaling) (problems []string) {
	for _, r := range []*Scaling{without, with} {
		for _, broken := range r.Broken {
			problems = append(problems, r.Name+": "+broken)
		}
		if r.LoadTook < NodeStart {
			problems = append(problems,
				fmt.Sprintf("%s: the load waited %v, a node takes %v to start", r.Name, r.LoadTook, NodeStart))
		}
		if bound := 2 * NodeStart; r.LoadTook > bound || r.BurstTook > bound {
			problems = append(problems,
				fmt.Sprintf("%s: pods waited %v and %v, longer than %v", r.Name, r.LoadTook, r.BurstTook, bound))
		}
		// None may have to move: those that are left may all be on nodes that stay.
		if r.Evictions[201] < r.Moved {
			problems = append(problems, fmt.Sprintf("%s: %d pods were on nodes that went, and evictions were "+
				"answered with %v", r.Name, r.Moved, r.Evictions))
		}
		if r.Moved > 0 && r.PutOff == 0 {
			problems = append(problems, fmt.Sprintf("%s: %d pods were on nodes that went, and budgets that were "+
				"closed put no eviction off", r.Name, r.Moved))
		}
	}
	if usd := without.MixUSD(); usd > CheapestGroupUSD+1e-9 {
		problems = append(problems, fmt.Sprintf("the nodes for the load, %s, cost %.2f USD per hour, nodes of one "+
			"group %.2f", without.MixText(), usd, CheapestGroupUSD))
	}
	if without.BurstTook < NodeStart {
		problems = append(problems,
			fmt.Sprintf("without slack the burst waited %v, less than a node takes to start", without.BurstTook))
	}
	if with.Most < 2 { // without slack there may be too few nodes for it
		problems = append(problems,
			fmt.Sprintf("with slack %d nodes were seen to go at once, nothing was parallel", with.Most))
	}
	if with.BurstTook > BurstBound {
		problems = append(problems,
			fmt.Sprintf("with slack the burst waited %v, more than %v", with.BurstTook, BurstBound))
	}
	return problems
}
