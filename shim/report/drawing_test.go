package report

// shapesOf returns the shapes of a kind and class in a drawing; empty: of any class.
func shapesOf(d *drawing, kind, class string) (out []shape) {
	for _, s := range d.Shapes {
		if s.Kind == kind && (class == "" || s.Class == class) {
			out = append(out, s)
		}
	}
	return out
}
