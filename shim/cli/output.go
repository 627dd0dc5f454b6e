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
	formWide  = "wide"
	formName  = "name"
	// formCustom is followed by the columns.
	formCustom = "custom-columns="
)

// formsAnnotation holds the values of a flag that is chosen from a few.
const formsAnnotation = "loadline_values"

// outputFlag holds -o with the forms that a command has beside those of every command, --no-headers and --sort-by.
type outputFlag struct {
	form      string
	forms     []string
	noHeaders bool
	sortBy    string
	// nameless says that rows of the answer have no names, and ordered that its page has an order of its own.
	nameless, ordered bool
}

var errNameless = usagef("-o name: the rows of this answer have no names")

// everyForm are the forms of every command; those that end in = take an argument, as kubectl's do.
var everyForm = []string{formWide, formName, "jsonpath=", "jsonpath-file=", "jsonpath-as-json=", "go-template=",
	"go-template-file=", formCustom}

func addOutputFlag(flags *pflag.FlagSet, o *outputFlag, forms ...string) {
	o.forms = append(slices.Clone(forms), everyForm...)
	flags.StringVarP(&o.form, "output", "o", formTable, "form of the output: "+strings.Join(o.forms, ", "))
	flags.Lookup("output").Annotations = map[string][]string{formsAnnotation: o.forms}
	flags.BoolVar(&o.noHeaders, "no-headers", false, "tables have no line of headers")
	if flags.Lookup("sort-by") == nil {
		flags.StringVar(&o.sortBy, "sort-by", "", "sort rows by this path of theirs in -o json, such as .node")
	}
}

// check refuses what the answer would not have, before anybody is asked.
func (o *outputFlag) check() error {
	switch {
	case o.nameless && o.form == formName:
		return errNameless
	case o.ordered && o.form == formHTML && o.sortBy != "":
		return usagef("--sort-by: not with -o html, whose page of this answer has an order of its own")
	}
	for _, form := range o.forms {
		if o.form == form && !strings.HasSuffix(form, "=") ||
			strings.HasSuffix(form, "=") && strings.HasPrefix(o.form, form) && len(o.form) > len(form) {
			return nil
		}
	}
	return usagef("-o %q: must be one of %s", o.form, strings.Join(o.forms, ", "))
}

// checkOrdered is check for an answer whose page has an order of its own.
func (o *outputFlag) checkOrdered() error {
	o.ordered = true
	return o.check()
}

// answer is the outcome of a command in all its forms.
type answer struct {
	data any // for json and yaml, and what tables show
	// verdict is the answer in one line, lines are what holds beside it.
	title, verdict string
	tables         []table
	lines          []string
	parts          []answer // follow below, each with its verdict, tables and lines
	// at is the key in the data that the tables of a part look below; empty: that of the whole.
	at    string
	cards []report.Card           // what a page draws in place of the tables
	page  func(w io.Writer) error // for html; nil: verdict, lines and tables
	// leftOut is what the answer was made without, which the data tell too; nil: the command does not tell.
	leftOut *leftout.List
}

// allTables are those of an answer and of its parts, with the lists that they look at named in full.
func (a answer) allTables() []table {
	all := slices.Clone(a.tables)
	for _, part := range a.parts {
		all = append(all, part.allTables()...)
	}
	if a.at != "" {
		for i := range all {
			all[i].rows = a.at + "." + all[i].rows
		}
	}
	return all
}

func (o *outputFlag) write(w io.Writer, a answer) error {
	if o.noHeaders {
		w = texttable.WithoutHeaders(w)
	}
	if o.form == formHTML && a.page != nil {
		return a.page(w)
	}
	if a.leftOut != nil {
		a.data = withLeftOut{a.data, a.leftOut}
	}
	d, err := documentOf(a.data)
	if err != nil {
		return err
	}
	if o.sortBy != "" {
		if err := d.sortBy(o.sortBy, a.allTables()); err != nil {
			return err
		}
		a.data = d
	}
	switch {
	case o.form == formJSON || o.form == formYAML:
		return writeDocument(w, a.data, o.form == formYAML)
	case o.form == formHTML:
		return renderPage(w, a, d)
	case o.form == formName:
		return renderNames(w, a, d)
	case strings.HasPrefix(o.form, formCustom):
		return o.renderCustom(w, a, d)
	case o.form != formTable && o.form != formWide:
		return o.renderTemplate(w, d)
	default:
		err = o.renderTables(w, a, d)
	}
	if err != nil {
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
