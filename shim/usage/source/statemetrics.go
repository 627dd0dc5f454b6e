package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"loadline.dev/shim/usage/profile"
)

// stateMetrics finds workloads by what kube-state-metrics has reported to a Prometheus. It knows pods that are gone as
// well.
type stateMetrics struct{ prometheus *Prometheus }

// Queries that list each owner once, whatever else the series are labeled with. Arguments are further matchers and
// seconds.
const (
	podOwners = `group by (namespace, pod, owner_kind, owner_name) ` +
		`(last_over_time(kube_pod_owner{owner_is_controller="true"%s}[%ds]))`
	setOwners = `group by (namespace, replicaset, owner_name) ` +
		`(last_over_time(kube_replicaset_owner{owner_is_controller="true", owner_kind="Deployment"%s}[%ds]))`
	podLimits = `sum by (namespace, pod) (max by (namespace, pod, container) ` +
		`(last_over_time(kube_pod_container_resource_limits{resource="RESOURCE"%s}[%ds])))`
)

// During asks who owned pods and ReplicaSets within [from, to), and for the limits of pods. Times without any owner
// have no data.
func (s stateMetrics) During(ctx context.Context, from, to int64, said *Outcome) (func(Pod) (Owned, bool), error) {
	pods, err := s.list(ctx, podOwners, from, to, said)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%w: no pod has an owner: is there kube_pod_owner of kube-state-metrics, and does it have "+
			"the labels of --prometheus-selector? --owners=api does without", ErrNoData)
	}
	sets, err := s.list(ctx, setOwners, from, to, said)
	if err != nil {
		return nil, err
	}
	deployments := map[Pod]string{}
	for _, sample := range sets {
		set := Pod{string(sample.Metric["namespace"]), string(sample.Metric["replicaset"])}
		name := string(sample.Metric["owner_name"])
		if other, twice := deployments[set]; !twice || name < other {
			deployments[set] = name
		}
	}
	byPod := make(map[Pod]profile.Workload, len(pods))
	for _, sample := range pods {
		pod := Pod{string(sample.Metric["namespace"]), string(sample.Metric["pod"])}
		kind, name := string(sample.Metric["owner_kind"]), string(sample.Metric["owner_name"])
		if deployment, found := deployments[Pod{pod.Namespace, name}]; found && kind == "ReplicaSet" {
			kind, name = "Deployment", deployment
		}
		w, found := workloadOf(pod.Namespace, kind, name, "")
		if other, twice := byPod[pod]; found && (!twice || w.Compare(other) < 0) { // a name that was used again
			byPod[pod] = w
		}
	}
	limits, err := s.limits(ctx, from, to, said)
	if err != nil {
		return nil, err
	}
	return func(pod Pod) (Owned, bool) {
		w, found := byPod[pod]
		return Owned{w, limits[pod]}, found
	}, nil
}

// limits asks for those of pods: the largest, where several questions were asked. One that cannot be is not known.
func (s stateMetrics) limits(ctx context.Context, from, to int64,
	said *Outcome) (map[Pod][profile.Resources]int64, error) {
	out := map[Pod][profile.Resources]int64{}
	for of, name := range [profile.Resources]string{"cpu", "memory"} {
		samples, err := s.list(ctx, strings.Replace(podLimits, "RESOURCE", name, 1), from, to, said)
		if err != nil {
			return nil, err
		}
		for _, sample := range samples {
			pod := Pod{string(sample.Metric["namespace"]), string(sample.Metric["pod"])}
			amounts := out[pod]
			amount, _ := amountOf(float64(sample.Value), profile.Resource(of))
			amounts[of] = max(amounts[of], amount)
			out[pod] = amounts
		}
	}
	return out, nil
}

// list answers an instant query about [from, to) by a vector, or by several in a row where one is too large.
func (s stateMetrics) list(ctx context.Context, query string, from, to int64, said *Outcome) (model.Vector, error) {
	options := &s.prometheus.options
	answers, err := halving(from, to, int64(options.Step/time.Second), func(from, to int64) (model.Vector, error) {
		return s.listOnce(ctx, fmt.Sprintf(query, s.prometheus.selector(), to-from), to, said)
	})
	return slices.Concat(answers...), err
}

func (s stateMetrics) listOnce(ctx context.Context, query string, at int64, said *Outcome) (model.Vector, error) {
	options := &s.prometheus.options
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	value, warnings, err := s.prometheus.api.Query(ctx, query, time.Unix(at, 0).UTC())
	said.warn(warnings)
	if err != nil {
		return nil, bounded(err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("the answer is a %T, not a vector", value)
	}
	if len(vector) > options.MostSeries {
		return nil, fmt.Errorf("the answer has %d series, at most %d are taken", len(vector), options.MostSeries)
	}
	return vector, nil
}
