package watch

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// keepAnnotation is one by which the engine keeps a node in every way in which a node may go; its value says why.
const keepAnnotation = "atlassian.com/no-delete"

// machines are the nodes by the machine that they say they are, that is by provider id.
//
// Several nodes may state one id: a machine that registers again under another name leaves its old node behind, and one
// whose owner means harm may state the id of another one. Nobody knows which of the nodes the machine is: to delete the
// one that looks empty would delete the machine on which the pods of the other one run. The engine keeps all of them.
type machines struct {
	nodes map[string]map[string]bool // names by provider id
	// shared are the ids that several nodes state. Safe for concurrent use.
	shared sync.Map
}

// set takes note of the id that a node states now; empty: none. It returns the names of nodes about which it has
// changed whether they share theirs.
func (m *machines) set(name, before, now string) (others []string) {
	if before == now {
		return nil
	}
	for _, id := range []string{before, now} {
		if id == "" {
			continue
		}
		if m.nodes[id] == nil {
			m.nodes[id] = map[string]bool{}
		}
		if id == now {
			m.nodes[id][name] = true
		} else {
			delete(m.nodes[id], name)
		}
		_, was := m.shared.Load(id)
		if is := len(m.nodes[id]) > 1; is && !was {
			m.shared.Store(id, true)
		} else if !is && was {
			m.shared.Delete(id)
		} else {
			if len(m.nodes[id]) == 0 {
				delete(m.nodes, id)
			}
			continue
		}
		for other := range m.nodes[id] {
			if other != name {
				others = append(others, other)
			}
		}
	}
	return others
}

// SharesMachine says whether another node states the provider id of a node. Safe for concurrent use.
func (c *Cluster) SharesMachine(node *v1.Node) bool {
	_, shared := c.machines.shared.Load(node.Spec.ProviderID)
	return shared
}

// HasNode says whether a node states a provider id.
func (c *Cluster) HasNode(providerID string) bool { return len(c.machines.nodes[providerID]) > 0 }

// SharedMachines says which nodes state the same provider id, a sentence for each.
func (c *Cluster) SharedMachines() (texts []string) {
	for id, names := range c.machines.nodes {
		if len(names) > 1 {
			texts = append(texts, fmt.Sprintf("%d nodes state the provider id %q, %q among them: all of them are kept, "+
				"since nobody knows which of them the machine is; delete the nodes that are not", len(names), id,
				slices.Sorted(maps.Keys(names))[:2]))
		}
	}
	slices.Sort(texts)
	return texts
}

// show has the engine see a node. One that shares its machine is kept.
func (c *Cluster) show(node *v1.Node) {
	if c.SharesMachine(node) {
		kept := *node
		kept.Annotations = maps.Clone(node.Annotations)
		if kept.Annotations == nil {
			kept.Annotations = map[string]string{}
		}
		kept.Annotations[keepAnnotation] = "another node states its provider id"
		node = &kept
	}
	c.View.SetNode(node)
}
