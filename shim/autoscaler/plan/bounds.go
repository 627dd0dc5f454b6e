package plan

import (
	"errors"

	"loadline.dev/shim/internal/text"
)

// Bounds on texts: users, the cloud and errors write them, and a ConfigMap holds 1 MiB.
const (
	MostStatusText = 512
	MostPageText   = 2048
)

// Bounded returns an error as a line of the log holds it.
func Bounded(err error) error { return errors.New(text.Bound(err.Error(), MostPageText)) }
