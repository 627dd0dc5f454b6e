// Package profile turns samples of what pods use into profiles of workloads: what a pod of each is expected to use in
// each of the 24 hours of a day, UTC. It is pure: it reads no clock and asks nobody.
//
// The rule: all samples of all pods of a workload that fall into the same hour of the day, within the last days that
// count, are one set. CPU is the 90th percentile of the set by nearest rank, the smallest sample that at least 90 % of
// them do not exceed; memory is its maximum. An hour without samples is unknown, which is not zero.
package profile

import "strings"

// Hours are those of a day.
const Hours = 24

// Unknown is the amount in an hour of which there is no sample.
const Unknown int64 = -1

// Resource is one of those that profiles tell of.
type Resource int

// The resources.
const (
	CPU    Resource = iota // in millicores
	Memory                 // in bytes
	Resources
)

// Limit is, as the kind of a sample, the limit of a pod instead of what it uses.
func (r Resource) Limit() Resource { return r + Resources }

// Workload is what owns pods that do the same: the Deployment, not its ReplicaSet; the CronJob, not its Job.
type Workload struct {
	Namespace, Kind, Name string
}

// Compare orders workloads by namespace, kind and name.
func (w Workload) Compare(other Workload) int {
	if c := strings.Compare(w.Namespace, other.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(w.Kind, other.Kind); c != 0 {
		return c
	}
	return strings.Compare(w.Name, other.Name)
}

// String names the workload.
func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// Day has an amount for each hour of the day, or Unknown.
type Day [Hours]int64

// Peak returns the largest amount of the day and its first hour; Unknown where no hour is known.
func (d *Day) Peak() (amount int64, hour int) {
	amount = Unknown
	for h, a := range d {
		if a > amount {
			amount, hour = a, h
		}
	}
	return amount, hour
}

// Profile is what a pod of a workload is expected to use.
type Profile struct {
	Workload Workload
	// Day has the amounts by resource and hour.
	Day [Resources]Day
	// Limits are the newest limits of one pod; 0: it has none, or nobody knows.
	Limits [Resources]int64
	// Samples are those of CPU.
	Samples int64
	// Days are those with samples of the resource and the hour that were measured on the fewest days, of those that are
	// known.
	Days int64
	// First is the beginning of the hour with the oldest sample, Last the time of the newest one, in seconds since 1970.
	First, Last int64
}
