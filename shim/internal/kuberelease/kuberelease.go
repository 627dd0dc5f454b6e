// Package kuberelease knows releases of Kubernetes: 1.x, of which x is the minor.
package kuberelease

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

// Compiled returns the minor of the Kubernetes code that is compiled in, which may be that of a kube-scheduler.
func Compiled() int32 { return minorOf(version.DefaultKubeBinaryVersion) }

// Meant returns the minor that is given, or that of an API server if none is; 0: it does not tell.
func Meant(given int32, client discovery.ServerVersionInterface) int32 {
	if given != 0 {
		return given
	}
	info, err := client.ServerVersion()
	if err != nil {
		return 0
	}
	return minorOf(info.GitVersion)
}

// askAgain is how long an API server that did not answer is left alone, askFor how long it is asked in all: the release
// matters to pods that are being resized only, and must not keep a program from its work.
const (
	askAgain = time.Second
	askFor   = time.Minute
)

// Await is Meant for a program that keeps running: an API server that does not answer is asked again, for up to a
// minute and until the context ends. One that does not state a minor, or refuses to, leaves it at 0, which is logged.
func Await(ctx context.Context, given int32, client discovery.ServerVersionInterface) int32 {
	if given != 0 {
		return given
	}
	var minor int32
	ask := func(context.Context) (bool, error) {
		info, err := client.ServerVersion()
		if err == nil {
			minor = minorOf(info.GitVersion)
			return true, nil
		}
		klog.ErrorS(err, "The API server does not tell its version")
		return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), nil
	}
	_ = wait.PollUntilContextTimeout(ctx, askAgain, askFor, true, ask) // the minor says what came of it
	if minor == 0 && ctx.Err() == nil {
		klog.InfoS("The release of the API server is not known: pods that are being resized count as in 1.36")
	}
	return minor
}

// minorOf reads the minor of a version such as "1.37" or "v1.37.2-eks-1"; 0: it has none.
func minorOf(version string) int32 {
	var minor int32
	for _, format := range []string{"v1.%d", "1.%d"} {
		if n, err := fmt.Sscanf(version, format, &minor); n == 1 && err == nil && minor > 0 {
			return minor
		}
	}
	return 0
}
