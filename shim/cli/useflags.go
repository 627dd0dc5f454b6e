package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"loadline.dev/shim/policy"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/store"
)

// useFlags say what pods are expected to use.
type useFlags struct {
	file      string
	namespace string
}

func (f *useFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "usage", "", "profiles of what pods use by the hour, as `FILE` of 'loadline usage --output'")
	flags.StringVar(&f.namespace, "usage-namespace", "",
		"in place of --usage: read the ConfigMaps of 'loadline usage' in this namespace of a live cluster")
}

func (f *useFlags) given() bool { return f.file != "" || f.namespace != "" }

// profiles reads the profiles; nil: none are given.
func (f *useFlags) profiles(ctx context.Context, s *sourceFlags) ([]profile.Profile, error) {
	switch {
	case !f.given():
		return nil, nil
	case f.file != "" && f.namespace != "":
		return nil, usagef("--usage and --usage-namespace exclude each other")
	case f.namespace != "" && s.fromFile():
		return nil, usagef("--usage-namespace reads a live cluster; with -f give --usage FILE")
	case f.namespace != "":
		return f.stored(ctx, s)
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	profiles, err := profile.ReadTable(file)
	if err == nil && len(profiles) == 0 {
		err = fmt.Errorf("it has no profile")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return profiles, nil
}

// heldProfiles reads the profiles that a live cluster holds in a namespace.
func (s *sourceFlags) heldProfiles(ctx context.Context, namespace string) ([]profile.Profile, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	_, profiles, problems, err := store.Read(ctx, client, namespace)
	warnBeside(ctx, problems...)
	return profiles, err
}

// stored reads the profiles of the namespace that is named.
func (f *useFlags) stored(ctx context.Context, s *sourceFlags) ([]profile.Profile, error) {
	profiles, err := s.heldProfiles(ctx, f.namespace)
	if err == nil && len(profiles) == 0 {
		err = fmt.Errorf("there are no ConfigMaps %s with profiles: see loadline usage", store.Name(0))
	}
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", f.namespace, err)
	}
	return profiles, nil
}

// longestAge is the greatest that the engine takes: profiles that somebody names count, however old they are.
const longestAge = (1 << 32) * time.Second

// onto has pods count by the profiles, by the options of the policy where it has them.
func (f *useFlags) onto(how *policy.Policy) {
	if !f.given() {
		return
	}
	if !how.ExpectedUse.On() {
		how.ExpectedUse = &policy.ExpectedUse{Mode: "On", MinDays: 1}
	}
	if how.ExpectedUse.MaxAge.Duration == 0 {
		how.ExpectedUse.MaxAge.Duration = longestAge
	}
}
