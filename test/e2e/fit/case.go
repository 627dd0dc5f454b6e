package fit

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// MoveKind is one of the moves that a question may carry.
type MoveKind string

// All moves.
const (
	PlacePod   MoveKind = "place"
	RemovePod  MoveKind = "remove"
	AddNode    MoveKind = "add node"
	RemoveNode MoveKind = "remove node"
	GhostNode  MoveKind = "remove node, leaving a ghost"
	Fork       MoveKind = "fork"
	Commit     MoveKind = "commit"
	Revert     MoveKind = "revert"
)

// Move is one supposed change of a cluster.
type Move struct {
	Kind MoveKind
	Pod  *v1.Pod  // PlacePod, RemovePod; its nodeName says where
	Node *v1.Node // AddNode, RemoveNode, GhostNode
}

func (m Move) String() string {
	switch {
	case m.Pod != nil:
		return fmt.Sprintf("%s %s on %s", m.Kind, m.Pod.Name, m.Pod.Spec.NodeName)
	case m.Node != nil:
		return fmt.Sprintf("%s %s", m.Kind, m.Node.Name)
	}
	return string(m.Kind)
}

// Case is a cluster and what is supposed to happen before the question.
type Case struct {
	Cluster *Cluster
	Moves   []Move
}

// After returns the cluster that the moves lead to; false if they cannot be made.
func (c *Case) After() (*Cluster, bool) {
	at := c.Cluster
	var levels []*Cluster
	for _, m := range c.Moves {
		switch m.Kind {
		case Fork:
			levels = append(levels, at)
			continue
		case Commit, Revert:
			if len(levels) == 0 {
				return nil, false
			}
			if m.Kind == Revert {
				at = levels[len(levels)-1]
			}
			levels = levels[:len(levels)-1]
			continue
		}
		next := at.Copy()
		if !next.apply(m) {
			return nil, false
		}
		at = next
	}
	return at, true
}

func (c *Cluster) apply(m Move) bool {
	switch m.Kind {
	case PlacePod:
		if !c.hosts(m.Pod.Spec.NodeName) {
			return false
		}
		c.Pods = append(c.Pods, m.Pod)
	case RemovePod:
		i := slices.IndexFunc(c.Pods, func(p *v1.Pod) bool { return p.UID == m.Pod.UID })
		if i < 0 || !c.hosts(m.Pod.Spec.NodeName) {
			return false
		}
		c.Pods = slices.Delete(c.Pods, i, i+1)
	case AddNode:
		c.Nodes = append(c.Nodes, m.Node)
	case GhostNode:
		if !c.hosts(m.Node.Name) {
			return false
		}
		c.Ghosts = append(c.Ghosts, m.Node.Name)
	case RemoveNode:
		if !c.hosts(m.Node.Name) {
			return false
		}
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n *v1.Node) bool { return n.Name == m.Node.Name })
		c.Pods = slices.DeleteFunc(c.Pods, func(p *v1.Pod) bool { return p.Spec.NodeName == m.Node.Name })
	}
	return true
}

// hosts says whether pods may be put on a node.
func (c *Cluster) hosts(name string) bool {
	return slices.ContainsFunc(c.Nodes, func(n *v1.Node) bool { return n.Name == name }) &&
		!slices.Contains(c.Ghosts, name)
}

// GenerateCase returns the cluster of a seed with random moves.
func GenerateCase(seed uint64) *Case {
	g := generate(seed)
	c := &Case{Cluster: g.cluster}
	for range g.IntN(13) {
		if m, ok := g.move(c); ok {
			c.Moves = append(c.Moves, m)
		}
	}
	return c
}

// move returns a move that can be made after those of the case.
func (g *generator) move(c *Case) (Move, bool) {
	at, _ := c.After()
	var hosts []*v1.Node
	for _, node := range at.Nodes {
		if at.hosts(node.Name) {
			hosts = append(hosts, node)
		}
	}
	var pods []*v1.Pod
	for _, pod := range at.Pods {
		if at.hosts(pod.Spec.NodeName) && !finished(pod) { // a finished pod has left its node already
			pods = append(pods, pod)
		}
	}
	kind := pick(g, PlacePod, PlacePod, PlacePod, RemovePod, RemovePod, AddNode, RemoveNode, GhostNode, Fork, Fork,
		Commit, Revert)
	switch kind {
	case PlacePod:
		if len(hosts) == 0 {
			return Move{}, false
		}
		pod := g.boundPod()
		pod.Spec.NodeName = pick(g, hosts...).Name
		return Move{Kind: kind, Pod: pod}, true
	case RemovePod:
		if len(pods) == 0 {
			return Move{}, false
		}
		return Move{Kind: kind, Pod: pick(g, pods...)}, true
	case AddNode:
		return Move{Kind: kind, Node: g.node(g.name("extra"))}, true
	case RemoveNode, GhostNode:
		if len(hosts) < 2 {
			return Move{}, false
		}
		return Move{Kind: kind, Node: pick(g, hosts...)}, true
	case Commit, Revert:
		if open(c.Moves) == 0 {
			return Move{}, false
		}
	}
	return Move{Kind: kind}, true
}

// open returns how many forks are neither committed nor reverted.
func open(moves []Move) int {
	n := 0
	for _, m := range moves {
		switch m.Kind {
		case Fork:
			n++
		case Commit, Revert:
			n--
		}
	}
	return n
}
