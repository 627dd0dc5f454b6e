// Package kuberelease knows releases of Kubernetes: 1.x, of which x is the minor.
package kuberelease

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/component-base/version"
)

// Compiled returns the minor of the Kubernetes code that is compiled in, which may be that of a kube-scheduler.
func Compiled() int32 { return minorOf(version.DefaultKubeBinaryVersion) }

// OfServer returns the minor of an API server; 0: it does not tell.
func OfServer(client discovery.ServerVersionInterface) int32 {
	info, err := client.ServerVersion()
	if err != nil {
		return 0
	}
	return minorOf(info.GitVersion)
}

// Meant returns the minor that is given, or that of an API server if none is.
func Meant(given int32, client discovery.ServerVersionInterface) int32 {
	if given != 0 {
		return given
	}
	return OfServer(client)
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
