package chart

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// monitored are the objects of a release by which Prometheus finds what it scrapes.
type monitored struct {
	pods     []v1.PodTemplateSpec
	services []v1.Service
}

func readMonitored(t *testing.T, objects []*unstructured.Unstructured) (m monitored) {
	t.Helper()
	for _, o := range objects {
		var err error
		switch o.GetKind() {
		case "Deployment", "DaemonSet":
			var workload appsv1.Deployment
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &workload)
			m.pods = append(m.pods, workload.Spec.Template)
		case "Service":
			var service v1.Service
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service)
			m.services = append(m.services, service)
		}
		if err != nil {
			t.Fatalf("%s: %v", key(o), err)
		}
	}
	return m
}

// podPort returns how many containers with this name of a port are in pods with these labels.
func (m monitored) podPort(selector map[string]string, port string) (found int) {
	for _, pod := range m.pods {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		for _, c := range pod.Spec.Containers {
			for _, p := range c.Ports {
				if p.Name == port {
					found++
				}
			}
		}
	}
	return found
}

// servicePort returns the same for a port of services with these labels.
func (m monitored) servicePort(selector map[string]string, port string) (found int) {
	for _, service := range m.services {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(service.Labels)) {
			continue
		}
		for _, p := range service.Spec.Ports {
			if p.Name == port {
				found += m.podPort(service.Spec.Selector, p.TargetPort.StrVal)
			}
		}
	}
	return found
}

// Each monitor selects one port of one container.
func TestMonitorsFindTheirPorts(t *testing.T) {
	v := setter{on("scheduler", "extender", "expander", "autoscaler", "usage")}.
		with("monitoring", values{"serviceMonitor": true, "podMonitor": true}).values
	objects := mustRender(t, load(t), "anywhere", v)
	m := readMonitored(t, objects)
	monitors := 0
	for _, o := range objects {
		find, field := m.podPort, "podMetricsEndpoints"
		switch o.GetKind() {
		case "ServiceMonitor":
			find, field = m.servicePort, "endpoints"
		case "PodMonitor":
		default:
			continue
		}
		monitors++
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", field)
		if len(endpoints) != 1 || len(selector) == 0 {
			t.Errorf("%s: selector %v, endpoints %v", key(o), selector, endpoints)
			continue
		}
		port := fmt.Sprint(endpoints[0].(map[string]any)["port"])
		if n := find(selector, port); n != 1 {
			t.Errorf("%s: %d containers have its port %s, want 1", key(o), n, port)
		}
	}
	if monitors != 5 { // one of each component
		t.Errorf("%d monitors, want 5", monitors)
	}
}

// The extender opens a port of its node only for a PodMonitor.
func TestExtenderOpensNoPortUnasked(t *testing.T) {
	for asked, ports := range map[bool]int{false: 1, true: 2} {
		v := setter{on("extender")}.with("monitoring.podMonitor", asked).values
		m := readMonitored(t, mustRender(t, load(t), "anywhere", v))
		gateway := m.pods[0].Spec.Containers[0]
		var address *v1.EnvVarSource
		for _, e := range gateway.Env {
			if e.Name == "POD_IP" {
				address = e.ValueFrom
			}
		}
		if len(gateway.Ports) != ports || (gateway.Args[len(gateway.Args)-1] == "--health-address=[$(POD_IP)]:8890") != asked ||
			(address != nil && address.FieldRef.FieldPath == "status.podIP") != asked {
			t.Errorf("podMonitor %v: ports %v, arguments %q, environment %v", asked, gateway.Ports, gateway.Args, gateway.Env)
		}
	}
}
