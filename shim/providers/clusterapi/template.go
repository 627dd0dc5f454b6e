package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
)

// capacityPrefix begins the annotations that say what a new node will be.
const capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"

// Defaults of Cluster Autoscaler for nodes of which nobody says more.
const (
	defaultPods = 110
	defaultArch = "amd64"
)

// TemplateNode returns a node as the annotations of the group and the machine template of its infrastructure say; nil:
// they do not tell cpu and memory.
func (p *Provider) TemplateNode(ctx context.Context, id string) (*v1.Node, error) {
	f, err := p.group(id)
	if err != nil {
		return nil, err
	}
	p.warn(f.doubtsOfCapacity())
	infrastructure, refused, err := p.infrastructure(ctx, f.object)
	p.mu.Lock()
	p.refused[id] = refused
	p.mu.Unlock()
	stated, wrong := f.statedCapacity()
	if wrong != nil {
		return nil, wrong
	}
	if err != nil && (stated.Cpu().IsZero() || stated.Memory().IsZero()) {
		return nil, err // without it nothing is known
	}
	capacity := infrastructure.capacity()
	maps.Copy(capacity, stated)
	if capacity.Cpu().IsZero() || capacity.Memory().IsZero() {
		return nil, nil
	}
	taints, wrongTaint := f.taints()
	labels, wrongLabel := f.labels(infrastructure)
	if err := cmp.Or(wrongTaint, wrongLabel); err != nil {
		return nil, err
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.GetName(), Labels: labels},
		Spec:   v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy()}}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node, nil
}

// NodePrice tells nothing: Cluster API knows no prices, and price lists know the instance types.
func (p *Provider) NodePrice(context.Context, *v1.Node) (*float64, error) { return nil, nil }

// pairs returns the parts of an annotation, "a=b,c=d".
func pairs(text string) map[string]string {
	all := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(part, "="); ok {
			all[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return all
}

// labels returns those of a new node: what Cluster API takes over from the template of its Machines, and what the
// annotation says. It is an error if no node can have one of them.
func (o object) labels(infrastructure object) (map[string]string, error) {
	all := map[string]string{
		v1.LabelOSStable: cmp.Or(infrastructure.text("status", "nodeInfo", "operatingSystem"), "linux"),
		v1.LabelArchStable: cmp.Or(infrastructure.text("status", "nodeInfo", "architecture"),
			os.Getenv("CAPI_SCALE_ZERO_DEFAULT_ARCH"), defaultArch)}
	template, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	for key, value := range template {
		if isTakenOver(key) {
			all[key] = value
		}
	}
	stated := pairs(o.GetAnnotations()[capacityPrefix+"labels"])
	for _, key := range slices.Sorted(maps.Keys(stated)) {
		value := stated[key]
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return nil, fmt.Errorf("%s: annotation %slabels: no node can have the label %q: %s", o.id(), capacityPrefix,
				key+"="+value, problems[0])
		}
	}
	maps.Copy(all, stated)
	return all, nil
}

// isTakenOver says whether a label of a Machine is one of its node too.
func isTakenOver(label string) bool {
	prefix, _, _ := strings.Cut(label, "/")
	for _, domain := range []string{"node-restriction.kubernetes.io", "node.cluster.x-k8s.io"} {
		if prefix == domain || strings.HasSuffix(prefix, "."+domain) {
			return true
		}
	}
	return prefix == "node-role.kubernetes.io"
}

// taints returns those of a new node: of the template of its Machines, and of the annotation, which come before.
func (o object) taints() (all []v1.Taint, err error) {
	listed, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "taints")
	for _, entry := range listed {
		fields, _ := entry.(map[string]any)
		key, _ := fields["key"].(string)
		value, _ := fields["value"].(string)
		effect, _ := fields["effect"].(string)
		all = append(all, v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)})
	}
	for text := range strings.SplitSeq(o.GetAnnotations()[capacityPrefix+"taints"], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		taint, err := taintOf(text)
		if err != nil {
			return nil, fmt.Errorf("%s: annotation %staints %q: %w", o.id(), capacityPrefix, text, err)
		}
		replaced := false
		for i := range all {
			if all[i].MatchTaint(&taint) {
				all[i], replaced = taint, true
			}
		}
		if !replaced {
			all = append(all, taint)
		}
	}
	return all, nil
}

func taintOf(text string) (v1.Taint, error) {
	left, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	taint := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return taint, errors.New(problems[0])
	}
	switch taint.Effect {
	case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		return taint, nil
	}
	return taint, fmt.Errorf("effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", effect)
}

// unknownShape says that nothing states what new nodes of a group are, since its machine template may not be read; nil:
// something does, or none needs to, as a node shows it.
func (p *Provider) unknownShape(f *found, instances []*externalgrpc.Instance) error {
	stated, wrong := f.statedCapacity()
	isNode := func(i *externalgrpc.Instance) bool {
		return i.GetStatus().GetInstanceState() != externalgrpc.InstanceState_INSTANCE_CREATING
	}
	if wrong != nil || !stated.Cpu().IsZero() && !stated.Memory().IsZero() || slices.ContainsFunc(instances, isNode) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[f.id()]
}

// infrastructure returns the machine template of a group's infrastructure; an empty object: there is none, or it may
// not be read, and `refused` tells how to change that.
func (p *Provider) infrastructure(ctx context.Context, o object) (template object, refused, err error) {
	at := func(field string) string { return o.text("spec", "template", "spec", "infrastructureRef", field) }
	kind, name := at("kind"), at("name")
	if kind == "" || name == "" {
		return object{}, nil, nil
	}
	var version schema.GroupVersion
	if apiGroup := at("apiGroup"); apiGroup != "" {
		preferred, err := p.preferred(apiGroup)
		if err != nil {
			return object{}, nil, err
		}
		version = preferred
	} else {
		parsed, err := schema.ParseGroupVersion(at("apiVersion"))
		if err != nil {
			return object{}, nil, err
		}
		version = parsed
	}
	resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
	found, err := p.objects.Resource(resource).Namespace(o.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return object{}, fmt.Errorf("nothing tells what new nodes are: grant get of %s in the management cluster (the "+
			"chart: autoscaler.extraRules), or state the annotations %scpu and %smemory: %w", resource.GroupResource(),
			capacityPrefix, capacityPrefix, err), nil
	case apierrors.IsNotFound(err):
		klog.V(2).InfoS("What new nodes are is not read from the machine template", "group", o.id(), "err", err)
		return object{}, nil, nil
	case err != nil:
		return object{}, nil, err
	}
	return object{*found}, nil, nil
}

func (p *Provider) preferred(apiGroup string) (schema.GroupVersion, error) {
	groups, err := p.served.ServerGroups()
	if err != nil {
		return schema.GroupVersion{}, err
	}
	for _, g := range groups.Groups {
		if g.Name == apiGroup {
			return schema.GroupVersion{Group: apiGroup, Version: g.PreferredVersion.Version}, nil
		}
	}
	return schema.GroupVersion{}, fmt.Errorf("the management cluster has no API group %s", apiGroup)
}

// capacity is what a machine template says of its machines.
func (o object) capacity() v1.ResourceList {
	out := v1.ResourceList{}
	stated, _, _ := unstructured.NestedStringMap(o.Object, "status", "capacity")
	for name, text := range stated {
		if amount, err := resource.ParseQuantity(text); err == nil && amount.Sign() >= 0 {
			out[v1.ResourceName(name)] = amount
		}
	}
	return out
}

// options returns the options of a group, with those that it states in place of the defaults; nil: it states none. An
// annotation that cannot be read counts as not stated, and is among the doubts.
func (o object) options(defaults *externalgrpc.NodeGroupAutoscalingOptions) (
	options *externalgrpc.NodeGroupAutoscalingOptions, doubts []string) {
	options, stated := proto.CloneOf(defaults), false
	if options == nil {
		options = &externalgrpc.NodeGroupAutoscalingOptions{}
	}
	read := func(key string, parse func(text string) error) {
		text, ok := o.GetAnnotations()[group()+optionPrefix+key]
		if !ok {
			return
		}
		if err := parse(text); err != nil {
			doubts = append(doubts, fmt.Sprintf("%s: annotation %s %q counts as not stated: %v", o.id(),
				group()+optionPrefix+key, text, err))
			return
		}
		stated = true
	}
	for key, to := range map[string]*float64{
		"scaledownutilizationthreshold":    &options.ScaleDownUtilizationThreshold,
		"scaledowngpuutilizationthreshold": &options.ScaleDownGpuUtilizationThreshold,
	} {
		read(key, func(text string) error {
			value, err := strconv.ParseFloat(text, 64)
			if err == nil {
				*to = value
			}
			return err
		})
	}
	for key, to := range map[string]**durationpb.Duration{
		"scaledownunneededtime": &options.ScaleDownUnneededDuration,
		"scaledownunreadytime":  &options.ScaleDownUnreadyDuration,
		"maxnodeprovisiontime":  &options.MaxNodeProvisionDuration,
		"maxnodestartuptime":    &options.MaxNodeStartupDuration,
	} {
		read(key, func(text string) error {
			value, err := time.ParseDuration(text)
			if err == nil {
				*to = durationpb.New(value)
			}
			return err
		})
	}
	if !stated {
		return nil, doubts
	}
	return options, doubts
}

// warn logs each doubt once.
func (p *Provider) warn(doubts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, doubt := range doubts {
		if !p.warned[doubt] {
			p.warned[doubt] = true
			klog.InfoS("Warning: an annotation of a node group", "what", doubt)
		}
	}
}
