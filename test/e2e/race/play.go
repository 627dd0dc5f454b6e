package race

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const gpu v1.ResourceName = "nvidia.com/gpu"

// act is something that happens to the load.
type act struct {
	at time.Duration
	do func(context.Context) error
}

// player lets the load of a scenario happen on a cluster.
type player struct {
	client   kubernetes.Interface
	scenario *Scenario

	mu   sync.Mutex
	errs []error // guarded by mu
}

// play follows the scenario until its end, and calls `look` each second.
func (p *player) play(ctx context.Context, look func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.endJobs(ctx); err != nil {
		return err
	}
	acts := p.acts()
	began := time.Now()
	for at := time.Duration(0); at < p.scenario.Duration; at += time.Second {
		for len(acts) > 0 && acts[0].at <= at {
			if err := acts[0].do(ctx); err != nil {
				return fmt.Errorf("after %v: %w", at, err)
			}
			acts = acts[1:]
		}
		look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(at + time.Second))):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// acts are all that happens, in order of time.
func (p *player) acts() (acts []act) {
	for i := range p.scenario.Services {
		s := &p.scenario.Services[i]
		for n, step := range s.Steps {
			acts = append(acts, act{step.At, func(ctx context.Context) error {
				if n == 0 {
					return p.createService(ctx, s, int32(step.Replicas))
				}
				return p.patchService(ctx, s, map[string]any{"replicas": step.Replicas})
			}})
		}
		for at := s.RolloutEvery; at > 0 && at < p.scenario.Duration; at += s.RolloutEvery {
			acts = append(acts, act{at, func(ctx context.Context) error {
				return p.patchService(ctx, s, map[string]any{"template": map[string]any{"metadata": map[string]any{
					"annotations": map[string]string{"race/revision": at.String()}}}})
			}})
		}
	}
	for i := range p.scenario.Jobs {
		j := &p.scenario.Jobs[i]
		acts = append(acts, act{j.At, func(ctx context.Context) error { return p.createJob(ctx, j) }})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	return acts
}

// podSpec is that of the pods of a workload.
func podSpec(r *Request) v1.PodSpec {
	list := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(r.MemoryMiB<<20, resource.BinarySI)}
	limits := v1.ResourceList{}
	if r.GPUs > 0 {
		list[gpu] = *resource.NewQuantity(r.GPUs, resource.DecimalSI)
		limits[gpu] = list[gpu]
	}
	if r.LimitMemoryMiB > 0 {
		limits[v1.ResourceMemory] = *resource.NewQuantity(r.LimitMemoryMiB<<20, resource.BinarySI)
	}
	spec := v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "load",
		Resources: v1.ResourceRequirements{Requests: list, Limits: limits}}}}
	if r.OnDemand {
		spec.NodeSelector = map[string]string{capacityTypeLabel: "on-demand"}
	}
	return spec
}

func (p *player) createService(ctx context.Context, s *Service, replicas int32) error {
	labels := map[string]string{"app": s.Name}
	spec := podSpec(&s.Request)
	if s.Apart {
		spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: v1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}}}}
	}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: s.Name}
	if s.MaxUnavailablePercent > 0 {
		most := intstr.FromString(fmt.Sprintf("%d%%", s.MaxUnavailablePercent))
		if _, err := p.client.PolicyV1().PodDisruptionBudgets(Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most,
				Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := p.client.AppsV1().Deployments(Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}},
		metav1.CreateOptions{})
	return err
}

func (p *player) patchService(ctx context.Context, s *Service, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err == nil {
		_, err = p.client.AppsV1().Deployments(Namespace).Patch(ctx, s.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{})
	}
	return err
}

// runAnnotation is for how long a pod of a job runs.
const runAnnotation = "race/run"

func (p *player) createJob(ctx context.Context, j *Job) error {
	pods, always := int32(j.Pods), int32(1_000_000) // an evicted pod begins anew, however often
	spec := podSpec(&j.Request)
	spec.RestartPolicy = v1.RestartPolicyNever
	_, err := p.client.BatchV1().Jobs(Namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: j.Name},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: &always,
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": j.Name},
				Annotations: map[string]string{runAnnotation: j.Run.String()}}, Spec: spec}}}, metav1.CreateOptions{})
	return err
}

// endJobs lets pods of jobs succeed once they have run for their time, as a kubelet would.
func (p *player) endJobs(ctx context.Context) error {
	running := map[types.UID]bool{}
	set := func(pod *v1.Pod) {
		run, err := time.ParseDuration(pod.Annotations[runAnnotation])
		if err != nil || pod.Status.Phase != v1.PodRunning || running[pod.UID] {
			return
		}
		running[pod.UID] = true
		time.AfterFunc(run, func() {
			_, err := p.client.CoreV1().Pods(Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
				[]byte(`{"metadata":{"uid":"`+string(pod.UID)+`"},"status":{"phase":"Succeeded"}}`),
				metav1.PatchOptions{}, "status")
			if err != nil && ctx.Err() == nil && !isGone(err) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.errs = append(p.errs, err)
			}
		})
	}
	source := cache.NewListWatchFromClient(p.client.CoreV1().RESTClient(), "pods", Namespace, fields.Everything())
	return follow(ctx, source, set, func(*v1.Pod) {})
}

// isGone says whether an error means that the pod is no longer there, or that another one has its name.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
