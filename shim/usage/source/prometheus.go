package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/usage/profile"
)

// PrometheusOptions say how a Prometheus is asked.
type PrometheusOptions struct {
	// Address is its URL. Files are optional: a bearer token, which is read for each question, and authorities, PEM.
	Address, TokenFile, CAFile string
	// Step is the time between two samples, RateWindow that over which CPU is averaged: at least two scrapes long.
	Step, RateWindow time.Duration
	// Timeout bounds a question, MostBytes its answer, MostSeries the series in it.
	Timeout    time.Duration
	MostBytes  int64
	MostSeries int
	// Selector is added to those of all metrics, of cAdvisor and of kube-state-metrics, such as `cluster="a"`; empty:
	// nothing.
	Selector string
	// Owners tell the workloads of pods; nil: kube-state-metrics does, by the same Prometheus.
	Owners Owners
}

// DefaultPrometheus has a sample each five minutes, as the profiles were judged by.
func DefaultPrometheus() PrometheusOptions {
	return PrometheusOptions{Step: 5 * time.Minute, RateWindow: 5 * time.Minute, Timeout: time.Minute,
		MostBytes: 32 << 20, MostSeries: 100_000}
}

// Prometheus asks a server of the HTTP API of Prometheus.
type Prometheus struct {
	api     prometheus.API
	options PrometheusOptions
	owners  Owners
}

// Queries by resource. The inner max takes a container that two scrapers report, or that was restarted and of which the
// former instance is not stale yet, once. rate() takes care of counters that begin anew.
var queries = [profile.Resources]string{
	profile.CPU: `sum by (namespace, pod) (max by (namespace, pod, container) ` +
		`(rate(container_cpu_usage_seconds_total{container!="", container!="POD"%[1]s}[%[2]ds])))`,
	profile.Memory: `sum by (namespace, pod) (max by (namespace, pod, container) ` +
		`(container_memory_working_set_bytes{container!="", container!="POD"%[1]s}))`,
}

// NewPrometheus returns a source that has not asked yet.
func NewPrometheus(options PrometheusOptions) (*Prometheus, error) {
	transport, err := newTransport(&options)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: options.Address, Client: transport.client()})
	if err != nil {
		return nil, err
	}
	p := &Prometheus{api: prometheus.NewAPI(client), options: options, owners: options.Owners}
	if p.owners == nil {
		p.owners = stateMetrics{p}
	}
	return p, nil
}

// Span is an hour: an answer about all pods of a large cluster has some megabytes then.
func (p *Prometheus) Span() int64 { return 3600 }

// Collect asks for both resources. Where an answer is too large it asks for a shorter time at once.
func (p *Prometheus) Collect(ctx context.Context, from, to int64, sink Sink) (out Outcome, err error) {
	owner, err := p.owners.During(ctx, from, to, &out)
	if err != nil {
		return Outcome{Warnings: out.Warnings}, fmt.Errorf("the owners of pods: %w", err)
	}
	var answers [profile.Resources][]model.Matrix
	for of, query := range queries {
		query = fmt.Sprintf(query, p.selector(), int64(p.options.RateWindow/time.Second))
		if answers[of], err = p.ask(ctx, query, from, to, &out); err != nil {
			return Outcome{Warnings: out.Warnings}, err
		}
	}
	for of, matrices := range answers {
		for _, matrix := range matrices {
			for _, series := range matrix {
				p.take(series, profile.Resource(of), from, to, owner, sink, &out)
			}
		}
	}
	return out, nil
}

// selector returns the further matchers of a query that has some already.
func (p *Prometheus) selector() string {
	if p.options.Selector == "" {
		return ""
	}
	return ", " + p.options.Selector
}

// ask returns the answers to a query over [from, to), one or several after another.
func (p *Prometheus) ask(ctx context.Context, query string, from, to int64, out *Outcome) ([]model.Matrix, error) {
	return halving(from, to, int64(p.options.Step/time.Second), func(from, to int64) (model.Matrix, error) {
		return p.askOnce(ctx, query, from, to, out)
	})
}

// halving asks about [from, to), and about halves of it, in whole steps, where an answer is too large.
func halving[T any](from, to, step int64, ask func(from, to int64) (T, error)) ([]T, error) {
	answer, err := ask(from, to)
	if err == nil {
		return []T{answer}, nil
	}
	steps := (to - from + step - 1) / step
	if !errors.Is(err, errTooLarge) || steps < 2 {
		return nil, err
	}
	middle := from + steps/2*step
	first, err := halving(from, middle, step, ask)
	if err != nil {
		return nil, err
	}
	second, err := halving(middle, to, step, ask)
	return append(first, second...), err
}

func (p *Prometheus) askOnce(ctx context.Context, query string, from, to int64, out *Outcome) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	value, warnings, err := p.api.QueryRange(ctx, query, prometheus.Range{Start: time.Unix(from, 0).UTC(),
		End: time.Unix(to-1, 0).UTC(), Step: p.options.Step}, prometheus.WithTimeout(p.options.Timeout))
	out.warn(warnings)
	if err != nil {
		return nil, bounded(err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("the answer is a %T, not a matrix", value)
	}
	if len(matrix) > p.options.MostSeries {
		return nil, fmt.Errorf("the answer has %d series, at most %d are taken: is the selector too wide?", len(matrix),
			p.options.MostSeries)
	}
	return matrix, nil
}

// mostWarnings and mostText bound what is reported of a server's answer.
const (
	mostWarnings = 4
	mostText     = 256
)

func (o *Outcome) warn(warnings []string) {
	for _, w := range warnings[:min(len(warnings), max(0, mostWarnings-len(o.Warnings)))] {
		o.Warnings = append(o.Warnings, text.Bound(w, mostText))
	}
}

// bounded returns an error whose text is bounded, since it may quote a server.
func bounded(err error) error {
	if errors.Is(err, errTooLarge) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errors.New(text.Bound(err.Error(), mostText))
}

// take hands the samples of one series on.
func (p *Prometheus) take(series *model.SampleStream, of profile.Resource, from, to int64,
	owner func(Pod) (Owned, bool), sink Sink, out *Outcome) {
	pod := Pod{string(series.Metric["namespace"]), string(series.Metric["pod"])}
	count := int64(len(series.Values) + len(series.Histograms))
	if !named(pod.Namespace) || !named(pod.Name) {
		out.drop(BadName, count, pod.String)
		return
	}
	w, found := owner(pod)
	if !found {
		out.drop(NoOwner, count, pod.String)
		return
	}
	step := int64(p.options.Step / time.Second)
	if most := (to - from + step - 1) / step; count > most {
		out.drop(TooMany, count, pod.String)
		return
	}
	out.drop(Unreadable, int64(len(series.Histograms)), pod.String)
	for _, sample := range series.Values {
		seconds := sample.Timestamp.Unix()
		amount, why := amountOf(float64(sample.Value), of)
		switch {
		case seconds < from || seconds >= to:
			out.drop(OutsideWindow, 1, pod.String)
		case why != "":
			out.drop(why, 1, pod.String)
		default:
			out.give(sink, w.Workload, of, seconds, amount)
		}
	}
	sink(w.Workload, of.Limit(), to-1, w.Limits[of])
}
