package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// Pods of the workload byDay use most of their limit from 8 to 20 o'clock UTC, those of byNight at the other hours.
const (
	byDay   = "by-day"
	byNight = "by-night"
)

// usedPod may use 4 CPUs or other ones, and asks for next to nothing, so that only what it may use or is expected to
// use tells nodes apart.
func usedPod(name, workload, node, cpu string) *v1.Pod {
	controller := true
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{SchedulerName: demo.OurScheduler, NodeName: node, Containers: []v1.Container{{
			Name: "c", Image: "registry.k8s.io/pause:3.10.2", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("1Mi")},
				Limits:   v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")},
			},
		}}},
	}
	if workload != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: workload,
			UID: "00000000-0000-0000-0000-000000000001", Controller: &controller}}
	}
	return pod
}

// dayAndNight are the series of the first pod of both workloads over the four days before `end`, a sample a minute.
func dayAndNight(end time.Time) string {
	var cpu, memory, owner strings.Builder
	for _, workload := range []string{byDay, byNight} {
		pod := fmt.Sprintf("namespace=\"default\",pod=%q", workload+"-0")
		total := 0.0
		for at := end.Add(-4 * 24 * time.Hour); at.Before(end); at = at.Add(time.Minute) {
			cores := 0.2
			if isDay := at.Hour() >= 8 && at.Hour() < 20; isDay == (workload == byDay) {
				cores = 3.8
			}
			total += cores * 60
			fmt.Fprintf(&cpu, "container_cpu_usage_seconds_total{%s,container=\"c\"} %g %d\n", pod, total, at.Unix())
			fmt.Fprintf(&memory, "container_memory_working_set_bytes{%s,container=\"c\"} 1e6 %d\n", pod, at.Unix())
			fmt.Fprintf(&owner, "kube_pod_owner{%s,owner_kind=\"StatefulSet\",owner_name=%q,"+
				"owner_is_controller=\"true\"} 1 %d\n", pod, workload, at.Unix())
		}
	}
	return "# TYPE container_cpu_usage_seconds counter\n" + cpu.String() +
		"# TYPE container_memory_working_set_bytes gauge\n" +
		memory.String() + "# TYPE kube_pod_owner gauge\n" + owner.String() + "# EOF\n"
}

// usageCluster is a control plane with two nodes of 16 CPUs: four pods of byDay are on the node "day", four of byNight
// on the node "night". By limits both nodes are alike.
type usageCluster struct {
	t          *testing.T
	ctx        context.Context
	cluster    *harness.Cluster
	prometheus *harness.Server
	collector  *harness.Server
	scheduler  *harness.Scheduler
	pods       int
}

func startUsageCluster(t *testing.T) *usageCluster {
	t.Helper()
	u := &usageCluster{t: t, ctx: deadline(t)}
	u.cluster = startCluster(t, u.ctx, harness.Options{Log: t.Logf})
	apply(t, u.ctx, u.cluster, "second-scheduler")
	apply(t, u.ctx, u.cluster, "usage")
	var nodes []*v1.Node
	var pods []*v1.Pod
	for name, workload := range map[string]string{"day": byDay, "night": byNight} {
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"),
				"pods": resource.MustParse("110")}}})
		for i := range 4 {
			pods = append(pods, usedPod(fmt.Sprint(workload, "-", i), workload, name, "4"))
		}
	}
	if err := errors.Join(u.cluster.CreateNodes(u.ctx, nodes), u.cluster.CreatePods(u.ctx, pods)); err != nil {
		t.Fatal(err)
	}
	u.startCollector()
	u.startScheduler()
	return u
}

func (u *usageCluster) kubeconfig(namespace, name string) string {
	u.t.Helper()
	kubeconfig, err := u.cluster.ServiceAccountKubeconfig(u.ctx, namespace, name)
	if err != nil {
		u.t.Fatal(err)
	}
	return kubeconfig
}

func (u *usageCluster) startCollector() {
	u.t.Helper()
	var err error
	u.prometheus, err = u.cluster.StartPrometheus(u.ctx, dayAndNight(time.Now().UTC().Truncate(time.Minute)))
	if errors.Is(err, harness.ErrNoPrometheus) {
		u.t.Skip(err)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	u.collector, err = u.cluster.StartUsage(u.ctx, u.kubeconfig("kube-system", "loadline-usage"),
		"--prometheus="+u.prometheus.URL, "--namespace=kube-system")
	if err != nil {
		u.t.Fatal(err)
	}
	eventually(u.t, u.ctx, "profiles are written", func() (bool, error) {
		_, err := u.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(u.ctx, "loadline-usage-0", metav1.GetOptions{})
		return err == nil, err
	})
}

func (u *usageCluster) startScheduler() {
	u.t.Helper()
	options, err := demo.OurOptions(harness.SecondSchedulerConfig, startEngine(u.t, u.ctx, u.cluster).Address)
	if err != nil {
		u.t.Fatal(err)
	}
	options.Site.EngineTimeout = demo.PatientTimeout
	options.Site.Kubeconfig = u.kubeconfig("loadline-system", "loadline-scheduler")
	options.Site.PluginArgs = map[string]any{"expectedUse": map[string]any{"mode": "On"}, "usageNamespace": "kube-system"}
	if u.scheduler, err = u.cluster.StartScheduler(u.ctx, options); err != nil {
		u.t.Fatal(err)
	}
}

// place returns the node that the scheduler chooses for a pod of a workload, and takes the pod away again.
func (u *usageCluster) place(workload string) string {
	u.t.Helper()
	u.pods++
	pod := usedPod(fmt.Sprint("probe-", u.pods), workload, "", "4")
	if err := u.cluster.CreatePods(u.ctx, []*v1.Pod{pod}); err != nil {
		u.t.Fatal(err)
	}
	node := ""
	eventually(u.t, u.ctx, pod.Name+" is bound", func() (bool, error) {
		bound, err := u.cluster.Client.CoreV1().Pods("default").Get(u.ctx, pod.Name, metav1.GetOptions{})
		if err == nil {
			node = bound.Spec.NodeName
		}
		return node != "", err
	})
	if err := u.cluster.DeletePod(u.ctx, "default", pod.Name); err != nil {
		u.t.Fatal(err)
	}
	return node
}

// apart says whether a pod of each workload is placed on the node of the other one.
func (u *usageCluster) apart() bool {
	return u.place(byDay) == "night" && u.place(byNight) == "day"
}

// allApart places five pods of each workload: one of each is apart by chance in a quarter of all cases.
func (u *usageCluster) allApart() bool {
	for range 5 {
		if !u.apart() {
			return false
		}
	}
	return true
}

func (u *usageCluster) expectApart(when string) {
	u.t.Helper()
	if !u.allApart() {
		u.t.Fatalf("%s: a pod is on the node whose pods are busy at the same hours", when)
	}
}

// Profiles of a real Prometheus reach the scheduler through ConfigMaps, with the rights of the manifests. It places
// pods beside those that are busy at other hours, also while Prometheus and the collector are gone and after the API
// server was. Without profiles limits decide again.
func TestSchedulerPlacesByTheHour(t *testing.T) {
	u := startUsageCluster(t)
	eventually(t, u.ctx, "the scheduler has the profiles", func() (bool, error) { return u.allApart(), nil })
	u.expectApart("with profiles")

	// By limits the node night has 17 of 16 CPUs and the node day 16. By profiles the former is better for pods of the
	// day: with one more of them 15.2 + 0.2 + 1 at night there, and 5 x 3.8 = 19 by day here.
	if err := u.cluster.CreatePods(u.ctx, []*v1.Pod{usedPod("ballast", "", "night", "1")}); err != nil {
		t.Fatal(err)
	}
	if err := u.prometheus.Stop(); err != nil {
		t.Fatal(err)
	}
	u.expectApart("without Prometheus")
	if err := u.collector.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := u.cluster.RestartAPIServer(u.ctx, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	u.expectApart("after a restart of the API server")

	for shard := range 8 {
		err := u.cluster.Client.CoreV1().ConfigMaps("kube-system").Delete(u.ctx, fmt.Sprint("loadline-usage-", shard),
			metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	eventually(t, u.ctx, "the scheduler says that profiles are missing", func() (bool, error) {
		log, err := u.scheduler.Log()
		return strings.Contains(log, "there is no ConfigMap kube-system/loadline-usage-0"), err
	})
	for range 5 {
		if node := u.place(byDay); node != "day" {
			t.Fatalf("without profiles a pod is on %s: by limits day has more room", node)
		}
	}
}
