package autoscaler

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/internal/text"
)

// reloadAfter is how often the files are read again that a configuration names: as often as the kubelet brings a
// ConfigMap up to date that a pod mounts.
const reloadAfter = time.Minute

// reloader reads price lists, the rank policy and the configuration of filters again.
type reloader struct {
	next    time.Time
	problem string // why the files cannot be read; empty: they can
}

// reload has plans follow the files. Where they cannot be read, what they said before holds, and the status warns.
func (l *leader) reload(o *plan.Loop) {
	if r := &l.files; r.next.IsZero() {
		r.next = o.Now.Add(reloadAfter) // they have just been read
	} else if !o.Now.Before(r.next) {
		r.next, r.problem = o.Now.Add(reloadAfter), ""
		if files, err := l.config.ReadFiles(); err != nil {
			r.problem = text.Bound(fmt.Sprintf("files of the configuration cannot be read again, and what they said "+
				"before holds: %v", err), plan.MostStatusText)
			l.teller.Metrics.Failed("files")
		} else if changed := l.planner.Follow(files); len(changed) > 0 {
			klog.InfoS("Plans follow files that have changed", "parts", strings.Join(changed, ", "))
		}
	}
	if l.files.problem != "" {
		o.Warnings = append(o.Warnings, l.files.problem)
	}
}
