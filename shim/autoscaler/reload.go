package autoscaler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
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
func (l *leader) reload(o *loop) {
	if r := &l.files; r.next.IsZero() {
		r.next = o.now.Add(reloadAfter) // they have just been read
	} else if !o.now.Before(r.next) {
		r.next, r.problem = o.now.Add(reloadAfter), ""
		if files, err := l.config.ReadFiles(); err != nil {
			r.problem = text.Bound(fmt.Sprintf("files of the configuration cannot be read again, and what they said "+
				"before holds: %v", err), mostStatusText)
			l.metrics.errors.WithLabelValues("files").Inc()
		} else if changed := l.planner.follow(files); len(changed) > 0 {
			klog.InfoS("Plans follow files that have changed", "parts", strings.Join(changed, ", "))
		}
	}
	if l.files.problem != "" {
		o.warnings = append(o.warnings, l.files.problem)
	}
}

// follow takes what files say into the next questions, and returns which parts of it are new.
func (p *planner) follow(files *config.Loaded) (changed []string) {
	for part, same := range map[string]bool{
		"prices":     proto.Equal(p.settings.Prices, files.Prices),
		"rankPolicy": proto.Equal(p.settings.Ranking, files.Ranking),
		"filters":    proto.Equal(p.settings.Fit, files.Fit),
	} {
		if !same {
			changed = append(changed, part)
		}
	}
	slices.Sort(changed)
	p.settings.Prices, p.settings.Ranking, p.settings.Fit = files.Prices, files.Ranking, files.Fit
	p.priorities = files.Priorities
	return changed
}
