// Package mergekeys reads YAML with anchors, aliases and merge keys ("<<") as YAML 1.1 defines them.
//
// The YAML library of Kubernetes has two faults here: its strict form takes the override of a merged key for a key that
// occurs twice, and its other form lets a merge behind a key override that key.
package mergekeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

const (
	// aliasedCost is counted for each value that an alias or a merge repeats, beside its text: what a value takes in
	// memory at least.
	aliasedCost = 32
	// mostNested bounds how deep values lie within values. Aliases can make it far deeper than the text is.
	mostNested = 1000
)

// ErrTwice is about a key that a mapping has twice.
var ErrTwice = errors.New("a key occurs twice")

// ToJSON turns one YAML document into JSON. The keys of a mapping override those that it merges, and the earlier of two
// merged mappings overrides the later. A key that occurs twice is an error that wraps ErrTwice. With what its aliases
// repeat, the document may have at most `most` bytes.
func ToJSON(document []byte, most int) ([]byte, error) {
	if !mayMerge(document) {
		out, err := yaml.YAMLToJSONStrict(document)
		if err != nil && strings.Contains(err.Error(), "already set in map") {
			return nil, fmt.Errorf("%w: %w", ErrTwice, err)
		}
		return out, err
	}
	var root yamlnode.Node
	if err := yamlnode.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return []byte("null"), nil
	}
	e := expander{most: most, left: most, open: map[*yamlnode.Node]bool{}}
	value, err := e.value(root.Content[0])
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

var mergeKey = regexp.MustCompile(`<<['"]?\s*:`)

// mayMerge returns whether a document may have an anchor or a merge key. Without an anchor there is no alias.
func mayMerge(document []byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(document[at:], '&')
		if next < 0 {
			return mergeKey.Match(document)
		}
		at += next
		before, behind := byte('\n'), byte('\n')
		if at > 0 {
			before = document[at-1]
		}
		if at+1 < len(document) {
			behind = document[at+1]
		}
		if strings.IndexByte(" \t\r\n[{,:-?!", before) >= 0 && strings.IndexByte(" \t\r\n&", behind) < 0 {
			return true
		}
	}
}

// expander turns nodes into values and counts what aliases repeat.
type expander struct {
	most, left int
	aliased    int // aliases and merges that are being read
	line       int // of the outermost of these
	depth      int
	open       map[*yamlnode.Node]bool // mappings and sequences that are being read
}

// spend counts one value.
func (e *expander) spend(n *yamlnode.Node) error {
	e.left -= 1 + len(n.Value)
	line := n.Line
	if e.aliased > 0 {
		e.left -= aliasedCost
		line = e.line
	}
	if e.left < 0 {
		return fmt.Errorf("line %d: with what its aliases repeat, the document is larger than the limit of %d MiB", line,
			e.most>>20)
	}
	return nil
}

func (e *expander) value(n *yamlnode.Node) (any, error) {
	if err := e.spend(n); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yamlnode.AliasNode:
		defer e.repeat(n.Line)()
		return e.value(n.Alias)
	case yamlnode.ScalarNode:
		return scalar(n)
	}
	leave, err := e.enter(n)
	if err != nil {
		return nil, err
	}
	defer leave()
	if n.Kind == yamlnode.MappingNode {
		return e.mapping(n)
	}
	out := make([]any, 0, len(n.Content))
	for _, child := range n.Content {
		value, err := e.value(child)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// repeat notes that an alias or a merge on a line is read, until the result is called.
func (e *expander) repeat(line int) (end func()) {
	if e.aliased == 0 {
		e.line = line
	}
	e.aliased++
	return func() { e.aliased-- }
}

func (e *expander) enter(n *yamlnode.Node) (leave func(), err error) {
	if e.open[n] {
		return nil, fmt.Errorf("line %d: the anchor %q contains itself", n.Line, n.Anchor)
	}
	if e.depth == mostNested {
		return nil, fmt.Errorf("line %d: values lie within values more than %d deep", n.Line, mostNested)
	}
	e.depth++
	e.open[n] = true
	return func() { e.depth--; delete(e.open, n) }, nil
}

// mapping reads the keys of a mapping first and then what it merges, as its own keys come first.
func (e *expander) mapping(n *yamlnode.Node) (map[string]any, error) {
	out := make(map[string]any, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	var merged *yamlnode.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, name := n.Content[i], n.Content[i].Value
		isMerge := key.Kind == yamlnode.ScalarNode && key.ShortTag() == "!!merge"
		if !isMerge {
			var err error
			if name, err = e.key(key); err != nil {
				return nil, err
			}
		}
		if line, twice := lines[name]; twice {
			return nil, fmt.Errorf("%w: %q on line %d and on line %d", ErrTwice, name, line, key.Line)
		}
		lines[name] = key.Line
		if isMerge {
			merged = n.Content[i+1]
			continue
		}
		value, err := e.value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	if merged == nil {
		return out, nil
	}
	return out, e.merge(out, merged)
}

// merge adds what a mapping merges: one mapping or several.
func (e *expander) merge(into map[string]any, from *yamlnode.Node) error {
	defer e.repeat(from.Line)()
	value, err := e.value(from)
	if err != nil {
		return err
	}
	several, is := value.([]any)
	if !is {
		several = []any{value}
	}
	for _, one := range several {
		fields, is := one.(map[string]any)
		if !is {
			return fmt.Errorf("line %d: << takes a mapping or several", from.Line)
		}
		for key, value := range fields {
			if _, own := into[key]; !own {
				into[key] = value
			}
		}
	}
	return nil
}

// key returns a key as text: JSON has no other keys.
func (e *expander) key(n *yamlnode.Node) (string, error) {
	value, err := e.value(n)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number, bool:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("line %d: a key has to be a text", n.Line)
}

// scalar returns a text, json.Number, bool or nil, by the rules of the YAML library of Kubernetes.
func scalar(n *yamlnode.Node) (any, error) {
	switch {
	case n.Style&yamlnode.TaggedStyle != 0:
		var value any
		alone := yamlnode.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
		if err := alone.Decode(&value); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return viaJSON(json.Marshal(value))
	case n.Style&^yamlnode.FlowStyle != 0 || isText(n.Value):
		return n.Value, nil
	}
	return viaJSON(yaml.YAMLToJSON([]byte(n.Value)))
}

// isText returns whether a plain scalar is a text for sure: it starts with a letter that no number, boolean or null
// starts with. A line break or a comment cannot be in one that is not a text.
func isText(value string) bool {
	switch value {
	case "":
		return false
	case "...", "---": // alone, these would be marks between documents
		return true
	}
	letter := value[0] >= 'a' && value[0] <= 'z' || value[0] >= 'A' && value[0] <= 'Z'
	return letter && strings.IndexByte("yYnNtTfFoO", value[0]) < 0 || strings.ContainsAny(value, " \t\n:#,")
}

func viaJSON(raw []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err = decoder.Decode(&value)
	return value, err
}
