// Package scenario reads files of kind Scenario, which say what `loadline simulate` simulates.
package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
)

// The version and the kind that a file states.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "Scenario"
)

// mostBytes bounds a scenario, and a trace of it. Chosen: far more than the trace of a year has.
const mostBytes = 1 << 30

// file is the document around the scenario.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// Load reads a file of one document, and the traces and profiles that it names, whose paths are relative to it.
func Load(path string) (name string, scenario *loadlinev1.Scenario, err error) {
	content, err := unwrap.File(path, mostBytes)
	if err != nil {
		return "", nil, err
	}
	name, scenario, err = ParseWith(content, func(file string) ([]byte, error) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		return unwrap.File(file, mostBytes)
	})
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return name, scenario, nil
}

// parseHead reads a document, but for its spec.
func parseHead(document []byte) (read file, err error) {
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return read, err
	}
	if err := policy.OneDocument(document); err != nil {
		return read, err
	}
	unknown, err := kjson.UnmarshalStrict(content, &read)
	if err := cmp.Or(err, errors.Join(unknown...)); err != nil {
		return read, err
	}
	if read.APIVersion != APIVersion || read.Kind != Kind {
		return read, fmt.Errorf("apiVersion %q, kind %q: must be %s and %s", read.APIVersion, read.Kind, APIVersion, Kind)
	}
	if len(read.Spec) == 0 {
		return read, errors.New("spec: is missing")
	}
	return read, nil
}

// ParseWith reads one document, whose traces and profiles are read by a function, and returns its name and the
// scenario. Errors name the field.
func ParseWith(document []byte, readFile func(string) ([]byte, error)) (name string,
	scenario *loadlinev1.Scenario, err error) {
	read, err := parseHead(document)
	if err != nil {
		return "", nil, err
	}
	spec, traced, err := takeTraces(read.Spec, readFile)
	if err != nil {
		return "", nil, err
	}
	if spec, err = takeProfiles(spec, readFile); err != nil {
		return "", nil, err
	}
	spec, windows, err := takeWindows(spec)
	if err != nil {
		return "", nil, err
	}
	scenario = &loadlinev1.Scenario{}
	if err := protojson.Unmarshal(spec, scenario); err != nil {
		// Behind the library's prefix is a space that differs from build to build, and a position in text that nobody
		// wrote.
		text := strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:"))
		if _, rest, found := strings.Cut(text, "): "); found && strings.HasPrefix(text, "(line ") {
			text = rest
		}
		return "", nil, fmt.Errorf("spec: %s", strings.TrimSpace(strings.ReplaceAll(text, "\u00a0", " ")))
	}
	scenario.Workloads = append(scenario.Workloads, traced...)
	if windows != nil {
		scenario.Settings.Consolidation.Windows = windows
	}
	return read.Metadata.Name, scenario, nil
}
