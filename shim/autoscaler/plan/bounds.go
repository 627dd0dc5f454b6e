package plan

import (
	"fmt"
	"math"
	"time"

	"loadline.dev/shim/autoscaler/cloud"
)

// The bounds of what the engine accepts, each with its name there. The engine refuses a whole question that
// exceeds one of them, so that what a provider says of one group is compared with them first: it is left out, or counts
// as not stated, and is reported. A test compares the numbers with those of the engine.
const (
	mostMessageBytes = 4 << 20       // kMaxMessageBytes
	mostMachines     = 100_000       // kMaxFleetMachines: of all groups
	mostTime         = 1 << 40       // kMaxDrainTime: of drains, in seconds
	mostFleetTime    = 1 << 50       // kMaxFleetTimeMs: of machines, in milliseconds
	mostObjectBytes  = 1536 << 10    // kMaxObjectBytes: of one template
	mostUpcoming     = 20_000        // kMostUpcomingNodes in core/loop: of one group
	mostSize         = math.MaxInt32 // a number of nodes is an int32 in each message
)

// The shares of a question, chosen.
const (
	// mostBytes is how large a question may be: some room is left for its frame.
	mostBytes = mostMessageBytes - 64<<10
	// podBytes is the part that groups leave to pods that wait, so that groups stay as they are from loop to loop,
	// however many pods come.
	podBytes = 512 << 10
	// mostTemplateBytes is how large all templates of one question may be together.
	mostTemplateBytes = 2 << 20
	// mostFaultCode and mostFaultText bound the texts of one fault: thousands of machines may fail at once.
	mostFaultCode, mostFaultText = 64, 160
)

// Bounds on texts: users, the cloud and errors write them, and a ConfigMap holds 1 MiB.
const (
	MostStatusText = 512
	MostPageText   = 2048
)

// AnswerTime is what telling the engine what has changed, and its answer, may take beside planning.
const AnswerTime = 30 * time.Second

// Number returns a number of nodes as messages have it. A number beyond their range is cut to it, so that it keeps its
// sign and is as large as can be: a provider may state a maximum that no group ever reaches.
func Number(n int) int32 { return int32(min(max(n, math.MinInt32), mostSize)) }

// sizeProblem says which size of a group no group can have; nil: it can have all of them.
func sizeProblem(g *cloud.Group) error {
	for _, size := range []struct {
		name  string
		nodes int
		most  int
	}{{"minimum", g.Min, mostSize}, {"maximum", g.Max, math.MaxInt}, {"target", g.Target, mostSize}} {
		if size.nodes < 0 || size.nodes > size.most {
			return fmt.Errorf("it states a %s of %d nodes", size.name, size.nodes)
		}
	}
	return nil
}
