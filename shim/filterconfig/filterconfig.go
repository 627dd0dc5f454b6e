// Package filterconfig reads how a kube-scheduler is configured, so that plans and simulations are made by the same
// rules: from a KubeSchedulerConfiguration, the file that kube-scheduler itself is given.
package filterconfig

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
)

// NamespaceSelectorSeesNoLabels is the name of a defect of kube-scheduler 1.36, which is reproduced by default. 1.37
// has none that is known.
const NamespaceSelectorSeesNoLabels = "namespace-selector-sees-no-labels"

// NoDefects means an empty list in a list of defects: answers are as Kubernetes documents them.
const NoDefects = "none"

// Defects returns the words of a list of defects.
func Defects() []string { return []string{NamespaceSelectorSeesNoLabels, NoDefects} }

// Releases of Kubernetes whose filters are known, by their minors.
const firstMinor, lastMinor = 36, 37

// Releases returns them, the first one first.
func Releases() (all []string) {
	for minor := firstMinor; minor <= lastMinor; minor++ {
		all = append(all, fmt.Sprintf("1.%d", minor))
	}
	return all
}

// Request names a configuration.
type Request struct {
	// File holds a KubeSchedulerConfiguration; empty: kube-scheduler's defaults.
	File string
	// Defects of kube-scheduler that are reproduced; empty: those that its release has. See NoDefects.
	Defects []string
	// Version of Kubernetes, such as "1.37" or "v1.37.2"; empty: 1.36.
	Version string
}

// Scheduler is how a kube-scheduler is configured.
type Scheduler struct {
	// Fit is what filters read; nil: kube-scheduler's defaults. The profile of default-scheduler is first, or the first
	// one where there is none of that name; it holds for pods of schedulers that have no profile.
	Fit *loadlinev1.FitOptions
	// Profiles are how each scores, by name. There is at least one, under the name "" also the first one.
	Profiles map[string]*Scoring
	// Warnings name what of the file plays no part here, though it may filter.
	Warnings []string
}

// Scoring returns how a pod's profile scores.
func (s *Scheduler) Scoring(pod *v1.Pod) *Scoring {
	if scoring, ok := s.Profiles[pod.Spec.SchedulerName]; ok {
		return scoring
	}
	return s.Profiles[""]
}

// NeedsSelectors says whether pods have to be asked about with the selector of their services and owners, because some
// profile has default constraints that keep pods from nodes.
func NeedsSelectors(fit *loadlinev1.FitOptions) bool {
	if len(fit.GetDefaultSpreadConstraints()) > 0 {
		return true
	}
	return slices.ContainsFunc(fit.GetProfiles(), func(p *loadlinev1.SchedulerProfile) bool {
		return len(p.GetOptions().GetDefaultSpreadConstraints()) > 0
	})
}

// Read reads a configuration. Errors name the file, and the field in it, or begin with the key of a setting.
func Read(r Request) (*Scheduler, error) {
	out := &Scheduler{Profiles: map[string]*Scoring{"": defaultScoring()}}
	if r.File != "" {
		data, err := unwrap.File(r.File, unwrap.MostBytes)
		if err != nil {
			return nil, err
		}
		if out, err = parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
	}
	if err := out.setDefects(r.Defects); err != nil {
		return nil, err
	}
	return out, out.setVersion(r.Version)
}

func (s *Scheduler) setVersion(version string) error {
	if version == "" {
		return nil
	}
	var major, minor int32
	if n, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); n != 2 || err != nil {
		if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 || err != nil {
			return fmt.Errorf("kubernetesVersion: %q must be such as 1.37", version)
		}
	}
	if major != 1 || minor < firstMinor || minor > lastMinor {
		return fmt.Errorf("kubernetesVersion: %q must be one of %s, whose filters are known", version,
			strings.Join(Releases(), ", "))
	}
	s.options().KubernetesMinor = minor
	return nil
}

func (s *Scheduler) setDefects(defects []string) error {
	if len(defects) == 0 {
		return nil
	}
	if slices.Equal(defects, []string{NoDefects}) {
		defects = nil
	}
	reproduced := &loadlinev1.UpstreamDefects{}
	for _, defect := range defects {
		if defect != NamespaceSelectorSeesNoLabels {
			return fmt.Errorf("upstreamDefects: %q must be one of %s", defect, strings.Join(Defects(), ", "))
		}
		reproduced.NamespaceSelectorSeesNoLabels = true
	}
	s.options().Defects = reproduced
	for _, profile := range s.Fit.GetProfiles() {
		profile.Options.Defects = reproduced
	}
	return nil
}

func (s *Scheduler) options() *loadlinev1.FitOptions {
	if s.Fit == nil {
		s.Fit = &loadlinev1.FitOptions{}
	}
	return s.Fit
}

// maxProfiles is how many an engine takes beside the first one.
const maxProfiles = 32

func parse(data []byte) (*Scheduler, error) {
	var config schedulerv1.KubeSchedulerConfiguration
	if err := policy.DecodeStrict(data, &config); err != nil {
		return nil, err
	}
	if config.Kind != "KubeSchedulerConfiguration" {
		return nil, fmt.Errorf("kind %q: must be KubeSchedulerConfiguration", config.Kind)
	}
	if version := schedulerv1.SchemeGroupVersion.String(); config.APIVersion != version {
		return nil, fmt.Errorf("apiVersion %q: must be %s", config.APIVersion, version)
	}
	if len(config.Profiles) > maxProfiles+1 {
		return nil, fmt.Errorf("profiles: has %d entries, at most %d are allowed", len(config.Profiles), maxProfiles+1)
	}
	if len(config.Profiles) == 0 {
		config.Profiles = []schedulerv1.KubeSchedulerProfile{{}}
	}
	out := &Scheduler{Profiles: map[string]*Scoring{}}
	first := firstProfile(config.Profiles)
	for i := range config.Profiles {
		read, err := readProfile(&config.Profiles[i])
		if err != nil {
			return nil, fmt.Errorf("profiles[%d].%w", i, err)
		}
		if _, ok := out.Profiles[read.name]; ok {
			return nil, fmt.Errorf("profiles[%d].schedulerName: %q occurs twice", i, read.name)
		}
		out.Profiles[read.name] = read.scoring
		if err := out.addLine(read.line); err != nil {
			return nil, fmt.Errorf("profiles[%d]: %w", i, err)
		}
		for _, warning := range read.warnings {
			out.Warnings = append(out.Warnings, fmt.Sprintf("profiles[%d].%s", i, warning))
		}
		if i == first {
			read.fit.Profiles, read.fit.LoadLine = out.Fit.GetProfiles(), out.Fit.GetLoadLine()
			out.Fit, out.Profiles[""] = read.fit, read.scoring
			continue
		}
		out.options().Profiles = append(out.options().Profiles,
			&loadlinev1.SchedulerProfile{SchedulerName: read.name, Options: read.fit})
	}
	return out, out.readExtenders(config.Extenders)
}

// readExtenders reads which resources extenders look after in place of NodeResourcesFit. They hold for each profile.
func (s *Scheduler) readExtenders(extenders []schedulerv1.Extender) error {
	for i, extender := range extenders {
		if extender.FilterVerb != "" {
			s.Warnings = append(s.Warnings, fmt.Sprintf("extenders[%d].filterVerb: what it refuses is not known here", i))
		}
		for j, resource := range extender.ManagedResources {
			if !strings.Contains(resource.Name, "/") {
				return fmt.Errorf("extenders[%d].managedResources[%d].name: %q must be an extended resource such as "+
					"example.com/gpu", i, j, resource.Name)
			}
			if resource.IgnoredByScheduler {
				s.ignore(resource.Name)
			}
		}
	}
	return nil
}

// ignore has no profile compare a resource with what nodes offer.
func (s *Scheduler) ignore(resource string) {
	all := []*loadlinev1.FitOptions{s.options()}
	for _, profile := range s.Fit.GetProfiles() {
		all = append(all, profile.Options)
	}
	for _, fit := range all {
		if !slices.Contains(fit.IgnoredResources, resource) {
			fit.IgnoredResources = append(fit.IgnoredResources, resource)
		}
	}
}

// firstProfile returns the position of the profile that holds for pods which name no other.
func firstProfile(profiles []schedulerv1.KubeSchedulerProfile) int {
	i := slices.IndexFunc(profiles, func(p schedulerv1.KubeSchedulerProfile) bool {
		return p.SchedulerName == nil || *p.SchedulerName == v1.DefaultSchedulerName
	})
	return max(i, 0)
}
