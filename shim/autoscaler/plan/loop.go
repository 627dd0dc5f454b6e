package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// seen is what a loop has seen.
type seen struct {
	Now    time.Time
	Groups []*Group
	// groupOf are the groups of machines, by provider id.
	groupOf  map[string]string
	Pods     *scaleup.Pods // without a node
	UnderWay map[string]drain.UnderWay
	// Acknowledged says whether the cloud has said that it deletes a node.
	Acknowledged func(*v1.Node) bool
	// Sized are the groups that are sized by how full they are, by id, and SizePods what they count as demand.
	Sized    map[string]*SizedGroup
	SizePods *sizing.Gatherer
}

// Loop is what one loop finds out.
type Loop struct {
	seen
	// Warnings say which groups of the file are not sized and what they leave behind, which groups are left as they are,
	// and what else people should know.
	Warnings []string
	Plan     *Plan // nil: there is none
	// Outcome is the status of scale-down under Cluster Autoscaler's names, GrowthOutcome that of scale-up; Problem is
	// why there is no plan, or why it is not carried out.
	Outcome, GrowthOutcome string
	Problem                error
	SlackProblem           error // why slack is not kept as planned
	LeftOut                leftout.List
}

// NewLoop returns a loop that has seen nothing yet.
func NewLoop(now time.Time) *Loop {
	return &Loop{seen: seen{Now: now}, Outcome: OutcomeNotTried, GrowthOutcome: scaleUpNotTried}
}

// See takes note of the groups of the cloud. One that the engine cannot accept is left out: its nodes are in no
// group, and stay. One of impossible sizes has a Problem.
func (o *Loop) See(groups []cloud.Group) {
	o.groupOf = map[string]string{}
	for i := range groups {
		if !o.takes(&groups[i]) {
			continue
		}
		if groups[i].Problem == nil {
			groups[i].Problem = sizeProblem(&groups[i])
		}
		o.Groups = append(o.Groups, &Group{Group: &groups[i]})
		for _, instance := range groups[i].Instances {
			if instance.GetId() != "" {
				o.groupOf[instance.GetId()] = groups[i].ID
			}
		}
	}
}

// Outcomes under the names of Cluster Autoscaler, where the engine does not tell them.
const (
	OutcomeNotTried   = "ScaleDownNotTried"
	scaleUpNotTried   = "ScaleUpNotTried"
	ScaleUpSuccessful = "ScaleUpSuccessful"
	ScaleUpError      = "ScaleUpError"
)

// Answer is what the engine says; nil: there is no plan.
func (o *Loop) Answer() *loadlinev1.PlanLoopResponse {
	if o.Plan == nil {
		return nil
	}
	return o.Plan.Answer
}

// Fleet is what the engine has found out about machines, and what is to be done.
func (o *Loop) Fleet() *loadlinev1.LoopFleetAnswer { return o.Answer().GetFleet() }

// Report is the report of the engine for people; nil: there is no plan.
func (o *Loop) Report() *loadlinev1.LoopReport { return o.Answer().GetReport() }

// Group returns a node group by its id; nil: there is none.
func (o *Loop) Group(id string) *Group {
	for _, g := range o.Groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// Entry returns the pods at a position of the question; none where they are on nodes that are being deleted.
func (o *Loop) Entry(position int32) []*v1.Pod {
	if position < 0 || int(position) >= len(o.Plan.entries) {
		return nil
	}
	return o.Pods.Entry(o.Plan.entries[position])
}

// Group is a node group as one loop sees it.
type Group struct {
	*cloud.Group
	// Found is what the engine has found out about it; nil: there is no answer.
	Found *loadlinev1.GroupSight
}
