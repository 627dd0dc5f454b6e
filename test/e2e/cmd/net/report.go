package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

type options struct {
	kinds bool
	cover bool
	show  string
	most  int
	allow string
}

// report counts what differs.
type report struct {
	*options
	allowed         *regexp.Regexp
	answers, differ int
	refused         int
	byMethod        map[string]int
	covers          map[string]int
	main            map[string]*count // kinds from which others follow
	all             map[string]*count
	shown           []string
}

// count is how often a kind of difference was found.
type count struct {
	kind    string
	answers int
	tags    map[string]int // worlds
	worlds  int
	first   string
	example string
}

// part is the result of recording one task.
type part struct {
	answers, refused int
	byMethod, covers map[string]int
	found            []found
}

// found is an answer that differs.
type found struct {
	where string
	of    []difference
}

func newReport(o *options) (*report, error) {
	r := &report{options: o, byMethod: map[string]int{}, covers: map[string]int{},
		main: map[string]*count{}, all: map[string]*count{}}
	var err error
	if o.allow != "" {
		r.allowed, err = regexp.Compile(o.allow)
	}
	return r, err
}

func (r *report) compare(ctx context.Context, library, folder string, t task) (*part, error) {
	p := &part{byMethod: map[string]int{}, covers: map[string]int{}}
	var failed error
	err := replay(ctx, library, folder, t, func(c *call) {
		p.answers++
		p.byMethod[c.GetMethod()[strings.LastIndex(c.GetMethod(), "/")+1:]]++
		if c.GetCode() != 0 {
			p.refused++
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(c.covers()))) {
			p.covers[name]++
		}
		all, err := c.differences()
		if err != nil {
			failed = fmt.Errorf("call %d: %w", c.number, err)
			return
		}
		if r.allowed != nil {
			all = slices.DeleteFunc(all, func(d difference) bool { return r.allowed.MatchString(d.kind) })
		}
		if len(all) > 0 {
			p.found = append(p.found, found{fmt.Sprintf("%s call %d", t.name(), c.number), all})
		}
	})
	if err == nil {
		err = failed
	}
	return p, err
}

func (r *report) add(t task, p *part) {
	r.answers += p.answers
	r.refused += p.refused
	for method, n := range p.byMethod {
		r.byMethod[method] += n
	}
	for name, n := range p.covers {
		r.covers[name] += n
	}
	tags := []string{t.kind}
	if t.kind == ofLoops {
		tags = newWorld(t.seed).tagsOf()
	}
	here := map[*count]bool{}
	for _, f := range p.found {
		r.differ++
		r.note(r.main, mainKind(f.of), f, tags, here)
		kinds := map[string]bool{}
		show := false
		for _, d := range f.of {
			kinds[d.kind] = true
			show = show || r.show != "" && strings.Contains(d.kind, r.show)
		}
		for kind := range kinds {
			r.note(r.all, kind, f, tags, here)
		}
		if show && len(r.shown) < r.most {
			text := f.where + " (" + strings.Join(tags, " ") + ")\n"
			for _, d := range f.of {
				text += "    " + shorten(d.text, 300) + "\n"
			}
			r.shown = append(r.shown, text)
		}
	}
}

func (r *report) note(in map[string]*count, kind string, f found, tags []string, here map[*count]bool) {
	c := in[kind]
	if c == nil {
		c = &count{kind: kind, tags: map[string]int{}, first: f.where}
		for _, d := range f.of {
			if d.kind == kind {
				c.example = d.text
				break
			}
		}
		in[kind] = c
	}
	c.answers++
	if !here[c] {
		here[c] = true
		c.worlds++
		for _, tag := range tags {
			c.tags[tag]++
		}
	}
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// always are the tags of all worlds with a difference: a hint at its cause.
func (c *count) always() string {
	var names []string
	for _, tag := range slices.Sorted(maps.Keys(c.tags)) {
		if c.tags[tag] == c.worlds {
			names = append(names, tag)
		}
	}
	return strings.Join(names, " ")
}

func (r *report) print(w io.Writer) {
	for _, text := range r.shown {
		fmt.Fprintln(w, text)
	}
	fmt.Fprintf(w, "%d answers, of these %d refusals; %d differ\n", r.answers, r.refused, r.differ)
	for _, method := range slices.Sorted(maps.Keys(r.byMethod)) {
		fmt.Fprintf(w, "  %6d %s\n", r.byMethod[method], method)
	}
	if r.cover {
		for _, name := range slices.Sorted(maps.Keys(r.covers)) {
			fmt.Fprintf(w, "  %6d %s\n", r.covers[name], name)
		}
	}
	if r.differ == 0 {
		return
	}
	table, title := r.main, "each answer once, by the part from which others follow"
	if r.kinds {
		table, title = r.all, "all parts that differ"
	}
	fmt.Fprintf(w, "\nDifferences (%s): answers, worlds, kind\n", title)
	kinds := slices.SortedFunc(maps.Values(table), func(a, b *count) int {
		return cmp.Or(cmp.Compare(b.answers, a.answers), compare(a.kind, b.kind))
	})
	for _, c := range kinds {
		fmt.Fprintf(w, "%6d %5d  %s\n", c.answers, c.worlds, c.kind)
		fmt.Fprintf(w, "              first: %s: %s\n", c.first, shorten(c.example, 160))
		if always := c.always(); always != "" {
			fmt.Fprintf(w, "              always: %s\n", always)
		}
	}
}
