package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A PodRunner replaces the kubelets of all nodes where pods run our programs: each container of a bound pod is a
// process of this machine, with the arguments, variables, volumes and probes that the API server says. A pod is Ready
// when its probes say so, and its processes end, the last one first, when it is deleted. Ports are free ones of this
// machine, also in arguments and in files of ConfigMaps, and a token is that of the pod's account. What fails is not
// started again, but reported by Err.
type PodRunner struct {
	// Namespaces are those whose pods run.
	Namespaces []string
	// Skipped says which of their pods do not run, although they go when they are deleted; nil: none.
	Skipped func(*v1.Pod) bool
	// Args are further arguments of containers by their name, such as shorter times.
	Args map[string][]string

	cluster *Cluster
	mu      sync.Mutex
	pods    map[types.UID]*runningPod // guarded by mu
	started int                       // guarded by mu
	errs    []error                   // guarded by mu
	tokens  sync.Mutex                // locked while a kubeconfig is written
}

// A runningPod is a pod with its processes.
type runningPod struct {
	runner    *PodRunner
	pod       *v1.Pod
	dir       string
	ports     map[string]int // of this machine, by name; guarded by runner.mu
	processes []*Process     // in the order of their start
	leave     context.CancelFunc
}

// Start runs pods until the context or the cluster ends.
func (r *PodRunner) Start(ctx context.Context, cluster *Cluster) {
	r.cluster, r.pods = cluster, map[types.UID]*runningPod{}
	go func() {
		for ctx.Err() == nil && cluster.sandbox.ctx.Err() == nil {
			for _, namespace := range r.Namespaces {
				list, err := cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
				if err != nil {
					continue // the API server is away, or the end has come
				}
				for _, pod := range list.Items {
					r.see(ctx, &pod)
				}
			}
			time.Sleep(5 * pollInterval)
		}
	}()
}

// Err returns what went wrong so far.
func (r *PodRunner) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// Address returns where a port of a running pod is, by the pod's label app.kubernetes.io/name and the port's name.
func (r *PodRunner) Address(app, port string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if number := p.ports[port]; p.pod.Labels["app.kubernetes.io/name"] == app && number != 0 {
			return "127.0.0.1:" + strconv.Itoa(number), nil
		}
	}
	return "", fmt.Errorf("no pod of %s has a port %s", app, port)
}

func (r *PodRunner) see(ctx context.Context, pod *v1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	if r.Skipped != nil && r.Skipped(pod) {
		if pod.DeletionTimestamp != nil {
			if err := serve(ctx, r.cluster.Client, pod); err != nil && ctx.Err() == nil {
				r.report(err)
			}
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.pods[pod.UID]
	if known != nil && pod.DeletionTimestamp != nil {
		known.leave()
	}
	if known != nil {
		return
	}
	r.started++
	p := &runningPod{runner: r, pod: pod, ports: map[string]int{}, dir: r.cluster.path("p" + strconv.Itoa(r.started))}
	r.pods[pod.UID] = p
	staying, leave := context.WithCancel(ctx)
	p.leave = leave
	go p.live(ctx, staying)
}

// live is a pod's life: until it leaves, or until all ends.
func (p *runningPod) live(ctx, staying context.Context) {
	if err := p.begin(staying); err != nil && staying.Err() == nil {
		p.runner.report(fmt.Errorf("pod %s/%s: %w", p.pod.Namespace, p.pod.Name, err))
	}
	<-staying.Done()
	if ctx.Err() != nil {
		return
	}
	for _, process := range slices.Backward(p.processes) {
		if err := p.runner.cluster.sandbox.stop(process); err != nil {
			p.runner.report(err)
		}
	}
	gone := p.pod.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if err := serve(ctx, p.runner.cluster.Client, gone); err != nil && ctx.Err() == nil {
		p.runner.report(err)
	}
	p.runner.mu.Lock()
	p.ports = nil
	p.runner.mu.Unlock()
}

// begin starts the sidecars and then the containers, and tells the API server when all are ready.
func (p *runningPod) begin(ctx context.Context) error {
	var ready []func(context.Context) error
	for _, container := range slices.Concat(p.pod.Spec.InitContainers, p.pod.Spec.Containers) {
		if err := ctx.Err(); err != nil {
			return err
		}
		made, err := p.make(ctx, container)
		if err != nil {
			return fmt.Errorf("container %s: %w", container.Name, err)
		}
		process, err := p.runner.cluster.sandbox.start(ctx, made.processSpec)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, process)
		if made.readiness != nil {
			ready = append(ready, func(ctx context.Context) error { return process.waitReady(ctx, made.readiness) })
		}
	}
	for _, wait := range ready {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return serve(ctx, p.runner.cluster.Client, p.pod)
}

func (r *PodRunner) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}
