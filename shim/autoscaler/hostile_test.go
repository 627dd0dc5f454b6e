package autoscaler

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// odd is a cloud that says odd things of the group that is not asked for more.
type odd struct {
	*sky
	group    func(*cloud.Group)
	template func(*v1.Node)
}

func (o *odd) Groups(ctx context.Context, defaults *stated) ([]cloud.Group, error) {
	groups, err := o.sky.Groups(ctx, defaults)
	for i := range groups {
		if groups[i].ID != "cheap" && o.group != nil {
			o.group(&groups[i])
		}
	}
	return groups, err
}

func (o *odd) TemplateNode(ctx context.Context, id string) (*v1.Node, error) {
	node, err := o.sky.TemplateNode(ctx, id)
	if id != "cheap" && o.template != nil {
		o.template(node)
	}
	return node, err
}

// stated is what a provider says of how a group shrinks.
type stated = externalgrpc.NodeGroupAutoscalingOptions

// options changes what a provider says of how a group shrinks.
func options(change func(*stated)) *odd {
	return &odd{group: func(g *cloud.Group) { change(g.Options) }}
}

// An odd value of one group, template or annotation harms this one alone: no loop fails, pods get their nodes, and the
// status says what is not believed.
func TestOneOddThingStopsNoLoop(t *testing.T) {
	large := &odd{template: func(node *v1.Node) {
		for i := range 60000 {
			node.Labels[fmt.Sprintf("k%d", i)] = strings.Repeat("v", 60)
		}
	}}
	for name, c := range map[string]struct {
		cloud *odd
		id    string // of the odd group
		mark  string
		warns string
	}{
		"Control":    {&odd{}, "dear", "", ""},
		"Space":      {&odd{}, "my asg", "", `node group "my asg" is left out`},
		"NotASCII":   {&odd{}, "gruppe-ä", "", "is left out"},
		"Long":       {&odd{}, strings.Repeat("x", 254), "", "is left out"},
		"NoID":       {&odd{group: func(g *cloud.Group) { g.ID = "" }}, "dear", "", `node group "" is left out`},
		"LongEnough": {&odd{}, strings.Repeat("x", 253), "", ""},
		"Threshold": {options(func(o *stated) { o.ScaleDownUtilizationThreshold = 1.5 }),
			"dear", "", "scaleDownUtilizationThreshold of 1.5, which is not in [0, 1]"},
		"BelowZero": {options(func(o *stated) { o.ScaleDownUtilizationThreshold = -0.1 }),
			"dear", "", "scaleDownUtilizationThreshold of -0.1"},
		"NaN": {options(func(o *stated) { o.ScaleDownGpuUtilizationThreshold = math.NaN() }),
			"dear", "", "scaleDownGpuUtilizationThreshold of NaN"},
		"Infinite": {options(func(o *stated) { o.ScaleDownGpuUtilizationThreshold = math.Inf(1) }),
			"dear", "", "of +Inf"},
		"NegativeTime": {options(func(o *stated) {
			o.ScaleDownUnneededDuration = durationpb.New(-time.Second)
		}), "dear", "", "scaleDownUnneededDuration of -1s"},
		"NegativeProvision": {options(func(o *stated) {
			o.MaxNodeProvisionDuration = durationpb.New(-time.Second)
		}), "dear", "", "maxNodeProvisionDuration of -1s"},
		"LargeTemplate": {large, "dear", "", "node group dear: its template counts as not told: it takes 4.1 MiB"},
		"MarkSince": {&odd{},
			"dear", `{"term":1,"since":4611686018427387904}`,
			"node fixed: its annotation loadline.dev/scale-down states the time 4611686018427387904"},
		"MarkDeleting": {&odd{},
			"dear", `{"term":1,"since":1,"deleting":4611686018427387904}`, "states the time 4611686018427387904"},
		"MarkBefore1970": {&odd{}, "dear", `{"term":1,"since":-1}`, "states the time -1"},
		"MarkTerm": {&odd{},
			"dear", `{"term":9223372036854775807,"since":1}`, "states the term 9223372036854775807"},
		"MarkIsNotOfOurs": {&odd{}, "dear", `?`, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cloud.sky = &sky{delay: 40 * time.Second, groups: map[string]*skyGroup{
					"cheap": {max: 10, cpu: "4", price: 0.1}, c.id: {max: 10, cpu: "4", price: 0.3}}}
				c.cloud.client = c.cloud
				b := growingUnder(t, c.cloud.sky, nil)
				defer b.end()
				if c.mark != "" {
					b.annotate("fixed", map[string]string{"loadline.dev/scale-down": c.mark})
				}
				b.addPending("web", 2, "3")
				warnings := ""
				for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(10 * time.Second) {
					if err := b.once(b.ctx); err != nil {
						t.Fatal(err)
					}
					warnings += strings.Join(b.readStatus().Warnings, "\n")
				}
				if got := c.cloud.requests(); !slices.Contains(got, "cheap+2") {
					t.Errorf("the cloud was asked for %v, want cheap+2", got)
				}
				if !strings.Contains(warnings, c.warns) || c.warns == "" && warnings != "" {
					t.Errorf("warnings %q, want %q", warnings, c.warns)
				}
			})
		})
	}
}

// annotate changes the annotations of a node.
func (b *bench) annotate(name string, annotations map[string]string) {
	node := b.node(name).DeepCopy()
	node.Annotations = annotations
	if _, err := b.client.CoreV1().Nodes().Update(b.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// Nodes that state one provider id are kept, whichever is first by name: the machine runs pods. So is one whose removal
// had begun.
func TestNodesOfOneMachineAreKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		stale bool // it is not ready, as the node of a machine that has registered again under another name
	}{{"aaa", false}, {"zzz", false}, {"aaa", true}, {"zzz", true}} {
		t.Run(fmt.Sprint(c.name, c.stale), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sky{groups: map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1, target: 2}},
					delay: 40 * time.Second}
				b := growingUnder(t, s, nil)
				defer b.end()
				b.addPod("on1", "cheap1", "3", nil)
				b.addPod("on2", "cheap2", "3", nil)
				second := b.node("cheap1").DeepCopy()
				second.Name, second.UID, second.ResourceVersion = c.name, "uid-second", ""
				if c.stale {
					second.Status.Conditions[0].Status = v1.ConditionFalse
				}
				if _, err := b.client.CoreV1().Nodes().Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for until := time.Now().Add(40 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Second) {
					if err := b.once(b.ctx); err != nil {
						t.Fatal(err)
					}
				}
				if asked := s.requests(); len(asked) > 0 {
					t.Errorf("the cloud was asked for %v", asked)
				}
				if warnings := strings.Join(b.readStatus().Warnings, "\n"); !strings.Contains(warnings,
					`2 nodes state the provider id "sky://cheap1"`) {
					t.Errorf("warnings %q", warnings)
				}
			})
		})
	}
}
