package drain

// Outcome says how a call of Start ended.
type Outcome string

// Outcomes, under the names of Cluster Autoscaler.
const (
	NoNodeDeleted     Outcome = "ScaleDownNoNodeDeleted"
	NodeDeleteStarted Outcome = "ScaleDownNodeDeleteStarted"
	Failed            Outcome = "ScaleDownError"
)

// Result says how the removal of a node ended.
type Result string

// Results, under the names of Cluster Autoscaler.
const (
	NodeDeleteOK       Result = "NodeDeleteOk"
	ErrorFailedToMark  Result = "NodeDeleteErrorFailedToMarkToBeDeleted"
	ErrorFailedToEvict Result = "NodeDeleteErrorFailedToEvictPods"
	ErrorFailedDelete  Result = "NodeDeleteErrorFailedToDelete"
	ErrorInternal      Result = "NodeDeleteErrorInternal"
)

// Stage is how far the removal of a node has got.
type Stage string

// Stages, in their order.
const (
	StageTainted  Stage = "tainted"
	StageDraining Stage = "draining"
	StageWaiting  Stage = "waiting" // for annotations that delay it, or for others of its group
	StageDeleting Stage = "deleting"
)
