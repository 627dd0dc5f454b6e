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

// askAgain is how long an API server that did not answer is left alone.
const askAgain = time.Second

// Await is Meant for a program that goes on: an API server that does not answer is asked again until it does, or the
// context ends. One that answers without a minor, or refuses to, leaves it at 0, which is logged.
func Await(ctx context.Context, given int32, client discovery.ServerVersionInterface) int32 {
	minor := given
	ask := func(context.Context) (bool, error) {
		info, err := client.ServerVersion()
		switch {
		case err == nil:
			minor = minorOf(info.GitVersion)
		case !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err):
			klog.ErrorS(err, "The API server does not tell its version; it is asked again", "after", askAgain)
			return false, nil
		}
		if minor == 0 {
			klog.InfoS("The release of the API server is not known: pods that are being resized count as in 1.36",
				"err", err, "version", info)
		}
		return true, nil
	}
	if given == 0 {
		_ = wait.PollUntilContextCancel(ctx, askAgain, true, ask) // ends with the context, which the caller looks at
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
