package tell

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/internal/text"
)

// Bounds on lists, and on the texts of events, of which an API server takes 1 KiB.
const (
	mostStatusEntries = 100
	mostPageEntries   = 1000
	mostEventText     = 1000
)

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
