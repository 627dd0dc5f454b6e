package autoscaler

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/internal/text"
)

// Bounds on texts: users, the cloud and errors write them, and a ConfigMap holds 1 MiB, an event 1 KiB.
const (
	mostStatusText    = 512
	mostStatusEntries = 100
	mostPageText      = 2048
	mostPageEntries   = 1000
	mostEventText     = 1000
)

// bounded returns an error as a line of the log holds it.
func bounded(err error) error { return errors.New(text.Bound(err.Error(), mostPageText)) }

// boundedEvents are events whose messages an API server takes.
type boundedEvents struct{ to record.EventRecorder }

func (b boundedEvents) Event(object runtime.Object, kind, reason, message string) {
	b.to.Event(object, kind, reason, text.Bound(message, mostEventText))
}

func (b boundedEvents) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	b.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (b boundedEvents) AnnotatedEventf(object runtime.Object, annotations map[string]string,
	kind, reason, format string, args ...any) {
	b.to.AnnotatedEventf(object, annotations, kind, reason, "%s",
		text.Bound(fmt.Sprintf(format, args...), mostEventText))
}
