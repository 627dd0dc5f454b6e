package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/test/e2e/docs"
	"loadline.dev/test/e2e/harness"
)

// page plays the commands of docs/platforms.md, as far as they are about the chart and manifests/.
type page struct {
	*testing.T
	values map[string]values // of the last command, by release
	modes  []string          // of the autoscaler after each command that installs it
	files  int               // that are applied
}

// helm renders what a command installs.
func (p *page) helm(words []string) {
	p.Helper()
	release, namespace, v := "", "", values{}
	for i, word := range words {
		switch {
		case word == "charts/loadline":
			release = words[i-1]
		case word == "-n":
			namespace = words[i+1]
		}
	}
	if slices.Contains(words, "--reuse-values") {
		if p.values[release] == nil {
			p.Errorf("%v: release %q is not installed by then", words, release)
			return
		}
		v = p.values[release]
	}
	for i, word := range words {
		if word == "--set" {
			if err := strvals.ParseInto(strings.Trim(words[i+1], "'"), v); err != nil {
				p.Errorf("%v: %v", words, err)
			}
		}
	}
	p.values[release] = v
	objects, err := render(load(p.T), namespace, v)
	if err != nil || release == "" || namespace == "" {
		p.Errorf("%v: release %q in namespace %q: %v", words, release, namespace, err)
		return
	}
	config, err := find(objects, "ConfigMap", "loadline-autoscaler")
	if err != nil {
		return // it installs something else
	}
	text, _, _ := unstructured.NestedString(config.Object, "data", "config.yaml")
	mode := "observe"
	if strings.Contains(text, "mode: act\n") {
		mode = "act"
	}
	for _, kind := range []string{"karpenter", "cluster-api"} {
		if strings.Contains(text, "kind: "+kind+"\n") {
			mode += " " + kind
			_, err := find(objects, "ClusterRole", "loadline-autoscaler:"+kind)
			_, acts := find(objects, "ClusterRole", "loadline-autoscaler:act-"+kind)
			if err != nil || strings.HasPrefix(mode, "act") != (acts == nil) {
				p.Errorf("%v: rights for %s: %v, %v", words, mode, err, acts)
			}
		}
	}
	if strings.Contains(text, "kind: none\n") {
		mode += " none"
	}
	p.modes = append(p.modes, mode)
}

// apply looks whether there are objects in what a command applies.
func (p *page) apply(words []string) {
	p.Helper()
	for i, word := range words {
		if word != "-f" || words[i+1] == "-" {
			continue
		}
		folder, isFolder := strings.CutPrefix(words[i+1], "manifests/")
		if strings.HasSuffix(folder, ".yaml") {
			folder = filepath.Dir(folder)
		}
		objects, err := harness.ManifestObjects(folder)
		if err != nil || len(objects) == 0 || !isFolder {
			p.Errorf("%v: %d objects, error %v", words, len(objects), err)
		}
		p.files++
	}
}

// The commands of docs/platforms.md install what the page says: each release renders with its values, machines of
// Karpenter first in mode observe and then in mode act, with the rights that each needs, and room without a provider.
// All that is applied is there.
func TestPlatformsPage(t *testing.T) {
	blocks, err := docs.Read("../../docs/platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{T: t, values: map[string]values{}}
	for _, block := range blocks {
		p.values = map[string]values{} // each block is about another cluster
		for _, command := range block.Commands {
			text, _, _ := strings.Cut(strings.ReplaceAll(command.Text, "\\\n", " "), "  #")
			words := strings.Fields(text)
			switch {
			case words[0] == "helm":
				p.helm(words)
			case len(words) > 1 && words[0] == "kubectl" && words[1] == "apply":
				p.apply(words)
			}
		}
	}
	const want = "[observe karpenter act karpenter observe karpenter act none]"
	if got := fmt.Sprint(p.modes); got != want || p.files < 7 {
		t.Errorf("modes %v, want %v; %d files", got, want, p.files)
	}
}

// Each platform has five commands, in the first block of its section.
func TestPlatformsHaveFiveCommands(t *testing.T) {
	for _, section := range []string{"Karpenter", "Cluster API", "EKS", "AKS", "GKE", "OpenShift",
		"Hetzner and the like", "k3s"} {
		blocks, err := docs.Section("../../docs/platforms.md", "## "+section)
		if err != nil || len(blocks) == 0 {
			t.Errorf("%s: %d blocks, error %v", section, len(blocks), err)
			continue
		}
		if got := len(blocks[0].Commands); got != 5 {
			t.Errorf("%s: %d commands, want 5", section, got)
		}
	}
}
