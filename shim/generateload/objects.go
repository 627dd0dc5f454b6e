// Package generateload makes load on a cluster, and takes it away again: Deployments or pods that request and may use
// amounts that a seed settles, and do nothing.
package generateload

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels of what is made. The first holds the name of the load and selects all of it, the second one of its
// Deployments.
const (
	LoadLabel = "loadline.dev/generated-load"
	PartLabel = "loadline.dev/generated-load-part"
)

// Most pods and Deployments of a load.
const (
	MostPods        = 200_000
	MostDeployments = 5_000
)

// Range is two amounts, both of them possible.
type Range struct{ Low, High resource.Quantity }

// ParseRange reads "100m" or "100m-500m".
func ParseRange(text string) (Range, error) {
	low, high, two := strings.Cut(text, "-")
	if !two {
		high = low
	}
	var r Range
	var err error
	if r.Low, err = resource.ParseQuantity(low); err == nil {
		r.High, err = resource.ParseQuantity(high)
	}
	if err != nil {
		return r, fmt.Errorf("%q: must be an amount, or LOW-HIGH: %w", text, err)
	}
	if r.Low.Sign() < 0 || r.High.Cmp(r.Low) < 0 {
		return r, fmt.Errorf("%q: must not be negative, nor end below its begin", text)
	}
	return r, nil
}

// Options of a load.
type Options struct {
	Namespace, Name string
	// Pods in all. Deployments share them evenly; Bare: there are none, and pods that nobody makes again.
	Pods, Deployments int
	Bare              bool
	// CPU and Memory are what a pod requests, LimitFactor how much more it may use: 1 is as much, 0 is no limit. Each
	// Deployment, or bare pod, draws its own.
	CPU, Memory           Range
	LowFactor, HighFactor float64
	Seed                  uint64
	// Over is the time over which the pods come, evenly.
	Over time.Duration
	// MaxUnavailable is of a disruption budget for each Deployment, a number or a percentage; empty: there is none.
	MaxUnavailable string
	Image          string
	// Annotations of Deployments, or bare pods. NodeSelector of pods.
	Annotations, NodeSelector map[string]string
}

// Amounts of one pod. A thousand times as many thousandths of a core are still a number that Kubernetes knows.
const (
	mostCPU    = "1T"
	mostMemory = "1P"
)

// Check returns what is wrong.
func (o *Options) Check() error {
	if problems := validation.IsDNS1035Label(o.Name); len(problems) > 0 || len(o.Name) > 40 {
		return fmt.Errorf("name %q: must be a DNS label of at most 40 characters that begins with a letter", o.Name)
	}
	if o.Pods < 1 || o.Pods > MostPods {
		return fmt.Errorf("%d pods: must be 1 to %d", o.Pods, MostPods)
	}
	if !o.Bare && (o.Deployments < 1 || o.Deployments > min(MostDeployments, o.Pods)) {
		return fmt.Errorf("%d Deployments: must be 1 to %d, and not more than pods", o.Deployments, MostDeployments)
	}
	for name, c := range map[string]struct {
		amount Range
		most   string
	}{"cpu": {o.CPU, mostCPU}, "memory": {o.Memory, mostMemory}} {
		if most := resource.MustParse(c.most); c.amount.High.Cmp(most) > 0 {
			return fmt.Errorf("%s %s: must be at most %s", name, c.amount.High.String(), c.most)
		}
	}
	if !(o.LowFactor >= 0 && o.HighFactor >= o.LowFactor && o.HighFactor <= 1000) {
		return errors.New("limit factor: must be 0 to 1000, and not end below its begin")
	}
	if o.HighFactor > 0 && o.LowFactor < 1 {
		return errors.New("limit factor: no limit may be below its request; 0 alone is no limit")
	}
	if o.Over < 0 {
		return errors.New("the time over which pods come: must not be negative")
	}
	if o.MaxUnavailable != "" {
		if o.Bare {
			return errors.New("bare pods have no budget")
		}
		if _, err := intstr.GetScaledValueFromIntOrPercent(new(intstr.Parse(o.MaxUnavailable)), 100, true); err != nil {
			return fmt.Errorf("max unavailable %q: %w", o.MaxUnavailable, err)
		}
	}
	return nil
}

// Selector selects all that is made.
func (o *Options) Selector() string { return LoadLabel + "=" + o.Name }

// deployments returns them with all of their replicas. The same options, the same Deployments.
func (o *Options) deployments() []*appsv1.Deployment {
	random := o.random()
	var all []*appsv1.Deployment
	for i := range o.Deployments {
		name := fmt.Sprintf("%s-%d", o.Name, i)
		replicas := o.Pods / o.Deployments
		if i < o.Pods%o.Deployments {
			replicas++
		}
		selector := map[string]string{PartLabel: name}
		labels := map[string]string{LoadLabel: o.Name, PartLabel: name}
		all = append(all, &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: labels,
				Annotations: o.Annotations},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: selector},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
					Spec: o.podSpec(random)},
			},
		})
	}
	return all
}

func (o *Options) budgets() []*policyv1.PodDisruptionBudget {
	if o.MaxUnavailable == "" {
		return nil
	}
	var all []*policyv1.PodDisruptionBudget
	for i := range o.Deployments {
		name := fmt.Sprintf("%s-%d", o.Name, i)
		all = append(all, &policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name,
				Labels: map[string]string{LoadLabel: o.Name}},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.Parse(o.MaxUnavailable)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{PartLabel: name}}},
		})
	}
	return all
}

func (o *Options) pods() []*v1.Pod {
	random := o.random()
	var all []*v1.Pod
	for i := range o.Pods {
		all = append(all, &v1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: fmt.Sprintf("%s-%d", o.Name, i),
				Labels: map[string]string{LoadLabel: o.Name}, Annotations: o.Annotations},
			Spec: o.podSpec(random),
		})
	}
	return all
}

// Objects returns all that is made, in the order in which it is made.
func (o *Options) Objects() (all []runtime.Object) {
	if o.Bare {
		for _, pod := range o.pods() {
			all = append(all, pod)
		}
		return all
	}
	for _, budget := range o.budgets() {
		all = append(all, budget)
	}
	for _, deployment := range o.deployments() {
		all = append(all, deployment)
	}
	return all
}

func (o *Options) random() *rand.Rand { return rand.New(rand.NewPCG(o.Seed, 0)) }

// Steps in which amounts are drawn, so that they read well.
const (
	cpuStep    = 10       // millicores
	memoryStep = 16 << 20 // bytes
)

func (o *Options) podSpec(random *rand.Rand) v1.PodSpec {
	cpu := draw(random, o.CPU.Low.MilliValue(), o.CPU.High.MilliValue(), cpuStep)
	memory := draw(random, o.Memory.Low.Value(), o.Memory.High.Value(), memoryStep)
	factor := o.LowFactor + (o.HighFactor-o.LowFactor)*random.Float64()
	requirements := v1.ResourceRequirements{Requests: amounts(cpu, memory, 1)}
	if factor > 0 {
		requirements.Limits = amounts(cpu, memory, factor)
	}
	return v1.PodSpec{
		NodeSelector: o.NodeSelector, TerminationGracePeriodSeconds: new(int64(1)),
		AutomountServiceAccountToken: new(false),
		SecurityContext: &v1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65535)),
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}},
		Containers: []v1.Container{
			{Name: "load", Image: o.Image, Resources: requirements, SecurityContext: &v1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}}}}},
	}
}

// draw returns low + k * step, at most high, each with the same probability.
func draw(random *rand.Rand, low, high, step int64) int64 {
	return low + random.Int64N((high-low)/step+1)*step
}

// amounts are what is not 0, times a factor.
func amounts(cpu, memory int64, factor float64) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu > 0 {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(float64(cpu)*factor), resource.DecimalSI)
	}
	if memory > 0 {
		list[v1.ResourceMemory] = *resource.NewQuantity(int64(float64(memory)*factor), resource.BinarySI)
	}
	return list
}
