package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"loadline.dev/shim/report"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

// A Filling is what became of a workload.
type Filling struct {
	Placement report.Placement
	Pods      []*v1.Pod
	Metrics   harness.Metrics // of the scheduler, at the end
	Took      time.Duration   // from the first pod's creation until all were placed or judged
}

// How long nothing may happen before pods that fit nowhere are counted as pending.
const calm = 2 * time.Second

// Fill places a workload on an empty cluster with one scheduler, which it starts and stops. The scheduler knows all
// nodes before the first pod arrives; pods arrive one after another, in the order of the workload.
func Fill(ctx context.Context, cluster *harness.Cluster, w workload.Workload, options harness.SchedulerOptions,
	log harness.Logf) (filling Filling, err error) {
	if err := cluster.CreateNodes(ctx, w.Nodes); err != nil {
		return Filling{}, err
	}
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		return Filling{}, err
	}
	defer watch.Close()
	scheduler, err := cluster.StartScheduler(ctx, options)
	if err != nil {
		return Filling{}, err
	}
	defer func() { err = errors.Join(err, scheduler.Stop()) }()
	stop := reportProgress(watch, log, options.Name)
	defer stop()

	start := time.Now()
	if err := cluster.CreatePodsInOrder(ctx, w.Pods); err != nil {
		return Filling{}, err
	}
	if err := watch.WaitSettled(ctx, len(w.Pods), calm); err != nil {
		return Filling{}, fmt.Errorf("%s: %w", options.Name, err)
	}
	filling = Filling{Pods: watch.Pods(), Took: time.Since(start)}
	filling.Placement = Measure(options.Name, w.Nodes, filling.Pods)
	filling.Metrics, err = scheduler.Metrics(ctx)
	return filling, err
}

// reportProgress logs every two seconds how far placing is, until it is stopped, and then a last time.
func reportProgress(watch *harness.PodWatch, log harness.Logf, name string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				logProgress(watch.Progress(), log, name)
				return
			case <-time.After(2 * time.Second):
				logProgress(watch.Progress(), log, name)
			}
		}
	}()
	return func() { close(done); <-ended }
}

func logProgress(p harness.Progress, log harness.Logf, name string) {
	line := fmt.Sprintf("%-18s has placed %d of %d pods", name, p.Bound, p.Total)
	if p.Unschedulable > 0 {
		line += fmt.Sprintf("; %d fit nowhere", p.Unschedulable)
	}
	log("%s", line)
}

// Measure adds up requests and limits per node, as Kubernetes itself counts them, and the pods without a node.
func Measure(name string, nodes []*v1.Node, pods []*v1.Pod) report.Placement {
	placement := report.Placement{Name: name}
	index := map[string]int{}
	for i, node := range nodes {
		index[node.Name] = i
		measured := report.Node{Name: node.Name, Resources: map[string]report.Amounts{}}
		for resourceName, quantity := range node.Status.Allocatable {
			if resourceName != v1.ResourcePods {
				measured.Resources[string(resourceName)] = report.Amounts{Allocatable: amount(resourceName, quantity)}
			}
		}
		placement.Nodes = append(placement.Nodes, measured)
	}
	for _, pod := range pods {
		i, bound := index[pod.Spec.NodeName]
		if !bound {
			placement.PendingPods++
			continue
		}
		amounts := placement.Nodes[i].Resources
		for resourceName, quantity := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
			sum := amounts[string(resourceName)]
			sum.Limits += amount(resourceName, quantity)
			amounts[string(resourceName)] = sum
		}
		for resourceName, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			sum := amounts[string(resourceName)]
			sum.Requests += amount(resourceName, quantity)
			amounts[string(resourceName)] = sum
		}
	}
	return placement
}

// amount reads a quantity in the unit of package report: millicores of cpu, else whole units.
func amount(name v1.ResourceName, quantity resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
