package scheduler

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/policy"
	"loadline.dev/shim/usage/store"
	"loadline.dev/shim/view"
)

const (
	defaultEngineAddress = "unix:///run/loadline/loadlined.sock"
	defaultTimeout       = 20 * time.Millisecond
	defaultView          = "scheduler"

	minTimeout = time.Millisecond
	maxTimeout = time.Second
)

// NodeResourcesLimitAwareArgs are the arguments of the plugin in a KubeSchedulerConfiguration. Beside its own
// fields it has those of a score policy. TypeMeta says under which apiVersion they were written.
type NodeResourcesLimitAwareArgs struct {
	metav1.TypeMeta `json:",inline"`
	// EngineAddress is unix:///path/to/socket of a loadlined, or inprocess, or inprocess:///path/to/libloadline.so: then
	// a fault in C++ code ends the scheduler.
	EngineAddress string `json:"engineAddress,omitempty"`
	// Timeout bounds the question to the engine in each cycle: 1ms to 1s. A cycle that gets no answer in time continues
	// without the plugin's opinion.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// View is the name under which the engine keeps what this scheduler sees. Two schedulers that share one loadlined
	// need two names.
	View string `json:"view,omitempty"`

	policy.Policy `json:",inline"`

	// Line is the load line: a filter, off by default. It counts limits as the policy does.
	policy.Line `json:",inline"`
	// OnEngineFailure says what becomes of a pod when the engine does not say what the load line allows: Refuse tries it
	// again after a backoff; Allow places it, whatever the line.
	OnEngineFailure string `json:"onEngineFailure,omitempty"`
	// UsageNamespace is that of the ConfigMaps of `loadline usage`, which are read where expectedUse is On.
	UsageNamespace string `json:"usageNamespace,omitempty"`
}

// DefaultArgs returns the arguments of a plugin whose configuration says nothing.
func DefaultArgs() NodeResourcesLimitAwareArgs {
	var args NodeResourcesLimitAwareArgs
	argsScheme.Default(&args)
	return args
}

// decodeArgs makes valid arguments of what the scheduler's configuration holds; nil: all defaults.
func decodeArgs(obj runtime.Object) (NodeResourcesLimitAwareArgs, error) {
	var args NodeResourcesLimitAwareArgs
	switch from := obj.(type) {
	case nil:
	case *runtime.Unknown:
		if from.ContentType != "" && from.ContentType != runtime.ContentTypeJSON {
			return args, fmt.Errorf("%s: content type %q: must be JSON", argsKind, from.ContentType)
		}
		if err := decodeVersioned(from.Raw, &args); err != nil {
			return args, fmt.Errorf("%s: %w", argsKind, err)
		}
	default:
		return args, fmt.Errorf("%s: cannot be read from a %T", argsKind, obj)
	}
	argsScheme.Default(&args)
	if err := args.validate().ToAggregate(); err != nil {
		return args, fmt.Errorf("%s: %w", argsKind, err)
	}
	return args, nil
}

func (a *NodeResourcesLimitAwareArgs) setDefaults() {
	if a.EngineAddress == "" {
		a.EngineAddress = defaultEngineAddress
	}
	if a.Timeout == nil {
		a.Timeout = &metav1.Duration{Duration: defaultTimeout}
	}
	if a.View == "" {
		a.View = defaultView
	}
	if a.OnEngineFailure == "" {
		a.OnEngineFailure = RefuseOnFailure
	}
	if a.UsageNamespace == "" {
		a.UsageNamespace = store.DefaultNamespace
	}
	a.Policy.Default()
}

func (a *NodeResourcesLimitAwareArgs) validate() field.ErrorList {
	var errs field.ErrorList
	if t := a.Timeout.Duration; t < minTimeout || t > maxTimeout {
		errs = append(errs, field.Invalid(field.NewPath("timeout"), t.String(),
			fmt.Sprintf("must be %v to %v", minTimeout, maxTimeout)))
	}
	if err := view.CheckName(a.View); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("view"), a.View, err.Error()))
	}
	if failures := []string{RefuseOnFailure, AllowOnFailure}; !slices.Contains(failures, a.OnEngineFailure) {
		errs = append(errs, field.NotSupported(field.NewPath("onEngineFailure"), a.OnEngineFailure, failures))
	}
	errs = append(errs, a.Line.ValidateAt(nil)...)
	if err := a.CheckCounting(a.Policy); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("maxLimitsOverAllocatable"), a.Preset, err.Error()))
	}
	return append(errs, a.Policy.ValidateAt(nil)...)
}
