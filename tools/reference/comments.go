package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// module is the Go module whose types have comments here; its folder is shim/.
const module = "loadline.dev/shim/"

// comments are those of struct types and of their fields, by package.Type and package.Type.Field.
type comments map[string]string

// readComments reads those of the packages in which the kinds are.
func readComments(top string) (comments, error) {
	c := comments{}
	for _, name := range []string{"nodegroup", "policy", "ranking", "scenario", "scheduler", "sweep"} {
		files, err := filepath.Glob(filepath.Join(top, "shim", name, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			c.add(name, parsed)
		}
	}
	return c, nil
}

func (c comments) add(folder string, file *ast.File) {
	for _, declaration := range file.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			of := spec.(*ast.TypeSpec)
			structure, ok := of.Type.(*ast.StructType)
			if !ok {
				continue
			}
			name := folder + "." + of.Name.Name
			c[name] = oneLine(types.Doc.Text())
			for _, field := range structure.Fields.List {
				for _, fieldName := range field.Names {
					c[name+"."+fieldName.Name] = oneLine(field.Doc.Text())
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func nameOf(t reflect.Type) string { return strings.TrimPrefix(t.PkgPath(), module) + "." + t.Name() }

// ofType returns what the comment of a type says, with other words in place of the name of the type.
func (c comments) ofType(t reflect.Type, words string) string {
	text := c[nameOf(t)]
	if rest, ok := strings.CutPrefix(text, t.Name()+" "); ok {
		return words + " " + rest
	}
	return text
}

// lastSentence is one that says what holds where a file lacks the key.
var lastSentence = regexp.MustCompile(`^(.*?\.) (Default: .*|Required.*)\.$`)

// defaultOf begins a sentence that has the default of a key.
const defaultOf = "Default: "

// ofField returns what a key means, without the name of the field, with which the comment begins; and its last sentence
// if that says what holds where a file lacks the key.
func (c comments) ofField(of reflect.Type, field string) (text, otherwise string) {
	text = c[nameOf(of)+"."+field]
	if found := lastSentence.FindStringSubmatch(text); found != nil {
		text, otherwise = found[1], strings.Replace(found[2], "Required", "required", 1)
	}
	text = strings.TrimPrefix(text, field+" ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	if strings.Count(text, ". ") == 0 {
		text = strings.TrimSuffix(text, ".")
	}
	return text, otherwise
}
