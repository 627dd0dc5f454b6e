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
)

// Forms of output.
const (
	formTable = "table"
	formJSON  = "json"
	formYAML  = "yaml"
	formHTML  = "html"
)

// outputFlag is -o with the forms that a command has.
type outputFlag struct {
	form  string
	forms []string
}

func addOutputFlag(flags *pflag.FlagSet, o *outputFlag, forms ...string) {
	o.forms = forms
	flags.StringVarP(&o.form, "output", "o", formTable, "form of the output: "+strings.Join(forms, ", "))
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
	case formJSON:
		data, err := json.MarshalIndent(a.data, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", data)
		return err
	case formYAML:
		data, err := yaml.Marshal(a.data)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case formHTML:
		return a.page(w)
	}
	if err := a.table(w); err != nil {
		return err
	}
	return writeLeftOut(w, a.leftOut)
}

// sortedResources returns the names of resources in the order in which all commands show them.
func sortedResources(amounts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(amounts), report.CompareResources)
}
