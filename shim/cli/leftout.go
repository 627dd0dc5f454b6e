package cli

import (
	"fmt"
	"io"

	"loadline.dev/shim/leftout"
	"loadline.dev/shim/report/texttable"
)

// leftOutAnswer tells as data which objects an answer was made without, since they alone cannot be taken.
type leftOutAnswer struct {
	LeftOut []leftout.Object `json:"leftOut"`
	// LeftOutTotal is how many there are, where LeftOut does not name all of them.
	LeftOutTotal int64 `json:"leftOutTotal,omitempty"`
}

func leftOutOf(l *leftout.List) leftOutAnswer {
	out := leftOutAnswer{LeftOut: l.Objects()}
	if total := l.Total(); total > int64(len(out.LeftOut)) {
		out.LeftOutTotal = total
	}
	return out
}

// mostNamed is how many objects a line names.
const mostNamed = 5

// leftOutLines says it in a sentence, for pages; none where nothing was left out.
func leftOutLines(l *leftout.List) []string {
	if l == nil || l.Total() == 0 {
		return nil
	}
	return []string{l.Line(mostNamed) + ". The answer holds for all others."}
}

// writeLeftOut says it below a table.
func writeLeftOut(w io.Writer, l *leftout.List) error {
	if l == nil || l.Total() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s. The answer holds for all others; -o json names them.\n",
		texttable.Escape(l.Line(mostNamed)))
	return err
}
