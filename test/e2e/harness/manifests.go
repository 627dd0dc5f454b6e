package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The configurations of kube-scheduler in manifests/, one for each way to run Loadline.
const (
	SecondSchedulerConfig = "second-scheduler/30-config.yaml"
	ReplacementConfig     = "replacement/scheduler-config.yaml"
	ExtenderConfig        = "extender/host/scheduler-config.yaml"
)

// ManifestConfig returns a KubeSchedulerConfiguration of manifests/: a file that is one, or a ConfigMap that holds
// one.
func ManifestConfig(file string) ([]byte, error) {
	path, err := manifestPath(file)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(content, &object); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if object.Kind != "ConfigMap" {
		return content, nil
	}
	if len(object.Data) != 1 {
		return nil, fmt.Errorf("%s: the ConfigMap has %d entries, want 1", file, len(object.Data))
	}
	for _, config := range object.Data {
		content = []byte(config)
	}
	return content, nil
}

// Weights are those of our plugin and our extender in a scheduler's configuration.
type Weights struct{ Plugin, Extender int }

// ManifestWeights returns the weights in manifests/. Those of the plugin have to agree.
func ManifestWeights() (Weights, error) {
	var weights Weights
	for _, file := range []string{SecondSchedulerConfig, ReplacementConfig, ExtenderConfig} {
		content, err := ManifestConfig(file)
		if err != nil {
			return weights, err
		}
		var config struct {
			Profiles []struct {
				Plugins struct {
					MultiPoint struct {
						Enabled []struct {
							Name   string
							Weight int
						}
					}
				}
			}
			Extenders []struct{ Weight int }
		}
		if err := yaml.Unmarshal(content, &config); err != nil {
			return weights, fmt.Errorf("%s: %w", file, err)
		}
		for _, profile := range config.Profiles {
			for _, plugin := range profile.Plugins.MultiPoint.Enabled {
				if plugin.Name != PluginName {
					continue
				}
				if weights.Plugin != 0 && weights.Plugin != plugin.Weight {
					return weights, fmt.Errorf("%s: weight %d, elsewhere %d", file, plugin.Weight, weights.Plugin)
				}
				weights.Plugin = plugin.Weight
			}
		}
		for _, extender := range config.Extenders {
			weights.Extender = extender.Weight
		}
	}
	if weights.Plugin == 0 || weights.Extender == 0 {
		return weights, fmt.Errorf("manifests/ have weights %+v", weights)
	}
	return weights, nil
}

// ManifestObjects returns the objects of the YAML files in a folder of manifests/, in the order in which kubectl
// applies them: by file name, and not from folders below.
func ManifestObjects(folder string) ([]*unstructured.Unstructured, error) {
	path, err := manifestPath(folder)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := Objects(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// Objects reads the documents of a YAML text, each an object of the API.
func Objects(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func manifestPath(name string) (string, error) {
	root, err := Root()
	return filepath.Join(root, "manifests", name), err
}
