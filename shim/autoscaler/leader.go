package autoscaler

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/skiptime"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/report"
)

// deletionPatience is how long the cloud may take from being asked to delete a node to saying that it does.
const deletionPatience = 5 * time.Minute

// leader does the work of the one process that leads, loop by loop.
type leader struct {
	config   *config.Configuration
	cluster  *watch.Cluster
	cloud    cloud.Provider
	planner  *planner
	actuator *drain.Actuator
	soft     *drain.SoftTaints
	status   *statusWriter
	events   record.EventRecorder
	metrics  *metrics
	clock    *planClock
	term     int64

	// What people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	seen      atomic.Pointer[snapshot]
	loads     func() (report.Placement, error)
	models    *cloud.Models
	batchWait time.Duration // for how long growth waits for further pods, by the last plan
	fleet     *fleet
	store     *stateStore
	podEvents saidEvents
	// leftOutEvents knows which objects have been told that plans are made without them, leftOutLog what the log says
	// of them.
	leftOutEvents saidEvents
	leftOutLog    string
	keeper        keeper // of slack; nil: it is reported only
	sized         []nodegroup.NodeGroup
	files         reloader
	sizes         *drain.SizeTaints

	skips    skiptime.Tracker
	logged   string            // what the log says of the last plan
	sizesLog map[string]string // and of each group that is sized
	line     lineWatch
}

func newLeader(options *config.Configuration, client kubernetes.Interface, c *watch.Cluster, asked cloud.Provider, p *planner,
	events record.EventRecorder, m *metrics, term int64, clock Clock) *leader {
	s := &options.ScaleDown
	events = boundedEvents{events}
	plans := newPlanClock(clock)
	return &leader{config: options, cluster: c, cloud: asked, planner: p, events: events, metrics: m, clock: plans,
		term: term, actuator: drain.New(drain.Options{ScaleDown: *s, IsPlaceholder: c.IsPlaceholder,
			IsOfDaemonSet: c.IsOfDaemonSet, Now: plans.now}, client, asked, events, term, m.hooks()),
		soft:      drain.NewSoftTaints(client, term, s.MaxBulkSoftTaintCount, s.MaxBulkSoftTaintTime.Duration),
		status:    &statusWriter{client: client, namespace: options.Namespace, name: options.StatusConfigMap},
		sizes:     drain.NewSizeTaints(client, term),
		models:    cloud.NewModels(asked),
		fleet:     &fleet{metrics: m},
		store:     newStateStore(client, options),
		podEvents: newSaidEvents(), leftOutEvents: newSaidEvents()}
}

// groupDefaults is what holds for groups that state nothing.
func groupDefaults(c *config.Configuration) *externalgrpc.NodeGroupAutoscalingOptions {
	s := &c.ScaleDown
	return &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold:    s.ScaleDownUtilizationThreshold,
		ScaleDownGpuUtilizationThreshold: s.ScaleDownGPUThreshold, IgnoreDaemonSetsUtilization: s.IgnoreDaemonSets,
		ScaleDownUnneededDuration: durationMessage(s.ScaleDownUnneededTime),
		ScaleDownUnreadyDuration:  durationMessage(s.ScaleDownUnreadyTime),
		MaxNodeProvisionDuration:  durationMessage(c.ScaleUp.MaxNodeProvisionTime),
		MaxNodeStartupDuration:    durationMessage(c.ScaleUp.MaxNodeStartupTime),
	}
}
