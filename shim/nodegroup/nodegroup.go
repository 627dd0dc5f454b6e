// Package nodegroup reads files of node groups: groups of nodes that are made from one template and scale as one.
//
// A file holds YAML or JSON documents of kind NodeGroup, or v1 Lists of them, or it is Escalator's own node group file;
// see Parse.
package nodegroup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/dump"
	"loadline.dev/shim/dump/mergekeys"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
)

// The version and the kind that a document of ours states.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "NodeGroup"
)

// Bounds on a file.
const (
	// MaxBytes is the most that is read of a file.
	MaxBytes = 16 << 20
	// MaxGroups is the most groups of a file.
	MaxGroups = 10_000
)

// NodeGroup is a group of nodes that are made from one template and scale as one.
type NodeGroup struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata names the group.
	Metadata Metadata `json:"metadata"`
	// Spec says what the group is.
	Spec Spec `json:"spec"`
}

// Metadata names a node group.
type Metadata struct {
	// Name is unique in a file. Required.
	Name string `json:"name"`
}

// Name returns the name of the group.
func (g *NodeGroup) Name() string { return g.Metadata.Name }

// CloudGroup returns the id of the group at the cloud provider.
func (g *NodeGroup) CloudGroup() string {
	if g.Spec.Size != nil && g.Spec.Size.CloudGroup != "" {
		return g.Spec.Size.CloudGroup
	}
	return g.Name()
}

// Spec says what a node group is and how far it may grow.
type Spec struct {
	// NodeSelector are the labels that the nodes of the group carry, all of them. Default: the labels of the template,
	// without the hostname.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Min is the least number of nodes. Default: 0.
	Min int32 `json:"min"`
	// Max is the largest number of nodes; at least min. Default: 0.
	Max int32 `json:"max"`
	// Target is how many nodes are asked of the cloud. Default: as many as there are.
	Target *int32 `json:"target,omitempty"`
	// Template is a node as the group makes them: labels, taints, capacity and allocatable. Default: none.
	Template *v1.Node `json:"template,omitempty"`
	// InstanceType names the machine in a price catalogue. Default: that of the template's label
	// node.kubernetes.io/instance-type.
	InstanceType string `json:"instanceType,omitempty"`
	// Price is what one node costs, in US dollars per hour. Default: that of the instance type.
	Price *float64 `json:"price,omitempty"`
	// Size says when the group grows and shrinks. Default: none; `loadline size` leaves the group alone.
	Size *Size `json:"size,omitempty"`
	// ScaleDown says when nodes of the group may go. Default: as for all groups.
	ScaleDown *ScaleDown `json:"scaleDown,omitempty"`
}

// Has tells whether a node with these labels belongs to the group.
func (s *Spec) Has(labels map[string]string) bool {
	selector := s.NodeSelector
	if len(selector) == 0 && s.Template != nil {
		selector = s.Template.Labels
	}
	found := false
	for key, value := range selector {
		if key == v1.LabelHostname {
			continue
		}
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
		found = true
	}
	return found
}

// File is the content of a file of node groups.
type File struct {
	// Groups in the order of the file.
	Groups []NodeGroup
	// Warnings are about what was read and plays no part, each in a line.
	Warnings []string
}

// Ignored says in a line each which options of groups that are sized play no part. It is not among the warnings, since
// a mode may be chosen after the file was read.
func (f *File) Ignored() []string {
	var lines []string
	for i := range f.Groups {
		if size := f.Groups[i].Spec.Size; size != nil {
			if line := size.Ignored(); line != "" {
				lines = append(lines, fmt.Sprintf("node group %q: %s", f.Groups[i].Name(), line))
			}
		}
	}
	return lines
}

// Load reads a file of node groups.
func Load(name string) (File, error) {
	data, err := unwrap.File(name, MaxBytes)
	if err != nil {
		return File{}, err
	}
	file, err := Parse(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}

// Parse reads node groups from YAML or JSON: documents of kind NodeGroup or v1 Lists of such, of which an unknown field
// is an error, or one Escalator file, which has `node_groups` at the top and of which an unknown key is a warning, as
// Escalator itself reads past it.
func Parse(data []byte) (File, error) {
	if len(data) > MaxBytes {
		return File{}, fmt.Errorf("is larger than the limit of %d MiB", MaxBytes>>20)
	}
	documents, err := split(data)
	if err != nil {
		return File{}, err
	}
	var file File
	for _, document := range documents {
		var part File
		if isEscalator(document.text) {
			if len(documents) > 1 {
				return File{}, errors.New("node_groups: an Escalator file holds nothing else")
			}
			part, err = parseEscalator(document.text)
		} else {
			part, err = parseDocument(document.text)
		}
		if err != nil {
			if len(documents) > 1 {
				err = fmt.Errorf("%s: %w", document.where, err)
			}
			return File{}, err
		}
		file.Groups = append(file.Groups, part.Groups...)
		file.Warnings = append(file.Warnings, part.Warnings...)
	}
	return file, checkAll(file.Groups)
}

// document is JSON, and where in a file it is.
type document struct {
	where string
	text  []byte
}

// split returns the documents that hold something. The items of a v1 List are documents.
func split(data []byte) ([]document, error) {
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents []document
	for number := 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := mergekeys.ToJSON(text, MaxBytes) // DecodeStrict refuses the override of a merged key
		if err != nil {
			return nil, err
		}
		if string(asJSON) == "null" {
			continue
		}
		where := fmt.Sprint("document ", number)
		number++
		items, isList := itemsOf(asJSON)
		if !isList {
			documents = append(documents, document{where, asJSON})
		}
		for i, item := range items {
			documents = append(documents, document{fmt.Sprintf("%s item %d", where, i), item})
		}
	}
}

// itemsOf returns the items of a v1 List, as kubectl prints several objects.
func itemsOf(text []byte) (items []json.RawMessage, isList bool) {
	var list struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	err := json.Unmarshal(text, &list)
	return list.Items, err == nil && list.APIVersion == "v1" && list.Kind == "List"
}

func parseDocument(document []byte) (File, error) {
	var head struct {
		metav1.TypeMeta
		Metadata struct {
			Name any `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return File{}, err
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		return File{}, fmt.Errorf("apiVersion %q, kind %q: must be %s, %s; an Escalator file has node_groups at "+
			"the top", head.APIVersion, head.Kind, APIVersion, Kind)
	}
	var group NodeGroup
	if err := policy.DecodeStrict(document, &group); err != nil {
		if path, value, cause := dump.Locate(document, &group); isOfAmount(cause) {
			err = fmt.Errorf("%s: %s: %w", path, value, cause) // the decoder names neither
		}
		return File{}, fmt.Errorf("node group %q: %w", fmt.Sprint(head.Metadata.Name), err)
	}
	if err := group.check(); err != nil {
		return File{}, fmt.Errorf("node group %q: %w", group.Name(), err)
	}
	return File{Groups: []NodeGroup{group}}, nil
}

func isOfAmount(err error) bool {
	return errors.Is(err, resource.ErrFormatWrong) || errors.Is(err, resource.ErrNumeric) ||
		errors.Is(err, resource.ErrSuffix)
}

// checkAll checks what one group cannot know.
func checkAll(groups []NodeGroup) error {
	if len(groups) == 0 {
		return errors.New("holds no node group")
	}
	if len(groups) > MaxGroups {
		return fmt.Errorf("holds %d node groups, the limit is %d", len(groups), MaxGroups)
	}
	for i := range groups {
		same := func(other NodeGroup) bool { return other.Name() == groups[i].Name() }
		if slices.ContainsFunc(groups[:i], same) {
			return fmt.Errorf("node group %q: name: twice in the file", groups[i].Name())
		}
	}
	return nil
}
