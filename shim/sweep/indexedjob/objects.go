// Package indexedjob runs a sweep on a cluster: as one Indexed Job of Kubernetes, whose shards leave their rows in
// ConfigMaps.
package indexedjob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/sweep"
)

// Names that a cluster sees.
const (
	ServiceAccount = "loadline-sweep"
	queueLabel     = "kueue.x-k8s.io/queue-name"
	jobLabel       = "loadline.dev/sweep-job"
	versionNote    = "loadline.dev/version"
	container      = "shard"
	mountPath      = "/sweep"
	inputsKey      = "inputs.gz"
	rowsKey        = "rows"
)

// ExitWrongInput is how a shard ends that would fail each time: its index fails at once.
const ExitWrongInput = 42

// mostConfigMapBytes is what fits into a ConfigMap, with some room for its other fields.
const mostConfigMapBytes = 1000 << 10

// Options say how the Job is made.
type Options struct {
	Namespace, Image, Version string
	// Shards is in how many parts the rows are done; Parallelism, how many of them at a time.
	Shards, Parallelism int
	// Retries is how often a shard is run again that failed; MaxFailed, how many may fail for good before all end.
	Retries, MaxFailed int32
	CPU, Memory        resource.Quantity
	// Queue is Kueue's local queue; empty: none.
	Queue string
	// Claim is a volume claim that holds the inputs by digest; empty: they are in the ConfigMap.
	Claim string
	// KeepSeconds is how long all stays after its end.
	KeepSeconds int32
}

// Job is a round of a sweep as objects.
type Job struct {
	Name string
	// Rows are those of the round, in order; PerShard, how many each shard has.
	Rows     []int
	PerShard int
	Job      *batchv1.Job
	Inputs   *v1.ConfigMap
}

// New returns the objects for rows of a plan. The same rows have the same name, so that who starts again finds what is
// there.
func New(plan *sweep.Plan, rows []int, o Options) (*Job, error) {
	ranges := formatRanges(rows)
	perShard := (len(rows) + o.Shards - 1) / o.Shards
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s", plan.Digest, ranges, perShard, o.Version))
	j := &Job{Name: "sweep-" + plan.Name + "-" + hex.EncodeToString(sum[:5]), Rows: rows, PerShard: perShard}
	j.Inputs = &v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: j.meta(o), Immutable: new(true), Data: map[string]string{rowsKey: ranges}}
	size := len(ranges)
	if o.Claim == "" {
		bundle, err := plan.Bundle()
		if err != nil {
			return nil, err
		}
		j.Inputs.BinaryData = map[string][]byte{inputsKey: bundle}
		size += len(bundle)
	}
	if size > mostConfigMapBytes {
		return nil, fmt.Errorf("the inputs have %d bytes, packed, and a ConfigMap takes %d: write them to a volume with "+
			"--write-inputs, and name its claim with --inputs-claim", size, mostConfigMapBytes)
	}
	j.Job = &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: j.meta(o),
		Spec: j.spec(plan, o)}
	if o.Queue != "" {
		j.Job.Labels[queueLabel] = o.Queue
	}
	return j, nil
}

func (j *Job) meta(o Options) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: j.Name, Namespace: o.Namespace, Labels: j.labels()}
}

func (j *Job) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "loadline-sweep", "app.kubernetes.io/part-of": "loadline",
		jobLabel: j.Name}
}

// Shards is how many there are.
func (j *Job) Shards() int { return (len(j.Rows) + j.PerShard - 1) / j.PerShard }

// Of returns the rows of a shard.
func (j *Job) Of(index int) []int {
	return j.Rows[min(index*j.PerShard, len(j.Rows)):min((index+1)*j.PerShard, len(j.Rows))]
}

func (j *Job) spec(plan *sweep.Plan, o Options) batchv1.JobSpec {
	shards := int32(j.Shards())
	mode := batchv1.IndexedCompletion
	return batchv1.JobSpec{
		CompletionMode: &mode, Completions: &shards, Parallelism: new(min(int32(o.Parallelism), shards)),
		BackoffLimitPerIndex: &o.Retries, MaxFailedIndexes: new(min(o.MaxFailed, shards)),
		TTLSecondsAfterFinished: &o.KeepSeconds,
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			// An eviction is nobody's fault, and does not count.
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}}},
			{Action: batchv1.PodFailurePolicyActionFailIndex,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: new(container),
					Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{ExitWrongInput}}},
		}},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: j.labels()}, Spec: j.pod(plan, o)},
	}
}

func (j *Job) pod(plan *sweep.Plan, o Options) v1.PodSpec {
	inputs := mountPath + "/job/" + inputsKey
	volumes := []v1.Volume{{Name: "job", VolumeSource: v1.VolumeSource{
		ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: j.Name}}}}}
	mounts := []v1.VolumeMount{{Name: "job", MountPath: mountPath + "/job", ReadOnly: true}}
	if o.Claim != "" {
		inputs = mountPath + "/inputs/" + BundleName(plan)
		volumes = append(volumes, v1.Volume{Name: "inputs", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: o.Claim, ReadOnly: true}}})
		mounts = append(mounts, v1.VolumeMount{Name: "inputs", MountPath: mountPath + "/inputs", ReadOnly: true})
	}
	fromPod := func(name, path string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
	}
	amounts := v1.ResourceList{v1.ResourceCPU: o.CPU, v1.ResourceMemory: o.Memory}
	return v1.PodSpec{
		ServiceAccountName: ServiceAccount, RestartPolicy: v1.RestartPolicyNever, Volumes: volumes,
		SecurityContext: &v1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			RunAsGroup: new(int64(65532)), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}},
		Containers: []v1.Container{{
			Name: container, Image: o.Image, VolumeMounts: mounts,
			Args: []string{"sweep", "shard", "--inputs=" + inputs, "--digest=" + plan.Digest,
				"--rows=" + mountPath + "/job/" + rowsKey, "--rows-per-shard=" + strconv.Itoa(j.PerShard),
				"--job=" + j.Name},
			Env: []v1.EnvVar{fromPod("POD_NAMESPACE", "metadata.namespace"),
				fromPod("JOB_UID", "metadata.labels['batch.kubernetes.io/controller-uid']"),
				{Name: "GOMAXPROCS", Value: "1"}},
			Resources: v1.ResourceRequirements{Requests: amounts, Limits: v1.ResourceList{v1.ResourceMemory: o.Memory}},
			SecurityContext: &v1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}},
		}},
	}
}

// BundleName is the file of a plan's inputs on a volume.
func BundleName(plan *sweep.Plan) string { return plan.Digest + ".gz" }
