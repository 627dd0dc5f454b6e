package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/usage/profile"
)

// metricsPath is where metrics-server and its likes tell what pods use now.
const metricsPath = "/apis/metrics.k8s.io/v1beta1/pods"

// MetricsAPI asks metrics.k8s.io. It tells of the last minute alone.
type MetricsAPI struct {
	client rest.Interface
	owners Owners
	most   int64             // bytes of an answer
	last   map[Pod]time.Time // the sample that was taken of each pod
}

// NewMetricsAPI returns a source that asks by a client of any API group.
func NewMetricsAPI(client rest.Interface, owners Owners) *MetricsAPI {
	return &MetricsAPI{client: client, owners: owners, most: 64 << 20, last: map[Pod]time.Time{}}
}

// Span is 0: metrics.k8s.io tells of now alone.
func (m *MetricsAPI) Span() int64 { return 0 }

// podMetrics are the fields of PodMetricsList that are read.
type podMetrics struct {
	Items []podMetric `json:"items"`
}

// podMetric is the use of one pod.
type podMetric struct {
	Metadata   struct{ Namespace, Name string } `json:"metadata"`
	Timestamp  time.Time                        `json:"timestamp"`
	Containers []struct {
		Usage map[string]string `json:"usage"`
	} `json:"containers"`
}

// Collect takes the newest sample of each pod, once. A time outside of [from, to) by the server's clock is dropped.
func (m *MetricsAPI) Collect(ctx context.Context, from, to int64, sink Sink) (out Outcome, err error) {
	owner, err := m.owners.During(ctx, from, to, &out)
	if err != nil {
		return out, fmt.Errorf("the owners of pods: %w", err)
	}
	body, err := m.client.Get().AbsPath(metricsPath).Stream(ctx)
	if err != nil {
		return out, bounded(err)
	}
	defer body.Close()
	var list podMetrics
	if err := json.NewDecoder(&boundedBody{ReadCloser: io.NopCloser(body), left: m.most}).Decode(&list); err != nil {
		return out, bounded(fmt.Errorf("metrics.k8s.io: %w", err))
	}
	seen := make(map[Pod]time.Time, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		pod := Pod{item.Metadata.Namespace, item.Metadata.Name}
		if !named(pod.Namespace) || !named(pod.Name) {
			out.drop(BadName, 2, pod.String)
			continue
		}
		at := item.Timestamp.Unix()
		if at < from || at >= to {
			out.drop(OutsideWindow, 2, pod.String)
			continue
		}
		again := m.last[pod].Equal(item.Timestamp)
		seen[pod] = item.Timestamp
		if again {
			continue
		}
		w, found := owner(pod)
		if !found {
			out.drop(NoOwner, 2, pod.String)
			continue
		}
		item.take(pod, w, sink, &out)
	}
	m.last = seen
	return out, nil
}

// take hands on what the containers of a pod use in all.
func (item *podMetric) take(pod Pod, w Owned, sink Sink, out *Outcome) {
	for of, name := range [profile.Resources]string{"cpu", "memory"} {
		amount, why := int64(0), Reason("")
		for _, container := range item.Containers {
			if amount, why = addQuantity(amount, container.Usage[name], profile.Resource(of)); why != "" {
				break
			}
		}
		if len(item.Containers) == 0 {
			why = Unreadable
		}
		if why != "" {
			out.drop(why, 1, pod.String)
			continue
		}
		out.give(sink, w.Workload, profile.Resource(of), item.Timestamp.Unix(), amount)
		sink(w.Workload, profile.Resource(of).Limit(), item.Timestamp.Unix(), w.Limits[of])
	}
}

// addQuantity returns a sum, or why a quantity cannot be added.
func addQuantity(sum int64, text string, of profile.Resource) (int64, Reason) {
	if len(text) > 64 {
		return 0, Unreadable
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, Unreadable
	}
	amount, most := quantity.Value(), mostMemory
	if of == profile.CPU {
		amount, most = quantity.MilliValue(), mostMilliCPU
	}
	switch {
	case quantity.Sign() < 0:
		return 0, Negative
	case amount > most || quantity.CmpInt64(most) > 0:
		return 0, Absurd
	}
	return sum + amount, ""
}
