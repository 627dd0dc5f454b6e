package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/leftout"
	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

// Forms of output.
const (
	formTable = "table"
	formJSON  = "json"
	formYAML  = "yaml"
	formHTML  = "html"
)

// formsAnnotation holds the values of a flag that is chosen from a few.
const formsAnnotation = "loadline_values"

// outputFlag is -o with the forms that a command has.
type outputFlag struct {
	form  string
	forms []string
}

func addOutputFlag(flags *pflag.FlagSet, o *outputFlag, forms ...string) {
	o.forms = forms
	flags.StringVarP(&o.form, "output", "o", formTable, "form of the output: "+strings.Join(forms, ", "))
	flags.Lookup("output").Annotations = map[string][]string{formsAnnotation: forms}
}

func (o *outputFlag) check() error {
	if !slices.Contains(o.forms, o.form) {
		return usagef("-o %q: must be one of %s", o.form, strings.Join(o.forms, ", "))
	}
	return nil
}

// answer is the outcome of a command in all its forms.
type answer struct {
	data  any                     // for json and yaml
	table func(w io.Writer) error // for table
	page  func(w io.Writer) error // for html; nil where there is none
	// leftOut is what the answer was made without; nil: the command does not tell.
	leftOut *leftout.List
}

func (o *outputFlag) write(w io.Writer, a answer) error {
	switch o.form {
	case formJSON, formYAML:
		return writeDocument(w, a.data, o.form == formYAML)
	case formHTML:
		return a.page(w)
	}
	if err := a.table(w); err != nil {
		return err
	}
	return writeLeftOut(w, a.leftOut)
}

// writeDocument writes JSON or YAML. Names steer no terminal in it and hide no text. YAML has no form for some of the
// characters that could, or takes none of them: where there are such it is JSON, which is YAML as well.
func writeDocument(w io.Writer, of any, asYAML bool) error {
	data, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		return err
	}
	if escaped := texttable.EscapeJSON(data); !asYAML || len(escaped) != len(data) {
		_, err = fmt.Fprintf(w, "%s\n", escaped)
		return err
	}
	if data, err = yaml.JSONToYAML(data); err == nil {
		_, err = w.Write(data)
	}
	return err
}

// sortedResources returns the names of resources in the order in which all commands show them.
func sortedResources(amounts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(amounts), report.CompareResources)
}
