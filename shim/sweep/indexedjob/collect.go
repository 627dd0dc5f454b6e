package indexedjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/sweep"
)

// Collector gathers the rows of a Job by completion index. It keeps nothing that is not on the cluster or with whoever
// takes the rows: another one continues where it ended.
type Collector struct {
	Client  kubernetes.Interface
	Version string
	// Poll is the time between two looks.
	Poll time.Duration
	// Done says whether a row is there already; Add takes one.
	Done func(row int) bool
	Add  func(*sweep.Row) error
	// Tell gets the progress: shards that are done, that failed for good, and how many there are.
	Tell func(done, failed, all int)
}

// Failed are the indexes that failed for good.
type Failed struct {
	Job     string
	Indexes string
	Message string
}

func (f *Failed) Error() string {
	text := fmt.Sprintf("job %s: shards %s failed for good", f.Job, f.Indexes)
	if f.Indexes == "" {
		text = "job " + f.Job + " failed"
	}
	if f.Message != "" {
		text += " (" + f.Message + ")"
	}
	return text + "; their logs say why. To have them run again, delete the job and start anew: rows that are there stay"
}

// Run creates the Job where it is not there yet, and returns when it has ended and all rows of shards that succeeded
// are taken.
func (c *Collector) Run(ctx context.Context, j *Job) error {
	job, err := c.create(ctx, j)
	if err != nil {
		return err
	}
	taken, looks := map[int]bool{}, 0
	for {
		if err := c.take(ctx, j, job, taken); err != nil {
			return err
		}
		if ended := ending(job); ended != nil {
			if len(taken) == j.Shards() {
				return nil
			}
			looks++
		}
		if ended := ending(job); ended != nil && (looks > lastLooks || c.complete(j, job, taken)) {
			message := ended.Message
			if ended.Type == batchv1.JobComplete {
				message = "it is complete, but results are missing"
			}
			return &Failed{Job: j.Name, Indexes: failedIndexes(job), Message: message}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Poll):
		}
		next, err := c.Client.BatchV1().Jobs(j.Job.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("job %s is gone", j.Name)
		case err == nil:
			job = next
		case ctx.Err() != nil || !passes(err):
			return err
		}
	}
}

// passes says whether an error may be gone in a while: an API server that starts anew.
func passes(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// lastLooks is how often results are looked for that a Job should have left when it ended.
const lastLooks = 5

// complete says whether all results are taken that the Job says there are.
func (c *Collector) complete(j *Job, job *batchv1.Job, taken map[int]bool) bool {
	indexes, err := parseRanges(job.Status.CompletedIndexes, j.Shards())
	return err == nil && len(indexes) == len(taken)
}

func (c *Collector) create(ctx context.Context, j *Job) (*batchv1.Job, error) {
	jobs := c.Client.BatchV1().Jobs(j.Job.Namespace)
	job, err := jobs.Create(ctx, j.Job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		job, err = jobs.Get(ctx, j.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	// Pods wait for it. It is deleted with the Job.
	inputs := j.Inputs.DeepCopy()
	inputs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: job.UID}}
	if _, err := c.Client.CoreV1().ConfigMaps(inputs.Namespace).Create(ctx, inputs, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return job, nil
}

// take takes the rows of the shards that are complete and not taken yet.
func (c *Collector) take(ctx context.Context, j *Job, job *batchv1.Job, taken map[int]bool) error {
	complete, err := parseRanges(job.Status.CompletedIndexes, j.Shards())
	if err != nil {
		return fmt.Errorf("job %s: completed indexes: %w", j.Name, err)
	}
	for _, index := range complete {
		if taken[index] {
			continue
		}
		if !c.has(j.Of(index)) {
			rows, err := c.rowsOf(ctx, j, index)
			if apierrors.IsNotFound(err) || err != nil && ctx.Err() == nil && passes(err) {
				continue // the next look, or the end of the Job, tells
			}
			if err != nil {
				return fmt.Errorf("result of shard %d: %w", index, err)
			}
			for _, row := range rows {
				if err := c.Add(row); err != nil {
					return err
				}
			}
		}
		taken[index] = true
	}
	failed, err := parseRanges(failedIndexes(job), j.Shards())
	if err != nil {
		return fmt.Errorf("job %s: failed indexes: %w", j.Name, err)
	}
	c.Tell(len(taken), len(failed), j.Shards())
	return nil
}

func (c *Collector) has(rows []int) bool {
	for _, row := range rows {
		if !c.Done(row) {
			return false
		}
	}
	return true
}

// wrong is a result that is not what it should be: it stays so.
type wrong struct{ error }

// Status makes it none that passes.
func (w wrong) Status() metav1.Status { return metav1.Status{Message: w.Error()} }

func (c *Collector) rowsOf(ctx context.Context, j *Job, index int) ([]*sweep.Row, error) {
	object, err := c.Client.CoreV1().ConfigMaps(j.Job.Namespace).Get(ctx, resultName(j.Name, index), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if version := object.Annotations[versionNote]; version != c.Version {
		return nil, wrong{fmt.Errorf("is of version %q, and this is %q: name the image of this version with --image", version,
			c.Version)}
	}
	rows, err := unpackRows(object, j.Of(index))
	if err != nil {
		return nil, wrong{err}
	}
	return rows, nil
}

func failedIndexes(job *batchv1.Job) string {
	if job.Status.FailedIndexes == nil {
		return ""
	}
	return *job.Status.FailedIndexes
}

// ending is the condition that the Job has ended by; nil: it has not.
func ending(job *batchv1.Job) *batchv1.JobCondition {
	for i, condition := range job.Status.Conditions {
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) &&
			condition.Status == v1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
