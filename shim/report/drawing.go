package report

import "strconv"

// page is what the template shows.
type page struct {
	Title, Verdict  string
	Warnings, Lines []string
	Refresh         int // seconds; 0: never
	Parts           []part
}

// part is a part of a page. All fields are optional, and are shown in this order.
type part struct {
	Title, Subtitle, Verdict string
	Lines, Says              []string // Lines are softer
	Legend                   []key
	Table                    *cells
	Figures                  []figure
	Maps                     []heatMap
	Verbatim                 verbatim
	After                    string
}

// key is an entry of a legend.
type key struct {
	Swatches []string // classes of colours
	Drawing  *drawing
	Label    string
}

func swatch(class, label string) key { return key{Swatches: []string{class}, Label: label} }

// stroke is the key of an upright line.
func stroke(class, label string) key {
	d := &drawing{Class: "line", Width: 12, Height: 17}
	d.upright(class, 6, 0, 17)
	return key{Drawing: d, Label: label}
}

// sample is the key of what is drawn into a wide field.
func sample(label string, draw func(d *drawing)) key {
	d := &drawing{Class: "steps", Width: 36, Height: 17}
	draw(d)
	return key{Drawing: d, Label: label}
}

// cells are a table.
type cells struct {
	Class  string
	Header []cell
	Rows   [][]cell
}

// cell shows a drawing, a text, a note below it, and what opens on demand; each is optional.
type cell struct {
	Class, Text, Note string
	Strong            bool
	Span              int
	Drawing           *drawing
	Summary           string
	Details           []string
}

func texts(class string, of ...string) (out []cell) {
	for _, text := range of {
		out = append(out, cell{Class: class, Text: text})
	}
	return out
}

// cells returns a grid as a table; nil: it has no rows.
func (g Grid) cells() *cells {
	if len(g.Rows) == 0 {
		return nil
	}
	out := &cells{Header: texts("", g.Header...)}
	for _, row := range g.Rows {
		out.Rows = append(out.Rows, texts("", row...))
	}
	return out
}

// figure is a drawing with a caption.
type figure struct {
	Caption string
	Drawing *drawing
}

// drawing is a picture, in units of its viewBox.
type drawing struct {
	Class               string
	X, Y, Width, Height float64
	Pixels              float64 // its width on the page; 0: that of its class
	Label, Title        string
	Shapes              []shape
}

// shape is a part of a drawing: a rect, line, text, path or circle.
type shape struct {
	Kind, Class                      string
	X, Y, ToX, ToY, Width, Height, R float64
	Path, Text, Anchor               string
	Upwards                          bool // of a text
	Title                            any  // a string, or verbatim
}

func (d *drawing) add(s shape) { d.Shapes = append(d.Shapes, s) }

// rect adds a rectangle, if it has a width.
func (d *drawing) rect(class string, x, y, width, height float64) {
	if width > 0 {
		d.add(shape{Kind: "rect", Class: class, X: x, Y: y, Width: width, Height: height})
	}
}

// upright adds a line from top to bottom.
func (d *drawing) upright(class string, x, top, bottom float64) {
	d.add(shape{Kind: "line", Class: class, X: x, ToX: x, Y: top, ToY: bottom})
}

func (d *drawing) text(class, anchor, text string, x, y float64) {
	d.add(shape{Kind: "text", Class: class, Anchor: anchor, Text: text, X: x, Y: y})
}

func (d *drawing) path(class, path, title string) {
	d.add(shape{Kind: "path", Class: class, Path: path, Title: title})
}

func (d *drawing) circle(class string, x, y, r float64, title string) {
	d.add(shape{Kind: "circle", Class: class, X: x, Y: y, R: r, Title: title})
}

// barDrawing is a bar in a row of a table: rectangles are 11 high and lines 17.
func barDrawing(width float64, label string) *drawing {
	return &drawing{X: -1, Width: width + 2, Height: 17, Label: label}
}

// fill adds a part of a bar.
func (d *drawing) fill(class string, x, width float64) { d.rect(class, x, 3, width, 11) }

// limit adds a mark over the whole height of a bar.
func (d *drawing) limit(class string, x float64) { d.upright(class, x, 0, 17) }

// tick is a place on an axis with its label.
type tick struct {
	At    float64
	Label string
}

// plot is a drawing with axes.
type plot struct {
	drawing
	left, right, top, bottom float64
}

// newPlot returns a plot of this height, without what is below its axis.
func newPlot(label string, top, height, below float64) plot {
	return plot{drawing{Label: label, Width: marginLeft + plotWidth + marginRight,
		Height: top + height + marginBottom + below}, marginLeft, marginLeft + plotWidth, top, top + height}
}

// axes draws the grid and the labels of both axes.
func (p *plot) axes(x, y []tick) {
	for _, t := range y {
		p.add(shape{Kind: "line", Class: "grid", X: p.left, ToX: p.right, Y: t.At, ToY: t.At})
		p.text("soft", "end", t.Label, p.left-8, t.At+4)
	}
	for _, t := range x {
		p.text("soft", "middle", t.Label, t.At, p.bottom+15)
	}
}

// marked draws lines over the plot, each with a label in a row of its own.
func (p *plot) marked(marks []mark) {
	for _, m := range marks {
		p.upright(m.Class, m.X, m.LabelY, p.bottom)
		p.text(m.Class, m.Anchor, m.Label, m.LabelX, m.LabelY)
	}
}

// six writes a number with up to six digits.
func six(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }
