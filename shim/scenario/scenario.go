// Package scenario reads files of kind Scenario, which say what `loadline simulate` simulates.
package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
)

// What a file states.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "Scenario"
)

// file is the document around the scenario.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// Parse reads one document and returns its name and the scenario. Errors name the field.
func Parse(document []byte) (name string, scenario *loadlinev1.Scenario, err error) {
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return "", nil, err
	}
	var read file
	unknown, err := kjson.UnmarshalStrict(content, &read)
	if err == nil {
		err = errors.Join(unknown...)
	}
	if err != nil {
		return "", nil, err
	}
	if read.APIVersion != APIVersion || read.Kind != Kind {
		return "", nil, fmt.Errorf("apiVersion %q, kind %q: must be %s and %s",
			read.APIVersion, read.Kind, APIVersion, Kind)
	}
	if len(read.Spec) == 0 {
		return "", nil, errors.New("spec: is missing")
	}
	scenario = &loadlinev1.Scenario{}
	if err := protojson.Unmarshal(read.Spec, scenario); err != nil {
		// Behind the library's prefix is a space that differs from build to build, and a position in text that nobody
		// wrote.
		text := strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:"))
		if _, rest, found := strings.Cut(text, "): "); found && strings.HasPrefix(text, "(line ") {
			text = rest
		}
		return "", nil, fmt.Errorf("spec: %s", strings.TrimSpace(strings.ReplaceAll(text, "\u00a0", " ")))
	}
	return read.Metadata.Name, scenario, nil
}
