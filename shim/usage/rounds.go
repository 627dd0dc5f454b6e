package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/source"
)

const (
	// mostFailures ends a round: the server is away.
	mostFailures = 3
	// mostRetries is how often a span is asked for again whose answer may lack samples, first after firstRetry, and each
	// time after twice as long: a store of Thanos that restarts is back by then. Chosen so that a source that always warns
	// is asked four times for each hour in all.
	mostRetries = 3
	firstRetry  = 10 * time.Minute
)

// errNoSamples is that of answers without series.
var errNoSamples = fmt.Errorf("%w: the source answers, but has no samples: do the metrics exist, and does "+
	"--prometheus-selector match them?", source.ErrNoData)

// span is what is known of a span of the source.
type span struct {
	answered bool
	failures int       // questions without an answer
	data     bool      // an answer had samples, be they taken or dropped
	warned   bool      // the last answer had warnings
	retries  int       // questions since the first answer
	at       time.Time // the last answer
}

// incomplete says whether the answer may lack samples that another answer has.
func (s *span) incomplete() bool { return s.warned || !s.data }

// retryAt is when a span that is incomplete is asked for again.
func (s *span) retryAt() time.Time { return s.at.Add(firstRetry << s.retries) }

// round is one round of questions.
type round struct {
	now      time.Time
	seconds  int64 // of a span
	newest   int64 // the begin of the newest span
	failures int
	first    error // the first failure
	empty    int   // answers without data
	warning  string
	warned   int // answers with warnings
	noData   error
}

// Round asks for what is not known yet at a time, and says whether all is known now. A span without data is known: only
// failures of the source, or of the way to it, end a round early. It returns the first of these; or, where nothing was
// ever taken, why.
func (c *Collector) Round(ctx context.Context, now time.Time) (complete bool, first error) {
	defer c.report()
	seconds := c.source.Span()
	if seconds == 0 {
		_, err := c.ask(ctx, now.Add(-slackBefore).Unix(), now.Add(slackAfter).Unix(), c.samples.Add)
		return err == nil, err
	}
	r := &round{now: now, seconds: seconds, newest: now.Add(-settle).Unix()/seconds*seconds - seconds}
	pending := c.pending(r)
	left := len(pending)
	for _, from := range pending {
		c.metrics.pending.Set(float64(int64(left) * seconds))
		if c.askSpan(ctx, r, from, c.samples.Add) {
			left--
		}
		if r.failures >= mostFailures || ctx.Err() != nil {
			break
		}
	}
	c.retry(ctx, r)
	c.metrics.pending.Set(float64(int64(left) * seconds))
	c.tell(r)
	return left == 0, cmp.Or(r.first, c.nothing(r))
}

// pending returns the begins of spans that count and have no answer: those with the fewest failures first, so that a
// few that always fail do not hide all others, and of these the newest first. It forgets spans that count no more.
func (c *Collector) pending(r *round) (todo []int64) {
	oldest := r.newest + r.seconds - int64(c.options.Profiles.Days)*86400
	for from := range c.spans {
		if from < oldest {
			delete(c.spans, from)
		}
	}
	for from := r.newest; from >= oldest; from -= r.seconds {
		if c.spans[from] == nil {
			c.spans[from] = &span{}
		}
		if !c.spans[from].answered {
			todo = append(todo, from)
		}
	}
	slices.SortStableFunc(todo, func(a, b int64) int { return cmp.Compare(c.spans[a].failures, c.spans[b].failures) })
	return todo
}

// askSpan asks for a span and says whether it was answered.
func (c *Collector) askSpan(ctx context.Context, r *round, from int64, sink source.Sink) bool {
	c.vitals.roundBegan.Store(time.Now().UnixNano())
	out, err := c.ask(ctx, from, from+r.seconds, sink)
	s := c.spans[from]
	if err != nil && !errors.Is(err, source.ErrNoData) {
		s.failures++
		r.failures++
		if r.first == nil {
			r.first = err
		}
		return false
	}
	data := out.Samples > 0 || len(out.Dropped) > 0
	s.answered, s.at, s.data, s.warned = true, r.now, s.data || data, len(out.Warnings) > 0
	if s.warned {
		r.warned++
		r.warning = cmp.Or(r.warning, out.Warnings[0])
	}
	if !data {
		r.empty++
		r.noData = cmp.Or(r.noData, errors.Unwrap(err)) // without the times
	}
	return true
}

// retry asks again for spans whose answers had warnings, and for those without data beside one that has some: there the
// series were late, or a store away. Where no span has data it asks for the newest one.
func (c *Collector) retry(ctx context.Context, r *round) {
	for from := r.newest; c.spans[from] != nil && r.failures < mostFailures && ctx.Err() == nil; from -= r.seconds {
		s := c.spans[from]
		if !s.answered || !s.incomplete() {
			continue
		}
		probe := from == r.newest && !c.anyData() && r.now.After(s.at)
		beside := s.warned || c.hasData(from-r.seconds) || c.hasData(from+r.seconds)
		due := beside && s.retries < mostRetries && !r.now.Before(s.retryAt())
		if !probe && !due {
			continue
		}
		if due {
			s.retries++
		}
		again := profile.NewCollector(profile.Options{Days: 1, Percent: c.options.Profiles.Percent,
			MostWorkloads: c.options.Profiles.MostWorkloads})
		if c.askSpan(ctx, r, from, again.Add) {
			c.samples.Improve(again)
		}
	}
}

// nothing says why nothing was ever taken; nil: something was.
func (c *Collector) nothing(r *round) error {
	switch {
	case !c.anyData():
		return fmt.Errorf("none of %d hours has data: %w", int64(len(c.spans))*r.seconds/3600,
			cmp.Or(r.noData, errNoSamples))
	case c.left.outcome.Samples == 0:
		return c.left.noProfiles()
	}
	return nil
}

func (c *Collector) hasData(from int64) bool { return c.spans[from] != nil && c.spans[from].data }

func (c *Collector) anyData() bool {
	for _, s := range c.spans {
		if s.data {
			return true
		}
	}
	return false
}

// tell reports what a round has found, once.
func (c *Collector) tell(r *round) {
	without := 0
	for _, s := range c.spans {
		if s.answered && !s.data {
			without++
		}
	}
	c.metrics.withoutData.Set(float64(int64(without) * r.seconds))
	if r.empty > 0 && c.anyData() {
		klog.InfoS("The source has no data of some hours: pods count by their limits where no other day has any",
			"hours", int64(without)*r.seconds/3600, "of", int64(len(c.spans))*r.seconds/3600)
	}
	if r.warned > 0 && r.warning != c.lastSourceWarning {
		klog.InfoS("The source warns: answers may lack samples, and are asked for again", "answers", r.warned,
			"warning", r.warning)
		c.lastSourceWarning = r.warning
	}
}

// ask asks once for all of [from, to), in seconds since 1970, and counts.
func (c *Collector) ask(ctx context.Context, from, to int64, sink source.Sink) (source.Outcome, error) {
	began := time.Now()
	out, err := c.source.Collect(ctx, from, to, sink)
	c.metrics.count(&out, err, time.Since(began))
	c.left.outcome.Add(&out)
	for _, warning := range out.Warnings {
		klog.V(2).InfoS("The source of what pods use warns", "warning", warning)
	}
	if err != nil {
		return out, fmt.Errorf("from %s to %s: %w", utc(from), utc(to), err)
	}
	c.vitals.asked.Store(true)
	c.news = c.news || out.Samples > 0
	klog.V(3).InfoS("Collected what pods used", "from", utc(from), "to", utc(to), "samples", out.Samples,
		"dropped", out.Dropped)
	return out, nil
}

func utc(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
