// Package karpenter makes and removes nodes by NodeClaims, which Karpenter launches and terminates. Groups are the
// NodePools that are given to Loadline, times instance types, zones and capacity types.
package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// Options say what the NodePools do not.
type Options struct {
	Zones     []string `json:"zones" flag:"karpenter-zones" range:":100" help:"with --cloud=karpenter: zones of NodePools whose requirements name none; none given: those of their nodes, else one group for all zones"`
	MaxGroups int      `json:"maxGroups" flag:"karpenter-max-groups" range:"1:1000" help:"with --cloud=karpenter: node groups at most, shared by the NodePools, each of which has one instance type if that suffices; of more instance types, those are left out of which others offer more for less"`
}

// DefaultOptions are those without file and flags.
func DefaultOptions() Options { return Options{MaxGroups: 300} }

// Provider is Karpenter as a provider. Safe for concurrent use.
type Provider struct {
	objects dynamic.Interface
	options Options
	types   map[string]*instanceType
	// callTime bounds one call, a page of a list included: an API server that hangs must not hold up a loop for ever.
	callTime time.Duration

	mu    sync.Mutex // one change at a time; guards what follows
	state state
	// awaited are the claims that were there, or were made here, and have not registered yet, by name. One that vanishes
	// has failed.
	awaited map[string]awaited
	// lost are the failed ones, until they are given up.
	lost map[string]lost
	// offered is how many more machines each group may have, as Groups has said it last.
	offered map[string]int
	// ordered are the claims whose deletion was ordered here.
	ordered map[string]bool
}

type awaited struct {
	group    string
	launched bool
}

type lost struct {
	group, code, why string
	class            int32
	at               time.Time
}

// callTime is longer than an API server that is not well takes for an answer as a rule.
const callTime = 30 * time.Second

// New returns a provider that works through the API server, with the price lists that know instance types.
func New(options Options, objects dynamic.Interface, lists []*loadlinev1.PriceCatalogue) (*Provider, error) {
	types, err := readTypes(lists)
	if err != nil {
		return nil, err
	}
	return &Provider{objects: objects, options: options, types: types, callTime: callTime,
		awaited: map[string]awaited{}, lost: map[string]lost{}, ordered: map[string]bool{}}, nil
}

// Refresh reads NodePools and NodeClaims.
func (p *Provider) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.look(ctx)
}

// look reads all objects as they are now, and works out the groups. The caller holds the lock.
func (p *Provider) look(ctx context.Context) error {
	listed, err := p.list(ctx, nodePools, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pools, err := decode[nodePool](listed, "NodePool")
	if err != nil {
		return err
	}
	if listed, err = p.list(ctx, nodeClaims, metav1.ListOptions{LabelSelector: nodePoolLabel}); err != nil {
		return err
	}
	claims, err := decode[nodeClaim](listed, "NodeClaim")
	if err != nil {
		return err
	}
	p.state = p.stateOf(pools, claims)
	p.follow(claims, time.Now())
	return nil
}

// pageSize is how many objects are listed at once.
const pageSize = 500

func (p *Provider) list(ctx context.Context, of schema.GroupVersionResource,
	options metav1.ListOptions) (all []unstructured.Unstructured, err error) {
	options.Limit = pageSize
	for {
		call, cancel := context.WithTimeout(ctx, p.callTime)
		page, err := p.objects.Resource(of).List(call, options)
		cancel()
		if err != nil {
			return nil, explained(err, of)
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// explained says what people can do about an error of the API server. It keeps the error.
func explained(err error, of schema.GroupVersionResource) error {
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return fmt.Errorf("the API server has no %s of %s: install Karpenter 1.0 or newer, or choose another --cloud: %w",
			of.Resource, Version, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("rights are missing, see manifests/autoscaler/karpenter and act-karpenter: %w", err)
	}
	return fmt.Errorf("%s: %w", of.Resource, err)
}

// follow finds claims that have failed: they vanish, or are deleted by Karpenter, before they have registered. The
// caller holds the lock.
func (p *Provider) follow(claims []*nodeClaim, now time.Time) {
	listed := map[string]*nodeClaim{}
	for _, c := range claims {
		listed[c.Name] = c
	}
	for name, was := range p.awaited {
		c := listed[name]
		if c != nil && c.DeletionTimestamp == nil {
			continue
		}
		delete(p.awaited, name)
		if !p.ordered[name] {
			p.lost[name] = was.lost(name, now)
		}
	}
	for name, c := range listed {
		if group := p.state.groupOf[name]; group != "" && !c.registered() && c.DeletionTimestamp == nil {
			p.awaited[name] = awaited{group: group, launched: c.launched()}
		} else if c.registered() {
			delete(p.awaited, name)
		}
	}
	for name := range p.ordered {
		if c := listed[name]; c == nil || c.DeletionTimestamp == nil { // it is gone, or the order was not carried out
			delete(p.ordered, name)
		}
	}
	for name, l := range p.lost {
		if p.state.groups[l.group] == nil || now.Sub(l.at) > lostFor {
			delete(p.lost, name)
		}
	}
}

// lostFor is how long a failed claim is reported where nobody gives it up, as in mode observe.
const lostFor = 15 * time.Minute

func (a awaited) lost(name string, at time.Time) lost {
	if a.launched {
		return lost{group: a.group, code: "NotRegistered", class: otherError, at: at,
			why: "NodeClaim " + name + " was launched, and deleted before its node registered"}
	}
	return lost{group: a.group, code: "InsufficientCapacity", class: outOfResources, at: at,
		why: "Karpenter gave up NodeClaim " + name + " before it was launched; its events say why"}
}

// Classes of errors in the protocol.
const (
	outOfResources = 1
	otherError     = 99
)

// Groups returns the groups of all managed NodePools as of the last look.
func (p *Provider) Groups(_ context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group,
	error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]cloud.Group, 0, len(p.state.groups))
	p.offered = map[string]int{}
	for _, g := range p.state.groups {
		target := p.targetOf(g)
		p.offered[g.id] = g.room
		all = append(all, cloud.Group{ID: g.id, Max: target + g.room, Target: target, Instances: p.machinesOf(g),
			Options: g.optionsOver(defaults), Priority: &g.pool.Spec.Weight, Budgets: g.pool.budgets,
			Problem: cmp.Or(g.pool.problem, g.problem)})
	}
	slices.SortFunc(all, func(a, b cloud.Group) int { return strings.Compare(a.ID, b.ID) })
	if len(all) > cloud.MaxGroups {
		return nil, fmt.Errorf("the NodePools have %d node groups, the limit is %d: lower --karpenter-max-groups",
			len(all), cloud.MaxGroups)
	}
	return all, nil
}

// TemplateNode returns a node as a group would make it.
func (p *Provider) TemplateNode(_ context.Context, id string) (*v1.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.state.groups[id]
	if g == nil {
		return nil, fmt.Errorf("there is no node group %s", id)
	}
	return g.template(), nil
}

// NodePrice returns nil: price lists know the instance types.
func (p *Provider) NodePrice(context.Context, *v1.Node) (*float64, error) { return nil, nil }

// Deleting returns the machines of a group that are being deleted.
func (p *Provider) Deleting(ctx context.Context, id string) (map[string]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	deleting := map[string]bool{}
	if g := p.state.groups[id]; g != nil {
		for _, c := range g.claims {
			if c.DeletionTimestamp != nil {
				deleting[c.id()] = true
			}
		}
	}
	return deleting, nil
}
