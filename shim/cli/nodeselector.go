package cli

import (
	"fmt"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// nodeSelector chooses by labels which nodes an answer lists. Questions are about all nodes, whatever it says. The zero
// value lists all of them.
type nodeSelector struct {
	text     string
	selector labels.Selector
	chosen   map[string]bool // by the name of each node
}

func (s *nodeSelector) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&s.text, "selector", "l", "", "list only nodes with these labels, as kubectl does, such as "+
		"pool=a,zone!=b; verdict and totals stay those of all nodes")
}

// given says whether nodes are chosen.
func (s *nodeSelector) given() bool { return s.text != "" }

// read reads the flag.
func (s *nodeSelector) read() (err error) {
	if !s.given() {
		return nil
	}
	if s.selector, err = labels.Parse(s.text); err != nil {
		return usagef("--selector %q: %v", s.text, err)
	}
	s.chosen = map[string]bool{}
	return nil
}

// see takes note of a node of the cluster.
func (s *nodeSelector) see(node *v1.Node) {
	if s != nil && s.chosen != nil {
		s.chosen[node.Name] = s.selector.Matches(labels.Set(node.Labels))
	}
}

// lists says whether an answer lists a node.
func (s *nodeSelector) lists(node string) bool { return s == nil || s.chosen == nil || s.chosen[node] }

// notes say that not all nodes are listed, in a sentence; none: all are.
func (s *nodeSelector) notes() []string {
	if s == nil || s.chosen == nil {
		return nil
	}
	count := 0
	for _, chosen := range s.chosen {
		if chosen {
			count++
		}
	}
	return []string{fmt.Sprintf("Selector %s: %d of %s %s listed; verdict and totals count all of them.", s.text, count,
		plural(len(s.chosen), "node"), agree(int64(count), "is", "are"))}
}

// listedRows returns those rows that are about nodes to list.
func listedRows[T any](s *nodeSelector, rows []T, node func(T) string) []T {
	if s == nil || s.chosen == nil {
		return rows
	}
	out := []T{}
	for _, r := range rows {
		if s.lists(node(r)) {
			out = append(out, r)
		}
	}
	return out
}
