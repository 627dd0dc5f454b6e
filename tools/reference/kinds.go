package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scheduler"
	"loadline.dev/shim/sweep"
)

// kind is a kind of file that people write. Its page follows from the Go type that reads it: keys and types by
// reflection, what a key means by the comment of its field.
type kind struct {
	page, title string
	// intro says what reads the file, with a link to the guide.
	intro            string
	apiVersion, kind string
	head             string // whether a file has to state these two
	value            any
	// defaults is a value in which all is set that the code sets by itself; nil: it sets nothing.
	defaults func() (any, error)
}

// kinds are the kinds of files that have a page each.
var kinds = []kind{
	{page: "nodegroup", title: "NodeGroup",
		intro: "A group of nodes, for `--groups` and `--sized-node-groups`. [Sizing](../sizing.md) says how groups " +
			"with `spec.size` grow and shrink, and [ranking](../ranking.md) what decides between the others.",
		apiVersion: nodegroup.APIVersion, kind: nodegroup.Kind, head: "required", value: nodegroup.NodeGroup{}},
	{page: "rankpolicy", title: "RankPolicy",
		intro: "A way to rank node groups, for `--rank-policy`. Amounts of money are US dollars per hour. What a " +
			"preset sets is in [ranking](../ranking.md#rank-policy).",
		apiVersion: ranking.APIVersion, kind: ranking.Kind, head: "required", value: ranking.Policy{},
		defaults: func() (any, error) { return ranking.Default(), nil }},
	{page: "scheduler", title: "Arguments of the scheduler plugin",
		intro: "`args` of the plugin `" + scheduler.Name + "` in a KubeSchedulerConfiguration. What a preset sets is " +
			"in [scores](../scheduler.md#options-of-the-score); [the load line](../load-line.md) is a filter.",
		apiVersion: "loadline.dev/v1", kind: scheduler.Name + "Args", head: "may be left out",
		value:    scheduler.NodeResourcesLimitAwareArgs{},
		defaults: func() (any, error) { return scheduler.DefaultArgs(), nil }},
	{page: "sweep", title: "Sweep",
		intro:      "Which months `loadline sweep` simulates. [Sweeps](../sweeps.md) explains it, by an example.",
		apiVersion: sweep.APIVersion, kind: sweep.Kind, head: "required", value: sweep.File{},
		defaults: func() (any, error) {
			return sweep.ParseFile([]byte("apiVersion: " + sweep.APIVersion + "\nkind: " + sweep.Kind +
				"\nmetadata: {name: x}\nspec: {inputs: [{dump: x}]}"))
		}},
}

// keyRow is a key of a file.
type keyRow struct{ key, kind, value, text string }

// section is an object of a file: the top, or what lies at a key.
type section struct {
	path, text string
	rows       []keyRow
}

// write returns the page of a kind.
func (k *kind) write(comments comments) (string, error) {
	sections, err := k.sections(comments)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s# %s\n\n%s\n\nUnknown keys are errors.\n", notice, k.title, k.intro)
	for _, s := range sections {
		if s.path != "" {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.path, s.text)
		}
		out.WriteString("\n| Key | Type | Default | |\n|---|---|---|---|\n")
		if s.path == "" {
			fmt.Fprintf(&out, "| `apiVersion` | string | %[1]s | `%[2]s` |\n| `kind` | string | %[1]s | `%[3]s` |\n",
				k.head, k.apiVersion, k.kind)
		}
		for _, row := range s.rows {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", row.key, row.kind, cell(row.value), cell(row.text))
		}
	}
	return out.String(), nil
}

// sections returns the objects of a kind, each before those that lie in it.
func (k *kind) sections(comments comments) ([]section, error) {
	set := map[string]any{}
	if k.defaults != nil {
		value, err := k.defaults()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &set); err != nil {
			return nil, err
		}
	}
	w := walk{comments: comments}
	if err := w.object("", "", reflect.TypeOf(k.value), set); err != nil {
		return nil, fmt.Errorf("kind %s: %w", k.kind, err)
	}
	return w.sections, nil
}
