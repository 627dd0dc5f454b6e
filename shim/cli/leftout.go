package cli

import (
	"encoding/json"
	"errors"
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

// withLeftOut is data with the keys of leftOutAnswer behind its own.
type withLeftOut struct {
	data any
	list *leftout.List
}

// MarshalJSON is part of json.Marshaler.
func (w withLeftOut) MarshalJSON() ([]byte, error) {
	told := leftOutAnswer{LeftOut: w.list.Objects()}
	if total := w.list.Total(); total > int64(len(told.LeftOut)) {
		told.LeftOutTotal = total
	}
	data, err := json.Marshal(w.data)
	more, err2 := json.Marshal(told)
	return append(append(data[:max(0, len(data)-1)], ','), more[1:]...), errors.Join(err, err2)
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
