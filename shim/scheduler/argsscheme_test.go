package scheduler

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"loadline.dev/shim/policy"
)

// The arguments of each version, and those that state none, come to the same.
func TestVersionsOfArgs(t *testing.T) {
	var first *NodeResourcesLimitAwareArgs
	for _, written := range []string{"loadline.dev/v1", "", "kubescheduler.config.k8s.io/v1"} {
		typed := ""
		if written != "" {
			typed = fmt.Sprintf(`"apiVersion": %q, "kind": "NodeResourcesLimitAwareArgs",`, written)
		}
		got, err := decodeArgs(&runtime.Unknown{
			Raw: fmt.Appendf(nil, `{%s "view": "batch", "maxLimitsOverAllocatable": {"memory": 1.5}}`, typed)})
		if err != nil || got.APIVersion != written || got.View != "batch" || got.UsageNamespace == "" {
			t.Fatalf("apiVersion %q: %+v, %v", written, got, err)
		}
		got.APIVersion, got.Kind = "", ""
		if first == nil {
			first = &got
		} else if !reflect.DeepEqual(*first, got) {
			t.Errorf("apiVersion %q: %+v, want %+v", written, got, *first)
		}
	}
}

// A copy has all fields, and shares none.
func TestArgsAreCopied(t *testing.T) {
	args := DefaultArgs()
	args.MaxLimitsOverAllocatable = map[string]policy.Ratio{"cpu": "1.5"}
	again := args.DeepCopyObject().(*NodeResourcesLimitAwareArgs)
	if !reflect.DeepEqual(args, *again) {
		t.Errorf("%+v is copied as %+v", args, *again)
	}
	again.MaxLimitsOverAllocatable["cpu"] = "2"
	if args.MaxLimitsOverAllocatable["cpu"] != "1.5" {
		t.Error("a copy shares its map")
	}
}

// bufferedLogger is a logger, and what it has logged.
func bufferedLogger(t *testing.T) (klog.Logger, func() string) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	return logger, logger.GetSink().(ktesting.Underlier).GetBuffer().String
}

// The log names the older apiVersion, and not the present one.
func TestOlderArgsAreTold(t *testing.T) {
	for version, want := range map[string]bool{"loadline.dev/v1": false, "kubescheduler.config.k8s.io/v1": true} {
		logger, logged := bufferedLogger(t)
		all := clients{dial: refusesToDial}
		_, err := newPlugin(klog.NewContext(t.Context(), logger),
			&runtime.Unknown{Raw: fmt.Appendf(nil, `{"apiVersion": %q, "engineAddress": "inprocess"}`, version)}, nil, &all)
		if err == nil || strings.Contains(logged(), "have an older apiVersion") != want {
			t.Errorf("%s: error %v, logged %q", version, err, logged())
		}
	}
}
