package autoscaler

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/autoscaler/skiptime"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/report"
)

// deletionPatience is how long the cloud may take from being asked to delete a node to saying that it does.
const deletionPatience = 5 * time.Minute

// cloud is what is asked of the provider.
type cloud interface {
	actuation.Cloud
	Refresh(ctx context.Context) error
	Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]provider.Group, error)
	IncreaseSize(ctx context.Context, group string, from, delta int) error
	DecreaseTargetSize(ctx context.Context, group string, from, delta int) error
	// TemplateNode and NodePrice return nil where the provider does not tell.
	TemplateNode(ctx context.Context, group string) (*v1.Node, error)
	NodePrice(ctx context.Context, node *v1.Node) (*float64, error)
}

// leader does the work of the one process that leads, loop by loop.
type leader struct {
	config   *config.Configuration
	cluster  *cluster
	cloud    cloud
	planner  *planner
	actuator *actuation.Actuator
	soft     *actuation.SoftTaints
	status   *statusWriter
	events   record.EventRecorder
	metrics  *metrics
	clock    *planClock
	term     int64

	// What people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	seen      atomic.Pointer[snapshot]
	loads     func() (report.Placement, error)
	models    *models
	batch     batch
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
	sizeTurns     turns // of namespaces, where a question does not hold all pods that are demand
	sizes         *actuation.SizeTaints

	skips    skiptime.Tracker
	logged   string            // what the log says of the last plan
	sizesLog map[string]string // and of each group that is sized
	line     lineWatch
}

func newLeader(options *config.Configuration, client kubernetes.Interface, c *cluster, cloud cloud, p *planner,
	events record.EventRecorder, m *metrics, term int64, clock Clock) *leader {
	s := &options.ScaleDown
	events = boundedEvents{events}
	plans := newPlanClock(clock)
	return &leader{config: options, cluster: c, cloud: cloud, planner: p, events: events, metrics: m, clock: plans,
		term: term, actuator: actuation.New(actuationOptions(s, c, plans.now), client, cloud, events, term, m.hooks()),
		soft:      actuation.NewSoftTaints(client, term, s.MaxBulkSoftTaintCount, s.MaxBulkSoftTaintTime.Duration),
		status:    &statusWriter{client: client, namespace: options.Namespace, name: options.StatusConfigMap},
		sizes:     actuation.NewSizeTaints(client, term),
		models:    newModels(cloud),
		fleet:     &fleet{metrics: m},
		store:     newStateStore(client, options),
		podEvents: newSaidEvents(), leftOutEvents: newSaidEvents()}
}

func actuationOptions(s *config.ScaleDown, c *cluster, now func() time.Time) actuation.Options {
	options := actuation.Options{
		Now: now, IsPlaceholder: c.isPlaceholder, IsOfDaemonSet: c.isOfDaemonSet,
		NodeDeleteDelayAfterTaint:                s.NodeDeleteDelayAfterTaint.Duration,
		CordonNodeBeforeTerminating:              s.CordonNodeBeforeTerminating,
		MaxGracefulTermination:                   time.Duration(s.MaxGracefulTerminationSec) * time.Second,
		MaxPodEviction:                           s.MaxPodEvictionTime.Duration,
		UnsafeDeletePodsDespiteDisruptionBudgets: s.UnsafeDeletePodsDespiteDisruptionBudgets,
		EvictionRetry:                            s.EvictionRetryInterval.Duration,
		TerminationHeadroom:                      s.TerminationHeadroom.Duration, Poll: s.PollInterval.Duration,
		DaemonSetEvictionForEmptyNodes:    s.DaemonSetEvictionForEmptyNodes,
		DaemonSetEvictionForOccupiedNodes: s.DaemonSetEvictionForOccupiedNodes,
		NodeDeletionDelayTimeout:          s.NodeDeletionDelayTimeout.Duration,
		NodeDeletionBatcherInterval:       s.NodeDeletionBatcherInterval.Duration,
	}
	groups, _ := s.PriorityGroups() // checked with the configuration
	for _, g := range groups {
		options.DrainPriorityGroups = append(options.DrainPriorityGroups,
			actuation.PriorityGroup{Priority: g.Priority, Grace: g.Grace})
	}
	return options
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
