// Package source asks others what pods use: Prometheus, metrics.k8s.io, a file. What they say is checked: amounts that
// cannot be are dropped and counted by reason, and all that is read is bounded.
package source

import (
	"context"
	"errors"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/workload"
)

// Reason is why a sample was dropped.
type Reason string

// The reasons.
const (
	NotFinite     Reason = "notFinite"     // NaN or infinite
	Negative      Reason = "negative"      // less than nothing
	Absurd        Reason = "absurd"        // more than a million cores, or than an exbibyte
	OutsideWindow Reason = "outsideWindow" // of a time that was not asked about
	Future        Reason = "future"        // of a time that is later than the clock
	TooMany       Reason = "tooMany"       // a series with more samples than steps
	BadName       Reason = "badName"       // of a pod or namespace that no API server would take
	NoOwner       Reason = "noOwner"       // of a pod without a workload, or of which nobody knows it
	NoRoom        Reason = "noRoom"        // of a workload beyond those that are kept
	Unreadable    Reason = "unreadable"    // what should be a number or a time is none
)

// Reasons are all of them, in the order in which they are reported.
var Reasons = []Reason{NotFinite, Negative, Absurd, OutsideWindow, Future, TooMany, BadName, NoOwner, NoRoom,
	Unreadable}

// texts describe samples by the reason for which they were dropped.
var texts = map[Reason]string{
	NotFinite: "NaN or infinite", Negative: "negative", Absurd: "above a million cores or an exbibyte",
	OutsideWindow: "outside of the days that count", Future: "later than now, seconds since 1970 are expected",
	TooMany: "of a series with more samples than steps", BadName: "of a name that no API server takes",
	NoOwner: "of pods without a known workload", NoRoom: "of workloads beyond the most that are kept",
	Unreadable: "no amounts",
}

// Text describes samples that were dropped for this reason.
func (r Reason) Text() string { return texts[r] }

// ErrNoData is that a source has answered, but knows nothing about these times. Other times may have data.
var ErrNoData = errors.New("there is no data")

// Outcome counts what a source said.
type Outcome struct {
	// Samples were taken, Dropped were not.
	Samples int64
	Dropped map[Reason]int64
	// Examples are, by reason, the first place of a sample that was dropped, such as a record or a series.
	Examples map[Reason]string
	// Warnings are what the source itself says of its answers, the first few. An answer with any may lack samples.
	Warnings []string
}

// drop counts samples that are not taken. Only for the first one of a reason it asks for the place.
func (o *Outcome) drop(why Reason, count int64, place func() string) {
	if count == 0 {
		return
	}
	if o.Dropped == nil {
		o.Dropped, o.Examples = map[Reason]int64{}, map[Reason]string{}
	}
	if o.Dropped[why] == 0 {
		o.Examples[why] = place()
	}
	o.Dropped[why] += count
}

// Add adds what another answer said.
func (o *Outcome) Add(other *Outcome) {
	o.Samples += other.Samples
	for why, count := range other.Dropped {
		o.drop(why, count, func() string { return other.Examples[why] })
	}
	o.warn(other.Warnings)
}

// Sink takes a sample, or the limit of a pod after a sample of its workload; false: there is no room for its workload.
// A profile.Collector's Add is one.
type Sink func(w profile.Workload, of profile.Resource, seconds, amount int64) bool

// give hands a sample on, and counts it.
func (o *Outcome) give(to Sink, w profile.Workload, of profile.Resource, seconds, amount int64) {
	if to(w, of, seconds, amount) {
		o.Samples++
	} else {
		o.drop(NoRoom, 1, w.String)
	}
}

// Source tells what pods used.
type Source interface {
	// Collect hands all samples of the times [from, to), in seconds since 1970, to the sink. With an error it has handed
	// on none, and may be asked again; but see File.
	Collect(ctx context.Context, from, to int64, sink Sink) (Outcome, error)
	// Span is how many seconds one question may ask about; 0: it tells of no time before it is asked.
	Span() int64
}

// Pod names one.
type Pod struct{ Namespace, Name string }

// String names the pod, whoever has named it.
func (p Pod) String() string {
	return "pod " + text.Bound(p.Namespace, 64) + "/" + text.Bound(p.Name, 64)
}

// Owned is what is known of a pod beside its use: its workload, and its limits, 0 where it has none or nobody knows.
type Owned struct {
	profile.Workload
	Limits [profile.Resources]int64
}

// Owners tell the workloads of pods.
type Owners interface {
	// During returns what finds the workload of pods that ran within [from, to), and adds warnings to what was said.
	During(ctx context.Context, from, to int64, said *Outcome) (func(Pod) (Owned, bool), error)
}

// Bounds on an amount: a million cores, an exbibyte.
const (
	mostMilliCPU = int64(1e9)
	mostMemory   = int64(1) << 60
)

// amountOf returns a value in the unit of profiles, rounded up; or why it is none: a value of CPU is in
// cores, one of memory in bytes.
func amountOf(value float64, of profile.Resource) (int64, Reason) {
	most := mostMemory
	if of == profile.CPU {
		value, most = value*1000, mostMilliCPU
	}
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, NotFinite
	case value < 0:
		return 0, Negative
	case value > float64(most):
		return 0, Absurd
	}
	return int64(math.Ceil(value)), ""
}

// named says whether an API server may have an object of this name.
func named(name string) bool {
	return name != "" && len(name) <= 253 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
}

// workloadOf returns the workload of a pod with this controller; hash is the value of its label pod-template-hash. The
// rule is that of package workload.
func workloadOf(namespace, kind, name, hash string) (profile.Workload, bool) {
	controls := true
	w, found := workload.Of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{templateHash: hash},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &controls}}}})
	return profile.Workload{Namespace: namespace, Kind: w.Kind, Name: w.Name}, found
}

// templateHash is the label that distinguishes the ReplicaSets of a Deployment.
const templateHash = "pod-template-hash"
