// Package usage is the process that collects what pods use, makes profiles of workloads of it, and keeps these in
// ConfigMaps for the scheduler, the gateway and the autoscaler.
//
// One replica is enough and no lease is needed: while it is away the profiles grow older, and are good for two days;
// two at a time write the same.
package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/source"
	"loadline.dev/shim/usage/store"
)

// Options say how profiles are collected.
type Options struct {
	Profiles profile.Options
	// Poll is the time between two rounds, Publish that between two writes of the profiles.
	Poll, Publish time.Duration
	// Namespace is that of the ConfigMaps.
	Namespace string
}

// DefaultOptions asks each minute and writes each hour.
func DefaultOptions() Options {
	return Options{Profiles: profile.Default(), Poll: time.Minute, Publish: time.Hour}
}

const (
	// settle is how long after the end of an hour the last samples of it are waited for.
	settle = 2 * time.Minute
	// slackBefore and slackAfter are the times around now from which a sample of now may be, by the server's clock.
	slackBefore, slackAfter = 5 * time.Minute, time.Minute
)

// Collector collects. Not safe for concurrent use, but for its metrics and its vitals.
type Collector struct {
	options Options
	source  source.Source
	client  kubernetes.Interface // nil: profiles are not written
	samples *profile.Collector
	metrics *Metrics
	vitals  vitals

	spans     map[int64]*span // spans of the source by their begin, of those within the days that count
	left      leftovers
	news      bool // there are samples that have not been published
	published time.Time
	begun     time.Time
	// carried are profiles of an earlier process, which count until a time in seconds since 1970.
	carried      []profile.Profile
	carriedUntil int64
	lastWarning  string
	// lastSourceWarning is the last warning of the source itself that was reported.
	lastSourceWarning string
}

// New returns a collector that has asked nobody yet.
func New(options Options, from source.Source, client kubernetes.Interface, metrics *Metrics) *Collector {
	return &Collector{options: options, source: from, client: client, samples: profile.NewCollector(options.Profiles),
		metrics: metrics, spans: map[int64]*span{}, left: leftovers{reported: map[source.Reason]bool{}}}
}

// Run collects and publishes until the context ends.
func (c *Collector) Run(ctx context.Context) error {
	c.begun = time.Now()
	c.carry(ctx)
	ticker := time.NewTicker(c.options.Poll)
	defer ticker.Stop()
	for {
		c.vitals.roundBegan.Store(time.Now().UnixNano())
		complete, err := c.Round(ctx, time.Now())
		c.note(err)
		if c.due(time.Now(), complete) {
			if err := c.Publish(ctx, time.Now()); err != nil && ctx.Err() == nil {
				c.metrics.failures.WithLabelValues("write").Inc()
				klog.ErrorS(err, "The profiles cannot be written; those that were go on to count, and grow older")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// note tells how a round ended, where that is news.
func (c *Collector) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != c.lastWarning && err != nil && !errors.Is(err, context.Canceled) {
		klog.ErrorS(err, "What pods use cannot be asked for; it is tried again")
	} else if text != c.lastWarning {
		klog.InfoS("What pods use can be asked for again")
	}
	c.lastWarning = text
}

// due says whether it is time to publish: there is news, and either all is known for the first time, or Publish has
// passed.
func (c *Collector) due(now time.Time, complete bool) bool {
	switch {
	case !c.news || c.client == nil:
		return false
	case c.published.IsZero():
		return complete && c.source.Span() > 0 || now.Sub(c.begun) >= c.options.Publish
	}
	return now.Sub(c.published) >= c.options.Publish
}

// Profiles returns the profiles at a time.
func (c *Collector) Profiles(now time.Time) []profile.Profile {
	profiles := c.samples.Profiles(now.Unix())
	if now.Unix() >= c.carriedUntil {
		c.carried, c.carriedUntil = nil, 0
	}
	return profile.Merge(profiles, c.carried)
}

// Publish writes the profiles of a time. Where there are none it writes nothing: that says more of the source than of
// the pods.
func (c *Collector) Publish(ctx context.Context, now time.Time) error {
	profiles := c.Profiles(now)
	if len(profiles) == 0 {
		return c.left.noProfiles()
	}
	head := store.Head{Collected: now.Unix(), CarriedUntil: c.carriedUntil, Days: int64(c.options.Profiles.Days),
		Percent: int64(c.options.Profiles.Percent)}
	shards, leftOut := store.Encode(&head, profiles)
	if err := store.Write(ctx, c.client, c.options.Namespace, shards); err != nil {
		return err
	}
	c.published, c.news = now, false
	size := 0
	for _, shard := range shards {
		size += len(shard)
	}
	c.metrics.wrote(now, len(profiles)-leftOut, leftOut, size)
	klog.V(2).InfoS("Wrote profiles", "workloads", len(profiles)-leftOut, "leftOut", leftOut, "shards", len(shards),
		"bytes", size)
	return nil
}

// carry starts from the profiles that an earlier process has written, where the source does not know what was. They
// count beside new samples until the days that count are over, and not longer after another restart: so at each time
// something counts that was measured in the last days, and nothing for ever.
func (c *Collector) carry(ctx context.Context) {
	if c.source.Span() > 0 || c.client == nil {
		return
	}
	head, profiles, problems, err := store.Read(ctx, c.client, c.options.Namespace)
	if err != nil {
		klog.ErrorS(err, "Profiles of an earlier process cannot be read; all begins anew")
		return
	}
	for _, problem := range problems {
		klog.InfoS("Profiles of an earlier process cannot be read in part", "problem", problem)
	}
	now := time.Now().Unix()
	until := head.Collected + int64(c.options.Profiles.Days)*86400
	if head.CarriedUntil > now {
		until = min(until, head.CarriedUntil)
	}
	if until > now && len(profiles) > 0 {
		c.carried, c.carriedUntil = slices.Clone(profiles), until
		klog.InfoS("Going on from profiles of an earlier process", "workloads", len(profiles), "until", utc(until))
	}
}
