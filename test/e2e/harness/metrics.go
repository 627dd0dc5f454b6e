package harness

import (
	"bytes"
	"context"
	"math"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is what a component's /metrics showed at one moment.
type Metrics map[string]*dto.MetricFamily

func (c *Cluster) metrics(ctx context.Context, url string) (Metrics, error) {
	body, err := c.get(ctx, url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	return Metrics(families), err
}

// Labels select the samples of a metric: those that have all of these.
type Labels map[string]string

// Sum adds up the values of a counter or gauge over the samples selected; 0 when there are none.
func (m Metrics) Sum(name string, labels Labels) float64 {
	var sum float64
	for _, sample := range m.selected(name, labels) {
		sum += sample.GetCounter().GetValue() + sample.GetGauge().GetValue()
	}
	return sum
}

// By adds up a counter or gauge for each value of one label.
func (m Metrics) By(name, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, sample := range m.selected(name, nil) {
		for _, pair := range sample.GetLabel() {
			if pair.GetName() == label {
				sums[pair.GetValue()] += sample.GetCounter().GetValue() + sample.GetGauge().GetValue()
			}
		}
	}
	return sums
}

// A Histogram holds the observations of a histogram metric, added up over the samples selected.
type Histogram struct {
	Count uint64
	Sum   float64 // seconds, or what the metric measures
	// AtMost holds for each bucket's upper bound how many observations are not above it.
	AtMost map[float64]uint64
}

// Histogram returns a histogram metric.
func (m Metrics) Histogram(name string, labels Labels) Histogram {
	sum := Histogram{AtMost: map[float64]uint64{}}
	for _, sample := range m.selected(name, labels) {
		histogram := sample.GetHistogram()
		sum.Count += histogram.GetSampleCount()
		sum.Sum += histogram.GetSampleSum()
		for _, bucket := range histogram.GetBucket() {
			sum.AtMost[bucket.GetUpperBound()] += bucket.GetCumulativeCount()
		}
	}
	return sum
}

// Within returns the lowest bucket bound that so great a part of the observations is not above; 0 without any.
func (h Histogram) Within(part float64) float64 {
	bound := math.Inf(1)
	for upper, count := range h.AtMost {
		if float64(count) >= part*float64(h.Count) {
			bound = min(bound, upper)
		}
	}
	return bound
}

// Above returns how many observations are certainly above a value: those beyond the lowest bucket bound that is
// not below it.
func (h Histogram) Above(value float64) uint64 {
	bound := math.Inf(1)
	for upper := range h.AtMost {
		if upper >= value {
			bound = min(bound, upper)
		}
	}
	if math.IsInf(bound, 1) {
		return 0
	}
	return h.Count - h.AtMost[bound]
}

func (m Metrics) selected(name string, labels Labels) []*dto.Metric {
	var samples []*dto.Metric
	for _, sample := range m[name].GetMetric() {
		has := map[string]string{}
		for _, pair := range sample.GetLabel() {
			has[pair.GetName()] = pair.GetValue()
		}
		matches := true
		for label, value := range labels {
			matches = matches && has[label] == value
		}
		if matches {
			samples = append(samples, sample)
		}
	}
	return samples
}
